"""Estimates from samples, with the interval in which the truth lies 19 times of 20.

Source: Student's t for a mean; Wilson (1927) for a share, whose interval stays within 0 and 1 and has a width even
where all of a sample, or none of it, has the property.

Shapes: S samples.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fabrictune.foundation.quantiles import NORMAL_95, student_t_95


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure, and the ends of its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def exactly_known(value: float) -> Estimate:
    """Return a figure without uncertainty."""
    return Estimate(value=value, low=value, high=value)


def estimate_mean(sample_S: ArrayLike, *, lowest: float = -math.inf, highest: float = math.inf) -> Estimate:
    """Return the mean of a sample of values that lie between `lowest` and `highest`, and so does their mean.

    One value alone says nothing of its spread: its interval is all that is possible.
    """
    values = np.asarray(sample_S, np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(value=mean, low=lowest, high=highest)
    margin = student_t_95(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Estimate(value=mean, low=max(lowest, mean - margin), high=min(highest, mean + margin))


def estimate_share(has_property_S: ArrayLike) -> Estimate:
    """Return the share of a sample that has a property (Wilson's score interval)."""
    has = np.asarray(has_property_S, bool)
    share, weight = float(has.mean()), NORMAL_95**2 / len(has)
    centre = (share + weight / 2) / (1 + weight)
    margin = NORMAL_95 * math.sqrt((share * (1 - share) + weight / 4) / len(has)) / (1 + weight)
    return Estimate(value=share, low=max(0.0, centre - margin), high=min(1.0, centre + margin))
