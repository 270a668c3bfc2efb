"""How well a profile's model of matrix products fits measured shapes, and the rates that fit them best.

Prints the section `gpu.gemm` of a hardware profile, the errors of the fit, those on shapes that were left out of it,
errors by layout and size, and the shapes that are furthest off. The GPU's peak, multiprocessors, memory and launches
are those of a profile.

Run: `python -m benchmarks.studies.gemm_rates shapes.csv a100`; `hardware/measured_products.py` has the file's format.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import FabrictuneError
from fabrictune.hardware.files import find_profile
from fabrictune.hardware.gemm_fit import GemmFit, MeasuredProduct, fit_products, relative_errors
from fabrictune.hardware.gpu import GpuSpec
from fabrictune.hardware.measured_products import read_measured_products

NUM_WORST = 10


def main(arguments: Sequence[str]) -> int:
    """Print the study of a file of shapes; returns the exit code."""
    if len(arguments) != 2:
        print("usage: python -m benchmarks.studies.gemm_rates SHAPES.csv PROFILE", file=sys.stderr)
        return 2
    try:
        gpu = find_profile(arguments[1], where="PROFILE").gpu
        measured = read_measured_products(Path(arguments[0]))
        fit = fit_products(gpu, measured)
    except FabrictuneError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print("\n".join(lines_of(gpu, measured, fit)))
    return 0


def lines_of(gpu: GpuSpec, measured: Sequence[MeasuredProduct], fit: GemmFit) -> Iterator[str]:
    """Yield the lines of the study."""
    yield "gemm:"
    for layout in ("tn", "nn", "nt"):
        yield f"  {layout}: {getattr(fit.gemm, f'{layout}_fraction'):.1%}".replace("%", " %")
    yield f"  half_depth: {fit.gemm.half_depth:.1f}"
    yield f"  load_cost: {fit.gemm.load_cost:.1f}"
    if len({one.product.k for one in measured}) == 1:
        yield "all shapes have one depth: they do not tell half_depth from the shares"
    yield ""
    yield _summary("fit", fit.errors_N)
    yield _summary("left out of the fit", fit.held_out_errors_N)
    yield _summary("the profile as it is", relative_errors(gpu, measured))
    yield ""
    layout_N = np.array([one.product.layout for one in measured])
    for layout in sorted(set(layout_N.tolist())):
        yield _summary(layout, fit.errors_N[layout_N == layout])
    yield from _by_size(measured, fit)
    yield ""
    for place in np.argsort(-np.abs(fit.errors_N))[:NUM_WORST].tolist():
        shape, rate = measured[place].product, measured[place].flops_per_s
        sizes = f"{shape.batch} x {shape.m} x {shape.n} x {shape.k} {shape.layout}"
        yield f"{fit.errors_N[place]:+.1%} {sizes}, measured {rate / 1e12:.1f} TFLOP/s"


def _by_size(measured: Sequence[MeasuredProduct], fit: GemmFit) -> Iterator[str]:
    """Yield the errors of each third of the shapes by their operations."""
    order = np.argsort([one.product.flops for one in measured])
    for name, places in zip(("smallest", "middle", "largest"), np.array_split(order, 3), strict=True):
        yield _summary(f"{name} third", fit.errors_N[places])


def _summary(name: str, errors_N: FloatArray) -> str:
    size_N = np.sort(np.abs(errors_N))
    nine_tenths = size_N[min(int(0.9 * len(size_N)), len(size_N) - 1)]
    return (
        f"{name}: {len(size_N)} shapes, mean {size_N.mean():.2%}, median {size_N[len(size_N) // 2]:.2%}, "
        f"nine tenths within {nine_tenths:.1%}, worst {size_N[-1]:.1%}, bias {errors_N.mean():+.2%}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
