"""Line through measured times: the cost of a call, and the cost of each byte.

    time = alpha + beta * bytes

by least squares of relative errors, so that small sizes count as much as large ones. Each of the two has a 95 %
interval (Student's t) from the errors that the line leaves; two sizes leave none. A real call costs no less than
nothing and a byte more than nothing: an interval that allows neither says that the times are no line.

Source: Hockney, "The communication challenge for MPP", Parallel Computing 20 (1994).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fabrictune.foundation.quantiles import student_t_95

Interval = tuple[float, float]
_UNBOUNDED: Interval = (-math.inf, math.inf)


@dataclass(frozen=True, kw_only=True)
class AlphaBetaLine:
    """Alpha and beta, in whatever unit the times had."""

    alpha: float
    beta: float  # of a byte
    alpha_interval: Interval = _UNBOUNDED  # of 95 %; unbounded where no error is left to tell by
    beta_interval: Interval = _UNBOUNDED

    def at(self, num_bytes: float) -> float:
        """Return the time of a size."""
        return self.alpha + self.beta * num_bytes

    @property
    def is_physical(self) -> bool:
        """Whether a call costs no less than nothing and a byte more than nothing."""
        return self.alpha >= 0 and self.beta > 0

    @property
    def may_be_physical(self) -> bool:
        """Whether the intervals allow that."""
        return self.alpha_interval[1] >= 0 and self.beta_interval[1] > 0


def fit_line(bytes_E: ArrayLike, time_E: ArrayLike) -> AlphaBetaLine:
    """Return the line through times of two sizes or more, none of them 0."""
    sizes, times = np.asarray(bytes_E, np.float64), np.asarray(time_E, np.float64)
    design_E2 = np.stack([np.ones(len(sizes)), sizes], axis=1) / times[:, None]
    (alpha, beta), *_ = np.linalg.lstsq(design_E2, np.ones(len(sizes)), rcond=None)
    freedom = len(sizes) - 2
    if freedom < 1:
        return AlphaBetaLine(alpha=float(alpha), beta=float(beta))
    error_E = 1.0 - design_E2 @ np.array([alpha, beta])
    scale_2 = np.linalg.norm(design_E2, axis=0)  # or bytes of a gigabyte would swamp the ones
    inverse_22 = np.linalg.pinv((design_E2 / scale_2).T @ (design_E2 / scale_2)) / np.outer(scale_2, scale_2)
    deviation = math.sqrt(float(error_E @ error_E) / freedom)
    margin_2 = student_t_95(freedom) * deviation * np.sqrt(np.diag(inverse_22))
    return AlphaBetaLine(
        alpha=float(alpha),
        beta=float(beta),
        alpha_interval=(float(alpha - margin_2[0]), float(alpha + margin_2[0])),
        beta_interval=(float(beta - margin_2[1]), float(beta + margin_2[1])),
    )
