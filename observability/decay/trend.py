"""Trends: a straight line through the means of neighbouring steps, the extreme ones cut.

Means, so that what comes at some steps only, such as a stall, has a trend too; cut, so that one bad moment has none.

Shapes: S steps.
"""

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.robust import deviation

MAX_POINTS = 20
CUT = 20  # a twentieth of the points at each end
MIN_SIGMAS = 3.0


def growth(value_S: FloatArray, step_S: FloatArray) -> float:
    """Return by how much a value grows from the first step to the last; 0 for one point."""
    values, steps = _points(value_S, step_S)
    if len(values) < 2:
        return 0.0
    return float(np.polyfit(steps, values, 1)[0] * (steps[-1] - steps[0]))


def is_trend(value_S: FloatArray, step_S: FloatArray, grown: float) -> bool:
    """Return whether a growth is beyond what the scatter of the values about it allows for."""
    values, steps = _points(value_S, step_S)
    span = max(float(steps[-1] - steps[0]), 1.0)
    scatter = deviation(values - grown * (steps - steps[0]) / span)
    # the slope's standard error over n evenly spaced points is about sqrt(12 / n) scatters over the span
    return bool(abs(grown) > MIN_SIGMAS * scatter * np.sqrt(12 / len(values)))


def _points(value_S: FloatArray, step_S: FloatArray) -> tuple[FloatArray, FloatArray]:
    number = min(MAX_POINTS, len(value_S))
    values, steps = (np.array([part.mean() for part in np.array_split(all_S, number)]) for all_S in (value_S, step_S))
    ordered = np.sort(values)
    return np.clip(values, ordered[number // CUT], ordered[-1 - number // CUT]), steps
