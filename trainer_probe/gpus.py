"""The table of GPUs: peak rates, and the best rates that were measured on one.

A peak is that of dense matrix products in half precision, without sparsity; a model's utilisation (MFU) is a share of
it. A plan takes the measured rates: no step is faster than at them.

Source: NVIDIA's data sheets of A100 (SXM, 80 GB; 2021), H100 SXM (2023) and H200 (2024) for peaks, NVLINK and memory.
Matrix products: "ML Engineering" (Bekman), Maximum Achievable Matmul FLOPS, an H200 as an H100, whose processor it has.
Memory: the data sheet's rate times the share of it that was measured on a GPU with the same kind of memory: 1727.5 of
1935 GB/s by torch on an A800 with 80 GB (mli/transformers-benchmarks, issue 4); 3.315 of 4 TB/s by BabelStream's triad
on a GH200 (UoB-HPC/BabelStream, issue 194).
"""

from collections.abc import Mapping
from dataclasses import dataclass

_HBM2E_SHARE = 1727.5 / 1935
_HBM3_SHARE = 3.315 / 4
HALF_PRECISIONS = frozenset({"bfloat16", "float16"})


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """Rates of a GPU."""

    peak_flops_per_s: float  # on matrix products in half precision
    achieved_flops_per_s: float  # best measured, on the same
    memory_bytes_per_s: float  # best measured
    nvlink_rate_bps: float  # out of the GPU


GPUS: Mapping[str, Gpu] = {  # by a part of the device's name
    "A100": Gpu(
        peak_flops_per_s=312e12,
        achieved_flops_per_s=267.9e12,
        memory_bytes_per_s=round(2039e9 * _HBM2E_SHARE, -9),
        nvlink_rate_bps=2400e9,
    ),
    "H100": Gpu(
        peak_flops_per_s=989.4e12,
        achieved_flops_per_s=794.5e12,
        memory_bytes_per_s=round(3350e9 * _HBM3_SHARE, -9),
        nvlink_rate_bps=3600e9,
    ),
    "H200": Gpu(
        peak_flops_per_s=989.4e12,
        achieved_flops_per_s=794.5e12,
        memory_bytes_per_s=round(4800e9 * _HBM3_SHARE, -9),
        nvlink_rate_bps=3600e9,
    ),
}

DEFAULT_GPU = "A100"  # MegaScale's


def find_peak(device_name: str, precision: str) -> float | None:
    """Return a device's peak rate in operations per second, None where it is not known."""
    gpu = next((gpu for part, gpu in GPUS.items() if part in device_name), None)
    return gpu.peak_flops_per_s if gpu and precision in HALF_PRECISIONS else None
