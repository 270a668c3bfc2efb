"""Estimates from samples, with the interval in which the truth lies 19 times of 20.

Source: Student's t for a mean; Wilson (1927) for a share, whose interval stays within 0 and 1 and has a width even
where all of a sample, or none of it, has the property.

Shapes: S samples.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

NORMAL_95 = 1.959964  # two-sided


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
    margin = _student_t_95(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Estimate(value=mean, low=max(lowest, mean - margin), high=min(highest, mean + margin))


def estimate_share(has_property_S: ArrayLike) -> Estimate:
    """Return the share of a sample that has a property (Wilson's score interval)."""
    has = np.asarray(has_property_S, bool)
    share, weight = float(has.mean()), NORMAL_95**2 / len(has)
    centre = (share + weight / 2) / (1 + weight)
    margin = NORMAL_95 * math.sqrt((share * (1 - share) + weight / 4) / len(has)) / (1 + weight)
    return Estimate(value=share, low=max(0.0, centre - margin), high=min(1.0, centre + margin))


def _student_t_95(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t, within 0.1 % from 3 degrees of freedom on.

    Cornish-Fisher expansion about the normal quantile (Abramowitz and Stegun, 26.7.5).
    """
    z, n = NORMAL_95, float(freedom)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(sum(term / n**power for power, term in enumerate(terms)))
