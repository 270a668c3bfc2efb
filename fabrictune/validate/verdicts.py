"""Verdicts on measured collectives: the cause of most of the time, and the assumed NIC rate at which that turns.

The rate of the NICs is the scenario's number, and every part of an attribution follows from it. A verdict says at which
other rate another cause would have most of the time, within a factor of MOST_FACTOR of the scenario's.

Times that a rate decides (the NICs' bytes, and what flows lose to one another) go with its inverse; rounds, late ranks
and the cost of a call stay.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from fabrictune.collectives.measurement.measurements import Measurement
from fabrictune.foundation.units import format_rate
from fabrictune.validate.attribution import attribute
from fabrictune.validate.collective_model import Modelled

MOST_FACTOR = 4.0
_STEPS = 200  # in which the factor is searched, evenly on a logarithmic scale
_HALVINGS = 30


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A NIC rate at which another cause has most of the time."""

    rate_bps: float
    cause: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The cause of most of a measured time."""

    measurement: Measurement
    cause: str
    share: float
    rate_bps: float  # of the scenario's slowest NIC
    below: Turn | None  # at this rate and lower ones
    above: Turn | None

    @property
    def caveat(self) -> str:
        """Which assumed number would turn it, and at what value."""
        turns = [f"{_name(self.below.cause)} at {format_rate(self.below.rate_bps)} or less"] if self.below else []
        turns += [f"{_name(self.above.cause)} at {format_rate(self.above.rate_bps)} or more"] if self.above else []
        assumed = f"assumes NICs of {format_rate(self.rate_bps)}"
        if turns:
            return f"{assumed}; {', '.join(turns)}"
        lowest, highest = format_rate(self.rate_bps / MOST_FACTOR), format_rate(self.rate_bps * MOST_FACTOR)
        return f"{assumed}; the same from {lowest} to {highest}"


def find_verdict(
    measurement: Measurement,
    modelled: Modelled,
    *,
    measured_ps: float,
    alpha_ps: float,
    late_ps: float,
    rate_bps: float,
) -> Verdict:
    """Return the cause of most of a time, with the rates at which it turns; arguments as `attribute` takes them."""

    def cause_at(slowing: float) -> str:
        parts = attribute(measured_ps, slowed(modelled, slowing), alpha_ps=alpha_ps, late_ps=late_ps).parts_ps
        return max(parts, key=lambda name: parts[name])

    cause = cause_at(1.0)
    parts = attribute(measured_ps, modelled, alpha_ps=alpha_ps, late_ps=late_ps).parts_ps
    below, above = (_first_turn(cause_at, cause, factor) for factor in (MOST_FACTOR, 1 / MOST_FACTOR))
    return Verdict(
        measurement=measurement,
        cause=cause,
        share=parts[cause] / measured_ps,
        rate_bps=rate_bps,
        below=below and Turn(rate_bps=rate_bps / below[0], cause=below[1]),
        above=above and Turn(rate_bps=rate_bps / above[0], cause=above[1]),
    )


def slowed(modelled: Modelled, slowing: float) -> Modelled:
    """Return the model with NICs slower by a factor."""
    line_ps = modelled.line_ps * slowing
    bound_ps = line_ps + (modelled.bound_ps - modelled.line_ps)
    return replace(
        modelled,
        line_ps=line_ps,
        bound_ps=bound_ps,
        fair_ps=bound_ps + (modelled.fair_ps - modelled.bound_ps) * slowing,
        many_qps_ps=bound_ps + (modelled.many_qps_ps - modelled.bound_ps) * slowing,
    )


def _first_turn(cause_at: Callable[[float], str], cause: str, factor: float) -> tuple[float, str] | None:
    """Return the slowing nearest to 1, on the way to `factor`, from which another cause has most; None without one."""
    before = 1.0
    for step in range(1, _STEPS + 1):
        slowing = factor ** (step / _STEPS)
        if cause_at(slowing) != cause:
            break
        before = slowing
    else:
        return None
    for _ in range(_HALVINGS):
        middle = (before + slowing) / 2
        before, slowing = (middle, slowing) if cause_at(middle) == cause else (before, middle)
    return slowing, cause_at(slowing)


def _name(cause: str) -> str:
    return "the NICs" if cause == "nic" else cause.replace("_", " ")
