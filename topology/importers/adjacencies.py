"""Adjacencies: neighbours that devices report on their ports, joined into cables.

A neighbour table describes a link from one end; the tables of both ends make one cable. Where they do not agree the
cable is kept, and the disagreement is a finding returned with the fabric: an end that is silent about a link although
its own table was read, or two ends that run at different rates, of which the lower is taken. A port with two different
neighbours cannot be kept; that is a mistake of the files.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from fabrictune.foundation.finding_rules.fabric import ONE_SIDED, SPEED_MISMATCH
from fabrictune.foundation.records import Confidence, Finding
from fabrictune.foundation.units import CABLE_DELAY_PS_PER_MM, format_rate
from fabrictune.topology.draft import DEFAULT_CABLE_MM, DEFAULT_RATE_BPS
from fabrictune.topology.fabric import NO_RAIL
from fabrictune.topology.importers.cabling import Cable, Cabling, End


@dataclass(frozen=True, kw_only=True)
class Adjacency:
    """One row of a neighbour table."""

    here: End
    there: End
    where: str
    rate_bps: int | None = None  # of the port here; None where its table does not tell
    cable_mm: int | None = None
    rail: int = NO_RAIL


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
    for link in links:
        cabling.cables.append(_cable(link, default_rate_bps))
        first = link[0]
        if len(link) == 1 and first.there[0] in reporters:
            cabling.findings.append(_one_sided(first, confidence))
        rates_bps = [adjacency.rate_bps for adjacency in link if adjacency.rate_bps is not None]
        if len(set(rates_bps)) > 1:
            cabling.findings.append(_speed_mismatch(link, rates_bps, confidence))
    num_default_rates = sum(all(adjacency.rate_bps is None for adjacency in link) for link in links)
    num_default_cables = sum(all(adjacency.cable_mm is None for adjacency in link) for link in links)
    if num_default_rates:
        rate = format_rate(default_rate_bps)
        cabling.notes.append(f"{num_default_rates} links have no speed; assuming {rate}")
    if num_default_cables:
        metres = DEFAULT_CABLE_MM // 1000
        cabling.notes.append(f"links without a cable length, taken as {metres} m: {num_default_cables}")


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


def _pair(adjacencies: Iterable[Adjacency]) -> list[list[Adjacency]]:
    """Return one or two adjacencies for each link."""
    links: list[list[Adjacency]] = []
    one_sided: dict[tuple[End, End], list[Adjacency]] = {}
    for adjacency in adjacencies:
        link = one_sided.pop((adjacency.there, adjacency.here), None)
        if link is None:
            link = one_sided[adjacency.here, adjacency.there] = []
            links.append(link)
        link.append(adjacency)
    return links


def _cable(link: list[Adjacency], default_rate_bps: int) -> Cable:
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


def _speed_mismatch(link: list[Adjacency], rates_bps: list[int], confidence: Confidence) -> Finding:
    ends = [
        f"{format_rate(rate)} at {':'.join(adjacency.here)}" for adjacency, rate in zip(link, rates_bps, strict=True)
    ]
    return SPEED_MISMATCH.finding(
        entity=_label(link[0]),
        expected="one speed at both ends",
        actual=" and ".join(ends),
        confidence=confidence,
        evidence=tuple(adjacency.where for adjacency in link),
    )


def _label(adjacency: Adjacency) -> str:
    return f"{':'.join(adjacency.here)} -> {':'.join(adjacency.there)}"
