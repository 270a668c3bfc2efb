"""Time of a matrix product by its shape: tiles over multiprocessors, in waves.

A kernel computes the result in tiles, each on one multiprocessor. Tiles run in waves of one per multiprocessor, and a
last wave that is not full takes as long as a full one. A tile of r x c takes, for each step of the depth K, the time of
its r c multiply-additions and of loading r + c elements; and `half_depth` steps more, for its start and its end. Of the
kernels' tiles the one with the least time is taken.

An operand layout is named as cuBLAS has it, for operands by columns. Of a linear layer whose weight is stored by
outputs, forward is TN, the gradient of data NN, the gradient of weights NT.

Source: NVIDIA, "Matrix Multiplication Background User's Guide": sizes of tiles, waves, and the loss of a last wave.
Left out: tiles that share a multiprocessor; kernels that divide K (split-K, stream-K); clocks that fall under power.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fabrictune.hardware.gpu import GemmSpec, GpuSpec

Layout = Literal["TN", "NN", "NT", "TT"]

TILES = ((256, 128), (128, 256), (128, 128), (256, 64), (64, 256), (128, 64), (64, 128), (64, 64))  # rows, columns
_BEST_TILE = TILES[0]
_FLOPS = 2  # of a multiply-addition


@dataclass(frozen=True, kw_only=True)
class Product:
    """Matrix products of m x k by k x n."""

    m: int
    n: int
    k: int
    layout: Layout
    batch: int = 1  # products of one kernel

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        return _FLOPS * self.batch * self.m * self.n * self.k


def product_s(gpu: GpuSpec, product: Product) -> float:
    """Return the seconds of a product's multiply-additions, without memory that is slower than they are."""
    rate = gpu.peak_flops_per_s * layout_share(gpu.gemm, product.layout)
    return _FLOPS * product_steps(gpu, product) / rate


def product_steps(gpu: GpuSpec, product: Product) -> float:
    """Return the multiply-additions that the GPU could do at its best in the time of a product: at least as many."""
    return step_area(gpu, product) * (product.k + gpu.gemm.half_depth)


def step_area(gpu: GpuSpec, product: Product) -> float:
    """Return the multiply-additions that the GPU could do in a step of the depth, with the best of the tiles."""
    return min(
        _num_waves(gpu, product, tile) * gpu.num_multiprocessors * math.prod(tile) / _tile_share(gpu.gemm, tile)
        for tile in TILES
    )


def layout_share(gemm: GemmSpec, layout: Layout) -> float:
    """Return the share of the peak that large products of a layout reach; TT, which no pass has, that of NT."""
    shares: Mapping[Layout, float] = {"TN": gemm.tn_fraction, "NN": gemm.nn_fraction, "NT": gemm.nt_fraction}
    return shares.get(layout, gemm.nt_fraction)


def _num_waves(gpu: GpuSpec, product: Product, tile: tuple[int, int]) -> int:
    rows, columns = tile
    num_tiles = product.batch * math.ceil(product.m / rows) * math.ceil(product.n / columns)
    return math.ceil(num_tiles / gpu.num_multiprocessors)


def _tile_share(gemm: GemmSpec, tile: tuple[int, int]) -> float:
    """Return the rate of a tile, as a share of that of the best one."""
    return _unloaded_share(gemm, tile) / _unloaded_share(gemm, _BEST_TILE)


def _unloaded_share(gemm: GemmSpec, tile: tuple[int, int]) -> float:
    return math.prod(tile) / (math.prod(tile) + gemm.load_cost * sum(tile))
