"""How well measured times determine a parameter, and what to measure next.

The interval is that of the errors. It says nothing of sizes where another protocol is at work: the line through large
sizes has an intercept, and it is no latency. So a latency is determined only by times of which latencies are half or
more, and a rate by times of which bytes are.
"""

from dataclasses import dataclass
from enum import StrEnum

from fabrictune.foundation.units import format_bytes
from fabrictune.validate.fit.calibration import Calibration, Estimate
from fabrictune.validate.fit.terms import PARAMETERS

WELL_WITHIN = 0.1  # half of the interval over the value
WEAKLY_WITHIN = 0.5
LEAST_SHARE = 0.5


class Verdict(StrEnum):
    """How well times determine a parameter."""

    WELL = "well determined"
    WEAK = "weak"
    NOT = "not determined"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """An estimate with its verdict, its reason, and what would determine it better."""

    estimate: Estimate
    verdict: Verdict
    reason: str = ""
    next_step: str = ""


def judge(calibration: Calibration) -> list[Judged]:
    """Return the verdict of every parameter that stands in the times."""
    return [_judged(estimate, calibration) for estimate in calibration.estimates]


def _judged(estimate: Estimate, calibration: Calibration) -> Judged:
    reason, next_step = _why_not(estimate, calibration)
    if reason:
        return Judged(estimate=estimate, verdict=Verdict.NOT, reason=reason, next_step=next_step)
    margin = estimate.relative_margin
    if margin <= WELL_WITHIN:
        return Judged(estimate=estimate, verdict=Verdict.WELL)
    verdict = Verdict.WEAK if margin <= WEAKLY_WITHIN else Verdict.NOT
    reason, next_step = _why_wide(estimate, calibration)
    return Judged(estimate=estimate, verdict=verdict, reason=reason, next_step=next_step)


def _why_not(estimate: Estimate, calibration: Calibration) -> tuple[str, str]:
    """Return why the times say nothing of a parameter, and what to measure, or two empty texts."""
    if estimate.share < LEAST_SHARE and not estimate.is_held:
        part = f"{max(estimate.share, 0):.0%} of a time at most is "
        if PARAMETERS[estimate.name].is_rate:
            largest = format_bytes(_larger(estimate, calibration))
            return f"{part}its bytes'", f"sizes above {largest} determine the rate: add -e 8G"
        smallest = format_bytes(_smaller(estimate, calibration))
        return f"{part}latency", f"sizes below {smallest} determine the latency: add -b 8"
    if estimate.is_held and estimate.aliases:
        others = " and ".join(estimate.aliases)
        return (
            f"only a sum of it and {others} shows",
            "add a run of another number of hosts, or of an operation with other rounds",
        )
    if estimate.is_held:
        return "it may be none: the interval has zero in it", "measure more sizes with more iterations (-n 100)"
    if calibration.num_free < 1:
        return "as many points as numbers fitted: no error is left to tell by", "measure more sizes (-f 2)"
    return "", ""


def _why_wide(estimate: Estimate, calibration: Calibration) -> tuple[str, str]:
    """Return why an interval is wide, and what would narrow it."""
    if estimate.aliases:
        others = " and ".join(estimate.aliases)
        step = "add a run of another number of hosts, or of an operation with other rounds"
        return f"it rests on the base profile's {others}", step
    if calibration.autocorrelation:
        return (
            "errors of neighbouring sizes have one sign: the times follow no line",
            "measure sizes in between (-f 2), so that changes of protocol show",
        )
    repeats = max(2.0, (estimate.relative_margin / WELL_WITHIN) ** 2)
    return (
        f"times scatter by {calibration.spread:.1%} about the model",
        f"repeat the measurement {min(repeats, 1000):.0f} times, or on an idle machine",
    )


def _smaller(estimate: Estimate, calibration: Calibration) -> float:
    """Return the size below which latencies are half of a time, by the fit, or a quarter of the least size."""
    sizes = [
        lines[0].intercept_ns / lines[-1].byte_ns
        for lines, one in zip(calibration.lines, calibration.modelled, strict=True)
        if estimate.name in one.terms.latency and lines[-1].byte_ns > 0 and lines[0].intercept_ns > 0
    ]
    return max(1.0, min([*sizes, estimate.least_bytes / 4]))


def _larger(estimate: Estimate, calibration: Calibration) -> float:
    """Return the size above which bytes are half of a time, by the fit, or four times the largest size."""
    sizes = [
        lines[0].intercept_ns / lines[-1].byte_ns
        for lines, one in zip(calibration.lines, calibration.modelled, strict=True)
        if estimate.name in one.terms.bytes and lines[-1].byte_ns > 0 and lines[0].intercept_ns > 0
    ]
    return max([*sizes, estimate.most_bytes * 4])
