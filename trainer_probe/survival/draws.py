"""Ends of the 90 % interval of draws."""

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.metrics.formulas import percentiles


def ends_90(values_D: FloatArray) -> tuple[float, float]:
    """Return the values that 5 % and 95 % of the draws are not above; both the value of a single draw."""
    low, high = percentiles(values_D, (0.05, 0.95))
    return float(low), float(high)
