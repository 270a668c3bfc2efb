"""Verdict on a measured collective at every usual NIC rate, for a rate that nobody knows.

A log of NCCL rarely says how fast its NICs are. The cause of most of the time is worked out at each rate in RATES_BPS
from one model (`verdicts`), and between two rates with different causes the rate at which it turns. A rate at which the
measured time is less than the bound of its links is impossible.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from fabrictune.validate.attribution import attribute
from fabrictune.validate.collective_model import Modelled
from fabrictune.validate.verdicts import slowed

GBPS = 10**9
RATES_BPS = tuple(rate * GBPS for rate in (25, 50, 100, 200, 400, 800))
SERIES_COLUMNS = ("operation", "is_in_place", "num_ranks", "size_bytes")  # of the table verdict_rates
_HALVINGS = 30


@dataclass(frozen=True, kw_only=True)
class RateVerdict:
    """The cause of most of a time with NICs of one rate."""

    rate_bps: float
    cause: str
    share: float
    is_possible: bool  # the time is not less than the bound at this rate
    turn_bps: float  # rate, before the next one of the list, at which another cause begins to have most; -1 none


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A measured time and what the measurements themselves say of it, as `attribute` takes them."""

    measured_ps: float
    alpha_ps: float
    late_ps: float


def verdicts_by_rate(timed: Timed, modelled: Modelled, *, rate_bps: float, least_of_bound: float) -> list[RateVerdict]:
    """Return a verdict for each usual rate; `rate_bps` is that of the model."""
    causes = {rate: _cause(timed, modelled, rate_bps / rate) for rate in RATES_BPS}
    turns = dict(_turns(timed, modelled, rate_bps, {rate: cause for rate, (cause, _) in causes.items()}))
    return [
        RateVerdict(
            rate_bps=rate,
            cause=cause,
            share=share,
            is_possible=timed.measured_ps >= least_of_bound * slowed(modelled, rate_bps / rate).bound_ps,
            turn_bps=turns.get(rate, -1.0),
        )
        for rate, (cause, share) in causes.items()
    ]


def _cause(timed: Timed, modelled: Modelled, slowing: float) -> tuple[str, float]:
    parts = attribute(
        timed.measured_ps, slowed(modelled, slowing), alpha_ps=timed.alpha_ps, late_ps=timed.late_ps
    ).parts_ps
    cause = max(parts, key=lambda name: parts[name])
    return cause, parts[cause] / timed.measured_ps


def _turns(
    timed: Timed, modelled: Modelled, rate_bps: float, causes: dict[float, str]
) -> Iterator[tuple[float, float]]:
    """Yield each rate after which the cause turns, and where."""
    for rate, following in pairwise(causes):
        if causes[rate] == causes[following]:
            continue
        low, high = float(rate), float(following)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_same = _cause(timed, modelled, rate_bps / middle)[0] == causes[rate]
            low, high = (middle, high) if is_same else (low, middle)
        yield rate, high
