"""Settings of a GPU in a hardware profile: matrix products, attention, memory and launches of kernels.

`hardware/gemm.py` and `hardware/attention.py` have the times that follow from them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import format_flops_per_s
from fabrictune.hardware.checks import above_zero, at_most, not_negative, raise_for


@dataclass(frozen=True, kw_only=True)
class GemmSpec:
    """Matrix products in half precision. Raises InputError."""

    best_flops_per_s: float = field(metadata={"help": "best rate measured, for lower bounds"})
    tn_fraction: float = field(metadata={"help": "share of the peak of large products: forward"})
    nn_fraction: float = field(metadata={"help": "share of the peak of large products: gradient of data"})
    nt_fraction: float = field(metadata={"help": "share of the peak of large products: gradient of weights"})
    half_depth: float = field(metadata={"help": "steps of K that the start and end of a tile take"})
    load_cost: float = field(metadata={"help": "multiply-additions in the time of loading an element of a tile"})

    def __post_init__(self) -> None:
        zero = ("half_depth", "load_cost")
        raise_for([*above_zero(self, besides=zero), *not_negative(self, *zero)])


@dataclass(frozen=True, kw_only=True)
class AttentionRates:
    """Rates of a kernel of attention, as shares of the peak on the products that it computes. Raises InputError."""

    forward_fraction: float = field(metadata={"help": "share of the peak, forward"})
    backward_fraction: float = field(metadata={"help": "share of the peak, backward: 2.5 times forward's products"})

    def __post_init__(self) -> None:
        raise_for(above_zero(self))


@dataclass(frozen=True, kw_only=True)
class AttentionSpec:
    """Kernels of attention by generation, those that run on the GPU and have figures. Raises InputError."""

    unfused: AttentionRates | None = field(default=None, metadata={"help": "products, and a softmax in memory"})
    flash1: AttentionRates | None = field(default=None, metadata={"help": "FlashAttention"})
    flash2: AttentionRates | None = field(default=None, metadata={"help": "FlashAttention-2"})
    flash3: AttentionRates | None = field(default=None, metadata={"help": "FlashAttention-3, cuDNN 9"})

    def __post_init__(self) -> None:
        if not self.kernels:
            raise InputError(Mistake(where="flash2", found="no kernel of attention", allowed="rates of one or more"))

    @property
    def kernels(self) -> dict[str, AttentionRates]:
        """The kernels that have rates by name, the newest last."""
        return {name: rates for name, rates in vars(self).items() if rates is not None}


@dataclass(frozen=True, kw_only=True)
class MemorySpec:
    """Memory of a GPU. Raises InputError."""

    capacity_bytes: int = field(metadata={"help": "size"})
    rate_bytes_per_s: float = field(metadata={"help": "rate of the data sheet, read and written"})
    best_bytes_per_s: float = field(metadata={"help": "best rate measured, for lower bounds"})
    achieved_fraction: float = field(metadata={"help": "share of the data sheet's rate that kernels on entries reach"})
    reduced_fraction: float = field(metadata={"help": "share that kernels with reductions reach: norms, softmax, sums"})

    def __post_init__(self) -> None:
        raise_for([*above_zero(self), *at_most(self, "best_bytes_per_s", "rate_bytes_per_s")])


@dataclass(frozen=True, kw_only=True)
class GpuSpec:
    """A GPU. Raises InputError."""

    device_names: tuple[str, ...] = field(default=(), metadata={"help": "parts of the name that its driver reports"})
    compute_capability: int = field(metadata={"help": "as 80 for 8.0"})
    num_multiprocessors: int = field(metadata={"help": "streaming multiprocessors"})
    peak_flops_per_s: float = field(metadata={"help": "data sheet's peak of dense products in half precision"})
    launch_ps: int = field(metadata={"help": "time of a kernel beside its work, start, end and the gap to the next"})
    memory: MemorySpec = field(metadata={"help": "memory"})
    gemm: GemmSpec = field(metadata={"help": "matrix products"})
    attention: AttentionSpec = field(metadata={"help": "attention"})

    def __post_init__(self) -> None:
        raise_for([*above_zero(self, besides=("launch_ps",)), *not_negative(self, "launch_ps"), *_above_peak(self)])


def _above_peak(gpu: GpuSpec) -> Iterable[Mistake]:
    if gpu.gemm.best_flops_per_s > gpu.peak_flops_per_s:
        yield Mistake(
            where="gemm.best_flops_per_s",
            found=format_flops_per_s(gpu.gemm.best_flops_per_s),
            allowed=f"at most the peak, {format_flops_per_s(gpu.peak_flops_per_s)}",
            next_step="give the peak of that GPU",
        )
