"""Limits on time, from what a job has measured of itself.

The median and the median absolute deviation are used, since a few slow steps change neither. A deviation counts 1.4826
times, as much as a standard deviation of normal noise.

Source: Iglewicz and Hoaglin (1993), "How to detect and handle outliers", for the factor and the robust z-score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from fabrictune.trainer_probe.operation.observations import Section, Snapshot
from fabrictune.trainer_probe.operation.rules.settings import RuleSettings

NORMAL = 1.4826  # standard deviations in a median absolute deviation


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long a rank may be quiet at one moment of a job."""

    step_median_s: float | None  # None before a step was measured
    stopped_s: float  # in state T
    hang_s: float  # within a step, doing nothing
    busy_s: float  # within a step, using its processor
    save_s: float
    first_step_s: float
    start_s: float
    load_s: float

    def of_section(self, section: Section) -> float | None:
        """Return the limit of a section; None of those in which a rank may be quiet for ever."""
        match section:
            case "step":
                return self.hang_s
            case "save":
                return self.save_s
            case "first step":
                return self.first_step_s
            case "load":
                return self.load_s
            case "start":
                return self.start_s
            case _:
                return None


def measure_limits(snapshot: Snapshot, settings: RuleSettings) -> Limits:
    """Return the limits that follow from a job's own measurements."""
    steps_s = _usable(snapshot.step_s)
    center_s = median(steps_s) if steps_s else None
    hang_s = settings.first_step_floor_s
    if center_s is not None:
        spread_s = settings.hang_deviations * deviation(steps_s)
        hang_s = max(settings.hang_floor_s, settings.hang_medians * center_s + spread_s)
    start_s = _section_limit(snapshot.start_s, settings.start_floor_s, settings)
    return Limits(
        step_median_s=center_s,
        stopped_s=settings.unmeasured_stopped_s
        if center_s is None
        else max(settings.stopped_floor_s, settings.stopped_medians * center_s),
        hang_s=hang_s,
        busy_s=hang_s * settings.busy_factor,
        save_s=_section_limit(snapshot.save_s, settings.save_floor_s, settings),
        first_step_s=max(settings.first_step_floor_s, start_s),
        start_s=start_s,
        load_s=max(settings.load_floor_s, start_s),
    )


def deviation(values: Sequence[float]) -> float:
    """Return the median absolute deviation, as a standard deviation of normal noise."""
    center = median(values)
    return NORMAL * median(abs(value - center) for value in values)


def typical(measured_s: Sequence[float]) -> float:
    """Return the median of what was measured, 0 where nothing was."""
    usable_s = _usable(measured_s)
    return median(usable_s) if usable_s else 0.0


def _section_limit(measured_s: Sequence[float], floor_s: float, settings: RuleSettings) -> float:
    return max(floor_s, settings.section_medians * typical(measured_s))


def _usable(measured_s: Sequence[float]) -> list[float]:
    return [value for value in measured_s if 0 < value < float("inf")]
