"""Line through measured times: the cost of a call, and the cost of each byte.

    time = alpha + beta * bytes

by least squares of relative errors, so that small sizes count as much as large ones.

Source: Hockney, "The communication challenge for MPP", Parallel Computing 20 (1994).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, kw_only=True)
class AlphaBetaLine:
    """Alpha and beta, in whatever unit the times had."""

    alpha: float
    beta: float  # of a byte

    def at(self, num_bytes: float) -> float:
        """Return the time of a size."""
        return self.alpha + self.beta * num_bytes


def fit_line(bytes_E: ArrayLike, time_E: ArrayLike) -> AlphaBetaLine:
    """Return the line through times of two sizes or more, none of them 0."""
    sizes, times = np.asarray(bytes_E, np.float64), np.asarray(time_E, np.float64)
    design_E2 = np.stack([np.ones(len(sizes)), sizes], axis=1) / times[:, None]
    (alpha, beta), *_ = np.linalg.lstsq(design_E2, np.ones(len(sizes)), rcond=None)
    return AlphaBetaLine(alpha=float(alpha), beta=float(beta))
