"""Growth of a cost with the number of ranks: linear and quadratic part, and extrapolation.

A cost y at n ranks is fitted as c + a n + b n² by least squares on relative errors, so that small jobs count as much as
large ones; a and b are not negative. Next to it is the plain exponent, the slope of log y over log n. An extrapolation
has the 95 % interval of all three parts together, also of one that the fit leaves out: nothing measured says that it
stays away at larger sizes. A cost whose growth changes beyond them is outside of any interval.
"""

import math
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.quantiles import student_t_95

MIN_SIZES = 4  # one more than the parts that are fitted
MAX_SPREAD = 2.0  # of an extrapolation's interval: its upper over its lower end


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Fitted growth of a cost."""

    constant: float
    linear: float  # for each rank
    quadratic: float  # for each pair of ranks
    exponent: float
    worst_error_fraction: float  # of the fitted points, relative to what was measured
    covariance_33: FloatArray  # of the three parts
    freedom: int  # sizes beyond the parts

    def at(self, num_ranks: float) -> float:
        """Return the cost that the fit gives for a number of ranks."""
        return self.constant + self.linear * num_ranks + self.quadratic * num_ranks**2

    def interval(self, num_ranks: float) -> tuple[float, float]:
        """Return the 95 % interval of the cost at a number of ranks; a cost is not negative."""
        terms_3 = np.array([1.0, num_ranks, num_ranks**2])
        margin = student_t_95(self.freedom) * math.sqrt(max(0.0, float(terms_3 @ self.covariance_33 @ terms_3)))
        return max(0.0, self.at(num_ranks) - margin), self.at(num_ranks) + margin

    def is_supported(self, num_ranks: float) -> bool:
        """Return whether the fit supports a cost at a number of ranks: its interval spans at most MAX_SPREAD."""
        low, high = self.interval(num_ranks)
        return high <= MAX_SPREAD * low

    def quadratic_fraction(self, num_ranks: float) -> float:
        """Return the share of the quadratic part in the cost at a number of ranks."""
        return self.quadratic * num_ranks**2 / self.at(num_ranks)


def fit_growth(num_ranks_N: IntArray, cost_N: FloatArray) -> Growth:
    """Fit MIN_SIZES sizes or more; costs must be positive."""
    assert len(num_ranks_N) >= MIN_SIZES, "as many parts as sizes fit anything"
    assert (cost_N > 0).all(), "a cost of nothing has no relative error"
    scale = float(num_ranks_N.max())  # so that no part is lost in another's rounding
    share_N = num_ranks_N / scale
    terms_N3 = np.stack([np.ones_like(share_N), share_N, share_N**2], axis=1) / cost_N[:, None]
    parts_3 = _fit(terms_N3)
    error_N = terms_N3 @ parts_3 - 1
    freedom = len(cost_N) - 3
    unit_3 = np.array([1.0, 1 / scale, 1 / scale**2])  # from parts of the largest size to parts of a rank
    covariance_33 = np.linalg.pinv(terms_N3.T @ terms_N3) * float(error_N @ error_N) / freedom
    slope = np.polyfit(np.log(num_ranks_N), np.log(cost_N), 1)[0]
    return Growth(
        constant=float(parts_3[0]),
        linear=float(parts_3[1]) / scale,
        quadratic=float(parts_3[2]) / scale**2,
        exponent=float(slope),
        worst_error_fraction=float(np.abs(error_N).max()),
        covariance_33=covariance_33 * np.outer(unit_3, unit_3),
        freedom=freedom,
    )


def _fit(terms_N3: FloatArray) -> FloatArray:
    """Return the parts whose sums come nearest to 1; a growing part that would be negative is left out."""
    fits = []
    for used in ([0, 1, 2], [0, 1], [0, 2], [0]):
        parts_3 = np.zeros(3)
        parts_3[used] = np.linalg.lstsq(terms_N3[:, used], np.ones(len(terms_N3)), rcond=None)[0]
        if (parts_3[1:] >= 0).all():
            fits.append(parts_3)
    return min(fits, key=lambda parts_3: float(np.sum((terms_N3 @ parts_3 - 1) ** 2)))
