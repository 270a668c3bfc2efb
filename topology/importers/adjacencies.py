"""Adjacencies: neighbours that devices report on their ports, joined into cables.

A neighbour table describes a link from one end; the tables of both ends make one cable. Where they do not agree the
cable is kept, and the disagreement is a finding returned with the fabric: an end that is silent about a link although
its own table was read, or two ends that run at different rates, of which the lower is taken. A port with two different
neighbours cannot be kept; that is a mistake of the files.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.fabric import ONE_SIDED, SPEED_MISMATCH
from fabrictune.foundation.records import Confidence, Finding
from fabrictune.foundation.units import CABLE_DELAY_PS_PER_MM, format_rate
from fabrictune.topology.assumed_links import assumed_notes
from fabrictune.topology.draft import DEFAULT_CABLE_MM, DEFAULT_RATE_BPS
from fabrictune.topology.fabric import NO_RAIL
from fabrictune.topology.importers.cabling import Cable, Cabling, End

BOTH_SIDES = "every link in the tables of both its ends"
ONE_SPEED = "one speed at both ends"


@dataclass(frozen=True, kw_only=True, slots=True)
class Adjacency:
    """One row of a neighbour table."""

    here: End
    there: End
    where: str
    rate_bps: int | None = None  # of the port here; None where its table does not tell
    cable_mm: int | None = None
    rail: int = NO_RAIL


Links = list[tuple[Adjacency, ...]]  # one or two of each link


def join_adjacencies(
    cabling: Cabling,
    adjacencies: Iterable[Adjacency],
    *,
    reporters: Collection[str] = (),
    default_rate_bps: int = DEFAULT_RATE_BPS,
    confidence: Confidence = Confidence.CONFIGURED,
) -> None:
    """Add a cable for each link, in the order and the direction in which links first appear.

    `reporters` are the nodes whose own table was read: only of these is silence a finding. How many links got the
    default rate or cable is noted. `confidence` is MEASURED for what devices saw, CONFIGURED for what they were given.
    """
    links = _pair(adjacencies)
    cabling.cables.extend(_cable(link, default_rate_bps) for link in links)
    cabling.checked += _check_speeds(links, confidence) + _check_sides(links, reporters, confidence)
    num_default_rates = sum(all(adjacency.rate_bps is None for adjacency in link) for link in links)
    num_default_cables = sum(all(adjacency.cable_mm is None for adjacency in link) for link in links)
    cabling.notes.extend(assumed_notes(num_default_rates, default_rate_bps, num_default_cables))


def _check_sides(links: Links, reporters: Collection[str], confidence: Confidence) -> CheckReport:
    """Return the check of the links whose other end had a chance to be read."""
    heard = [link for link in links if len(link) > 1 or link[0].there[0] in reporters]
    if not heard:
        return skip_check(ONE_SIDED.id, f"{len(links):,} links", "no link leads to a device whose own table was read")
    found = (_one_sided(link[0], confidence) for link in heard if len(link) == 1)
    return run_check(ONE_SIDED.id, f"{len(heard):,} links between devices that were read", found, expected=BOTH_SIDES)


def _check_speeds(links: Links, confidence: Confidence) -> CheckReport:
    """Return the check of the links of which both ends say a speed."""
    mutual = [link for link in links if len(link) > 1]
    rates = [[adjacency.rate_bps for adjacency in link if adjacency.rate_bps is not None] for link in mutual]
    told = [(link, rates_bps) for link, rates_bps in zip(mutual, rates, strict=True) if len(rates_bps) > 1]
    if not told:
        return skip_check(SPEED_MISMATCH.id, f"{len(links):,} links", "no link has a speed at both ends")
    found = (_speed_mismatch(link, rates_bps, confidence) for link, rates_bps in told if len(set(rates_bps)) > 1)
    return run_check(SPEED_MISMATCH.id, f"{len(told):,} links with a speed at both ends", found, expected=ONE_SPEED)


def without_loops(cabling: Cabling, adjacencies: Iterable[Adjacency]) -> Iterator[Adjacency]:
    """Yield the adjacencies between different nodes, with a note of every cable from a node to itself."""
    loops: set[frozenset[End]] = set()
    for adjacency in adjacencies:
        ends = frozenset((adjacency.here, adjacency.there))
        if adjacency.here[0] != adjacency.there[0]:
            yield adjacency
        elif ends not in loops:
            loops.add(ends)
            cabling.notes.append(f"{adjacency.where}: the link {_label(adjacency)}, from a node to itself, left out")


def _pair(adjacencies: Iterable[Adjacency]) -> Links:
    """Return one or two adjacencies for each link."""
    links: Links = []
    one_sided: dict[tuple[End, End], int] = {}  # places in `links`
    for adjacency in adjacencies:
        place = one_sided.pop((adjacency.there, adjacency.here), None)
        if place is None:
            one_sided[adjacency.here, adjacency.there] = len(links)
            links.append((adjacency,))
        else:
            links[place] = (*links[place], adjacency)
    return links


def _cable(link: Sequence[Adjacency], default_rate_bps: int) -> Cable:
    rates_bps = [adjacency.rate_bps for adjacency in link if adjacency.rate_bps is not None]
    cables_mm = [adjacency.cable_mm for adjacency in link if adjacency.cable_mm is not None]
    return Cable(
        ends=(link[0].here, link[0].there),
        rate_bps=min(rates_bps, default=default_rate_bps),
        delay_ps=max(cables_mm, default=DEFAULT_CABLE_MM) * CABLE_DELAY_PS_PER_MM,
        where=link[0].where,
        rail=max(adjacency.rail for adjacency in link),
    )


def _one_sided(adjacency: Adjacency, confidence: Confidence) -> Finding:
    return ONE_SIDED.finding(
        entity=_label(adjacency),
        expected=f"the same link in the table of {adjacency.there[0]}",
        actual=f"one-sided: seen by {adjacency.here[0]} only",
        confidence=confidence,
        evidence=(adjacency.where,),
    )


def _speed_mismatch(link: Sequence[Adjacency], rates_bps: list[int], confidence: Confidence) -> Finding:
    ends = [
        f"{format_rate(rate)} at {':'.join(adjacency.here)}" for adjacency, rate in zip(link, rates_bps, strict=True)
    ]
    return SPEED_MISMATCH.finding(
        entity=_label(link[0]),
        expected=ONE_SPEED,
        actual=" and ".join(ends),
        confidence=confidence,
        evidence=tuple(adjacency.where for adjacency in link),
    )


def _label(adjacency: Adjacency) -> str:
    return f"{':'.join(adjacency.here)} -> {':'.join(adjacency.there)}"
