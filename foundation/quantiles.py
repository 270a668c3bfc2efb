"""Quantiles of 90 % and 95 % confidence intervals.

Source: Abramowitz and Stegun, 26.7.3 and 26.7.4 for one and two degrees of freedom, 26.7.5 for more.
"""

import math

NORMAL_90 = 1.644854  # two-sided
NORMAL_95 = 1.959964


def student_t_90(freedom: int) -> float:
    """Return the two-sided 90 % quantile of Student's t, within 0.13 %."""
    return _student_t(0.90, NORMAL_90, float(freedom))


def student_t_95(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t, within 0.13 %."""
    return _student_t(0.95, NORMAL_95, float(freedom))


def _student_t(share: float, z: float, n: float) -> float:
    """Return the quantile in closed form where there is one, else by Cornish and Fisher's expansion about z."""
    if n == 1:
        return math.tan(math.pi * share / 2)
    if n == 2:
        return share * math.sqrt(2 / (1 - share**2))
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(sum(term / n**power for power, term in enumerate(terms)))
