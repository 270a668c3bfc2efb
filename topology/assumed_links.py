"""Speeds and lengths of links whose files give none: the notes that say so, and what can be read from them again.

A fabric's notes stay with it in every file. What they call assumed must not count as known where two fabrics are
compared.
"""

import re
from collections.abc import Iterator, Sequence

from fabrictune.foundation.errors import UnitError
from fabrictune.foundation.units import CABLE_DELAY_PS_PER_MM, format_rate, parse_rate_bps
from fabrictune.topology.draft import DEFAULT_CABLE_MM

_RATE = re.compile(r"(\d+) links have no speed; assuming (.+)")
_CABLE = re.compile(r"links without a cable length, taken as (\d{1,9}) m: \d+")


def assumed_notes(num_rates: int, rate_bps: int, num_cables: int) -> Iterator[str]:
    """Yield notes of the links that were given a rate, and of those that were given the default cable."""
    if num_rates:
        yield f"{num_rates} links have no speed; assuming {format_rate(rate_bps)}"
    if num_cables:
        yield f"links without a cable length, taken as {DEFAULT_CABLE_MM // 1000} m: {num_cables}"


def assumed_rates_bps(notes: Sequence[str]) -> frozenset[int]:
    """Return the rates that the notes say were assumed of links."""
    rates = set()
    for note in notes:
        if match := _RATE.fullmatch(note):
            try:
                rates.add(parse_rate_bps(match[2]))
            except UnitError:
                continue
    return frozenset(rates)


def assumed_delays_ps(notes: Sequence[str]) -> frozenset[int]:
    """Return the delays of the cables that the notes say were assumed."""
    matches = filter(None, map(_CABLE.fullmatch, notes))
    return frozenset(int(match[1]) * 1000 * CABLE_DELAY_PS_PER_MM for match in matches)
