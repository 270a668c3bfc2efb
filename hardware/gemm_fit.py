"""Rates of matrix products fitted to measured shapes: the five figures of a profile's section `gpu.gemm`.

Given `half_depth` and `load_cost`, the share of a layout is the median of what its shapes reach. These two are those of
a grid with the least mean of absolute logarithms of predicted over measured time. The error on shapes that were left
out is that of five fits, each without a fifth of the shapes.

Left out: shapes whose bytes take most of their measured time, when the shares are found; their errors count.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import PS_PER_S
from fabrictune.hardware.gemm import Layout, Product, product_s, step_area
from fabrictune.hardware.gpu import GemmSpec, GpuSpec

HALF_DEPTHS = range(0, 401, 20)
LOAD_COSTS = (0, 4, 8, 16, 24, 32, 48, 64)
MIN_SHAPES = 10  # two for each of the figures
NUM_FOLDS = 5
_BOUND_BY_BYTES = 0.7  # share of the measured time, from which bytes may be what a shape takes
_HALF_BYTES = 2
_FLOPS = 2


@dataclass(frozen=True, kw_only=True)
class MeasuredProduct:
    """A product, and the rate that it reached."""

    product: Product
    flops_per_s: float
    result_bytes: int = _HALF_BYTES  # of an entry, read and written where it is added to

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        shape = self.product
        operands = _HALF_BYTES * shape.k * (shape.m + shape.n)
        return shape.batch * (operands + self.result_bytes * shape.m * shape.n)


@dataclass(frozen=True, kw_only=True)
class GemmFit:
    """Fitted rates, and the error of each shape: predicted over measured time, less one."""

    gemm: GemmSpec
    errors_N: FloatArray
    held_out_errors_N: FloatArray


def fit_products(gpu: GpuSpec, measured: Sequence[MeasuredProduct]) -> GemmFit:
    """Return the rates that fit measured shapes of a GPU; raises InputError for fewer than MIN_SHAPES."""
    if len(measured) < MIN_SHAPES:
        allowed = f"{MIN_SHAPES} or more: five figures are fitted"
        raise InputError(Mistake(where="shapes", found=f"{len(measured)} shapes", allowed=allowed))
    gemm = _fit(gpu, measured)
    held_out_N = np.zeros(len(measured))
    for fold in range(NUM_FOLDS):
        without = [one for place, one in enumerate(measured) if place % NUM_FOLDS != fold]
        held_out_N[fold::NUM_FOLDS] = relative_errors(replace(gpu, gemm=_fit(gpu, without)), measured[fold::NUM_FOLDS])
    return GemmFit(gemm=gemm, errors_N=relative_errors(replace(gpu, gemm=gemm), measured), held_out_errors_N=held_out_N)


def relative_errors(gpu: GpuSpec, measured: Sequence[MeasuredProduct]) -> FloatArray:
    """Return the predicted over the measured time of each shape, less one."""
    predicted_N = [max(product_s(gpu, one.product), _memory_s(gpu, one)) + _launch_s(gpu) for one in measured]
    return np.array(predicted_N) / _durations_s(measured) - 1


def _fit(gpu: GpuSpec, measured: Sequence[MeasuredProduct]) -> GemmSpec:
    """Return the best rates of the grid."""
    best_score, best = math.inf, gpu.gemm
    depth_N = np.array([one.product.k for one in measured], float)
    for load_cost in LOAD_COSTS:
        loaded = replace(gpu, gemm=replace(gpu.gemm, load_cost=float(load_cost)))
        area_N = np.array([step_area(loaded, one.product) for one in measured])
        for half_depth in HALF_DEPTHS:
            ideal_s_N = _FLOPS * area_N * (depth_N + half_depth) / gpu.peak_flops_per_s
            shares, score = _shares(gpu, measured, ideal_s_N)
            if score < best_score:
                best_score = score
                best = replace(loaded.gemm, half_depth=float(half_depth), **shares)
    return best


def _shares(gpu: GpuSpec, measured: Sequence[MeasuredProduct], ideal_s_N: FloatArray) -> tuple[dict[str, float], float]:
    """Return the shares of the layouts by their fields, and the score of all shapes with them.

    `ideal_s_N` are times at the peak. A layout of which no shape was measured keeps its share.
    """
    measured_s_N, memory_s_N = _durations_s(measured), np.array([_memory_s(gpu, one) for one in measured])
    layout_N = np.array([one.product.layout for one in measured])
    arithmetic_s_N = np.maximum(measured_s_N - _launch_s(gpu), 1 / PS_PER_S)
    counts_N = memory_s_N < _BOUND_BY_BYTES * measured_s_N
    predicted_s_N = np.array(ideal_s_N)
    shares: dict[str, float] = {}
    layouts: tuple[Layout, ...] = ("TN", "NN", "NT")
    for layout in layouts:
        name, is_own_N = f"{layout.lower()}_fraction", layout_N == layout
        share = getattr(gpu.gemm, name)
        if (is_own_N & counts_N).any():
            share = min(float(np.median((ideal_s_N / arithmetic_s_N)[is_own_N & counts_N])), 1.0)
            shares[name] = share
        predicted_s_N[is_own_N] /= share
    predicted_s_N = np.maximum(predicted_s_N, memory_s_N) + _launch_s(gpu)
    return shares, float(np.abs(np.log(predicted_s_N / measured_s_N)).mean())


def _durations_s(measured: Sequence[MeasuredProduct]) -> FloatArray:
    return np.array([one.product.flops / one.flops_per_s for one in measured])


def _memory_s(gpu: GpuSpec, measured: MeasuredProduct) -> float:
    return measured.bytes / (gpu.memory.rate_bytes_per_s * gpu.memory.achieved_fraction)


def _launch_s(gpu: GpuSpec) -> float:
    return gpu.launch_ps / PS_PER_S
