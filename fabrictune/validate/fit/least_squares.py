"""Robust least squares of relative errors, for times that are sums of terms.

    time_E = design_EP @ value_P

An error counts relative to the time of the model, found by iteration: relative to the measured time, times that came
out short would count more than those that came out long. Huber's weights take the edge off outliers. Where errors next
to each other have one sign, which is the model's fault and no noise, their number overstates what they say: the
covariance is widened by their autocorrelation.

Source: Huber and Ronchetti, "Robust Statistics" (2009), 7.6 to 7.9 (weights, covariance with its correction factor);
Wooldridge, "Introductory Econometrics", 12.5 (autocorrelation of first order).

Shapes: E points, P parameters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray
from fabrictune.foundation.quantiles import student_t_90

_HUBER = 1.345  # 95 % as efficient as least squares where errors are normal
_LEAST_SPREAD = 1e-4  # programs print times with four digits
_FEWEST_FREE = 10  # points beyond the parameters, from which an outlier can be told
_ITERATIONS = 50
_FARTHEST = 5.0  # times a measured time that a modelled one counts as, while iterating
_RANK_TOLERANCE = 1e-7
_MOST_AUTOCORRELATION = 0.8


@dataclass(frozen=True, kw_only=True)
class LinearFit:
    """Values of the parameters, and how sure they are."""

    value_P: FloatArray
    covariance_PP: FloatArray  # infinite where no error is left to tell by
    scaled_EP: FloatArray  # the design, over the model's times
    model_E: FloatArray
    error_E: FloatArray  # modelled over measured time, less 1
    weight_E: FloatArray  # 1 for a point that counts in full
    spread: float  # of relative errors: their robust standard deviation
    autocorrelation: float

    @cached_property
    def num_free(self) -> int:
        """Points beyond the parameters."""
        return len(self.error_E) - len(self.value_P)

    @cached_property
    def margin_P(self) -> FloatArray:
        """Half of the 90 % interval of each value."""
        if self.num_free < 1:
            return np.full(len(self.value_P), np.inf)
        margin_P: FloatArray = student_t_90(self.num_free) * np.sqrt(np.diag(self.covariance_PP))
        return margin_P

    def response_P(self, held_E: FloatArray) -> FloatArray:
        """Return by how much the values change where a part of the times that was held changes by `held_E`."""
        return -_solve(self.scaled_EP, held_E / self.model_E, self.weight_E)

    @cached_property
    def correlation_PP(self) -> FloatArray:
        """Correlation of the values; nan where no error is left."""
        deviation_P = np.sqrt(np.diag(self.covariance_PP))
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation_PP: FloatArray = self.covariance_PP / np.outer(deviation_P, deviation_P)
        return correlation_PP


def fit_linear(design_EP: FloatArray, time_E: FloatArray, neighbour_E: BoolArray) -> LinearFit:
    """Return the values that times determine; the columns of the design must be independent (`dependent_columns`).

    `neighbour_E` says which points follow the one before them in size, in one series.
    """
    assert not dependent_columns(design_EP, time_E), "columns in one proportion"
    model_E, weight_E, value_P = time_E, np.ones(len(time_E)), np.zeros(design_EP.shape[1])
    spread = _LEAST_SPREAD
    for _ in range(_ITERATIONS):
        before_P = value_P
        value_P = _solve(design_EP / model_E[:, None], time_E / model_E, weight_E)
        model_E = np.clip(design_EP @ value_P, time_E / _FARTHEST, time_E * _FARTHEST)
        residual_E = (time_E - design_EP @ value_P) / model_E
        spread = _robust_spread(residual_E, design_EP.shape[1])
        weight_E = _huber_weights(residual_E, spread, design_EP.shape[1])
        if np.allclose(value_P, before_P, rtol=1e-9, atol=0):
            break
    autocorrelation = _autocorrelation(residual_E, neighbour_E)
    scaled_EP = design_EP / model_E[:, None]
    return LinearFit(
        value_P=value_P,
        covariance_PP=_covariance(scaled_EP, residual_E, weight_E, autocorrelation),
        scaled_EP=scaled_EP,
        model_E=model_E,
        error_E=design_EP @ value_P / time_E - 1,
        weight_E=weight_E,
        spread=spread,
        autocorrelation=autocorrelation,
    )


def dependent_columns(design_EP: FloatArray, time_E: FloatArray) -> list[list[int]]:
    """Return the groups of columns of which only a sum shows in the times: each group lacks one equation."""
    scaled_EP = design_EP / time_E[:, None]
    norm_P = np.linalg.norm(scaled_EP, axis=0)
    empty = [[int(column)] for column in np.flatnonzero(norm_P == 0)]
    filled = np.flatnonzero(norm_P)
    if not len(filled):
        return empty
    unit_EP = scaled_EP[:, filled] / norm_P[filled]
    reduced = np.linalg.qr(unit_EP, mode="r") if len(unit_EP) > len(filled) else unit_EP
    _, singular, right = np.linalg.svd(reduced)
    rank = int((singular > _RANK_TOLERANCE * singular[0]).sum())
    return [*empty, *([int(filled[column]) for column in np.flatnonzero(abs(row) > 1e-4)] for row in right[rank:])]


def neighbours(group_E: Sequence[object]) -> BoolArray:
    """Return which points are of the group of the point before them."""
    return np.array([bool(row) and group_E[row] == group_E[row - 1] for row in range(len(group_E))], bool)


def _solve(design_EP: FloatArray, time_E: FloatArray, weight_E: FloatArray) -> FloatArray:
    root_E = np.sqrt(weight_E)
    norm_P = np.linalg.norm(design_EP, axis=0)
    solution_P, *_ = np.linalg.lstsq(design_EP / norm_P * root_E[:, None], time_E * root_E, rcond=None)
    value_P: FloatArray = solution_P / norm_P
    return value_P


def _robust_spread(residual_E: FloatArray, num_parameters: int) -> float:
    """Return the standard deviation of normal errors with this median of sizes (0.6745 of it)."""
    num_free = len(residual_E) - num_parameters
    if num_free < 1:
        return _LEAST_SPREAD
    correction = math.sqrt(len(residual_E) / num_free)
    return max(_LEAST_SPREAD, float(np.median(np.abs(residual_E))) / 0.6745 * correction)


def _huber_weights(residual_E: FloatArray, spread: float, num_parameters: int) -> FloatArray:
    if len(residual_E) - num_parameters < _FEWEST_FREE:
        return np.ones(len(residual_E))
    weight_E: FloatArray = np.minimum(1.0, _HUBER * spread / np.maximum(np.abs(residual_E), 1e-300))
    return weight_E


def _covariance(
    scaled_EP: FloatArray, residual_E: FloatArray, weight_E: FloatArray, autocorrelation: float
) -> FloatArray:
    """Return Huber's covariance: of the clipped errors, over the share of errors that are not clipped, squared."""
    num_points, num_parameters = scaled_EP.shape
    if num_points <= num_parameters:
        return np.full((num_parameters, num_parameters), np.inf)
    unclipped = float((weight_E >= 1).mean())
    correction = 1 + num_parameters / num_points * (1 - unclipped) / unclipped
    variance = float(((weight_E * residual_E) ** 2).sum()) / (num_points - num_parameters) / unclipped**2
    variance = max(variance * correction**2, _LEAST_SPREAD**2)
    widened = (1 + autocorrelation) / (1 - autocorrelation)
    norm_P = np.linalg.norm(scaled_EP, axis=0)
    inverse_PP = np.linalg.inv((scaled_EP / norm_P).T @ (scaled_EP / norm_P)) / np.outer(norm_P, norm_P)
    covariance_PP: FloatArray = inverse_PP * variance * widened
    return covariance_PP


def _autocorrelation(residual_E: FloatArray, neighbour_E: BoolArray) -> float:
    """Return the correlation of errors with those before them, 0 where chance may make it (90 %, one side)."""
    rows = np.flatnonzero(neighbour_E)
    total = float((residual_E**2).sum())
    if len(rows) < _FEWEST_FREE or not total:
        return 0.0
    correlation = float((residual_E[rows] * residual_E[rows - 1]).sum()) / total * len(residual_E) / len(rows)
    return min(correlation, _MOST_AUTOCORRELATION) if correlation > 1.2816 / np.sqrt(len(rows)) else 0.0
