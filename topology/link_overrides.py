"""Overrides of an imported fabric's links: rate, cable and delay that its files lack or have wrong.

An override applies to every link, or to those between two tiers. Overrides apply in their order, a later one over an
earlier one, and each leaves a note of how many links had which value before.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import (
    CABLE_DELAY_PS_PER_MM,
    LINK_RATES,
    MAX_LINK_RATE_BPS,
    format_duration,
    format_rate,
)
from fabrictune.topology.fabric import Fabric

MAX_DELAY_PS = 10**12  # a second: more than any cable on Earth
MAX_SHOWN = 3  # earlier values in a note


@dataclass(frozen=True, kw_only=True)
class LinkOverride:
    """Rate and delay of links that take the place of those in the files; at least one of them."""

    tiers: tuple[int, ...] = field(
        default=(), metadata={"help": "tiers of the two ends, 0 for hosts; by default of every link"}
    )
    rate_bps: int | None = field(default=None, metadata={"help": "rate of the links"})
    cable_mm: int | None = field(default=None, metadata={"help": "length of the cables, 5 ns a metre"})
    delay_ps: int | None = field(default=None, metadata={"help": "delay of the links, in place of a length"})

    def __post_init__(self) -> None:
        mistakes = [*_mistakes_of_values(self)]
        if self.tiers and (len(self.tiers) != 2 or min(self.tiers) < 0):
            found = f"{list(self.tiers)}"
            mistakes.append(Mistake(where="tiers", found=found, allowed="two tiers, 0 for hosts: [0, 1]"))
        if self.rate_bps is None and self.link_delay_ps is None:
            mistakes.append(Mistake(where="rate", found="no value", allowed="a rate, a cable or a delay"))
        if mistakes:
            raise InputError(*mistakes)

    @property
    def link_delay_ps(self) -> int | None:
        """Return the delay, by itself or as a length of cable; None where the files' remains."""
        return self.cable_mm * CABLE_DELAY_PS_PER_MM if self.cable_mm is not None else self.delay_ps


def _mistakes_of_values(override: LinkOverride) -> list[Mistake]:
    mistakes = []
    if override.rate_bps is not None and not 1 <= override.rate_bps <= MAX_LINK_RATE_BPS:
        mistakes.append(Mistake(where="rate", found=format_rate(override.rate_bps), allowed=LINK_RATES))
    if override.cable_mm is not None and override.delay_ps is not None:
        mistakes.append(Mistake(where="delay", found="a cable and a delay", allowed="one of the two"))
    elif override.link_delay_ps is not None and not 0 <= override.link_delay_ps <= MAX_DELAY_PS:
        key = "delay" if override.cable_mm is None else "cable"
        mistakes.append(Mistake(where=key, found=format_duration(override.link_delay_ps), allowed="up to 1 s of delay"))
    return mistakes


def override_links(fabric: Fabric, overrides: Sequence[LinkOverride], *, where: str = "links") -> Fabric:
    """Return the fabric with other rates and delays, and a note of each change; raises InputError.

    `where` is the place of tiers between which the fabric has no link.
    """
    rate_bps_P, delay_ps_P = fabric.port_rate_bps_P.copy(), fabric.port_delay_ps_P.copy()
    notes = list(fabric.notes)
    for override in overrides:
        is_meant_P = _links_between(fabric, override.tiers, where)
        links = _name_of(override.tiers, int(is_meant_P.sum()) // 2)
        if override.rate_bps is not None:
            notes.append(_note("rate", links, rate_bps_P[is_meant_P], override.rate_bps, format_rate))
            rate_bps_P[is_meant_P] = override.rate_bps
        if override.link_delay_ps is not None:
            notes.append(_note("delay", links, delay_ps_P[is_meant_P], override.link_delay_ps, format_duration))
            delay_ps_P[is_meant_P] = override.link_delay_ps
    return replace(fabric, port_rate_bps_P=rate_bps_P, port_delay_ps_P=delay_ps_P, notes=tuple(notes))


def _links_between(fabric: Fabric, tiers: tuple[int, ...], where: str) -> BoolArray:
    """Return which ports are of the links between two tiers, of all links where none are named."""
    tier_P = fabric.node_tier_N[fabric.port_node_P]
    ends = np.sort(np.stack([tier_P, tier_P[fabric.port_peer_P]]), axis=0)
    if not tiers:
        return np.ones(fabric.num_ports, bool)
    is_meant_P: BoolArray = (ends[0] == min(tiers)) & (ends[1] == max(tiers))
    if not is_meant_P.any():
        pairs = sorted({(int(low), int(high)) for low, high in ends.T if low >= 0})
        found = f"no link between tiers {min(tiers)} and {max(tiers)}"
        allowed = ", ".join(f"[{low}, {high}]" for low, high in pairs) or "no tiers: the fabric has none"
        raise InputError(Mistake(where=where, found=found, allowed=allowed))
    return is_meant_P


def _name_of(tiers: tuple[int, ...], num_links: int) -> str:
    between = f" between tiers {min(tiers)} and {max(tiers)}" if tiers else ""
    return f"{num_links:,} links{between}"


def _note(what: str, links: str, before_P: IntArray, after: int, show: Callable[[float], str]) -> str:
    """Return a note such as `rate of 24 links overridden: 400 Gbps in place of 100 Gbps`."""
    values = Counter(before_P.tolist()).most_common()
    shown = ", ".join(f"{show(value)} ({count // 2:,})" for value, count in values[:MAX_SHOWN])
    more = ", ..." if len(values) > MAX_SHOWN else ""
    before = show(values[0][0]) if len(values) == 1 else f"{shown}{more}"
    return f"{what} of {links} overridden: {show(after)} in place of {before}"
