"""Rates of products fitted to measured shapes: what made the shapes is found again."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.hardware.files import bundled_profile
from fabrictune.hardware.gemm import Product, product_s
from fabrictune.hardware.gemm_fit import MeasuredProduct, fit_products, relative_errors
from fabrictune.hardware.gpu import GpuSpec

A100 = bundled_profile("a100").gpu
TRUE = replace(
    A100, gemm=replace(A100.gemm, tn_fraction=0.7, nn_fraction=0.75, nt_fraction=0.65, half_depth=160.0, load_cost=16.0)
)


def measured(gpu: GpuSpec, noise: float = 0.0) -> list[MeasuredProduct]:
    """Return the shapes of a layer with 1024 to 8192 tokens, each way, as a GPU would run them."""
    random = np.random.default_rng(7)
    shapes = [
        product
        for tokens in (1024, 2048, 4096, 8192)
        for inputs, outputs in ((4096, 6144), (4096, 4096), (4096, 28672), (14336, 4096))
        for product in (
            Product(m=tokens, n=outputs, k=inputs, layout="TN"),
            Product(m=tokens, n=inputs, k=outputs, layout="NN"),
            Product(m=outputs, n=inputs, k=tokens, layout="NT"),
        )
    ]
    return [
        MeasuredProduct(
            product=shape,
            flops_per_s=shape.flops / (product_s(gpu, shape) + gpu.launch_ps / 1e12) * np.exp(noise * random.normal()),
        )
        for shape in shapes
    ]


def test_the_rates_that_made_the_shapes_are_found() -> None:
    """Without noise every figure, since the grid has them, and no error."""
    fit = fit_products(A100, measured(TRUE))
    assert (fit.gemm.half_depth, fit.gemm.load_cost) == (160.0, 16.0)
    assert fit.gemm.tn_fraction == pytest.approx(0.7)
    assert fit.gemm.nn_fraction == pytest.approx(0.75)
    assert fit.gemm.nt_fraction == pytest.approx(0.65)
    assert np.abs(fit.errors_N).max() < 1e-9
    assert np.abs(fit.held_out_errors_N).max() < 1e-9


@pytest.mark.parametrize(("half_depth", "load_cost"), [(0, 0), (20, 4), (120, 8), (260, 24), (340, 48), (400, 64)])
def test_every_figure_of_the_grid_is_found(half_depth: int, load_cost: int) -> None:
    """From one end to the other."""
    true = replace(TRUE, gemm=replace(TRUE.gemm, half_depth=float(half_depth), load_cost=float(load_cost)))
    found = fit_products(A100, measured(true)).gemm
    assert (found.half_depth, found.load_cost) == (half_depth, load_cost)


def test_shapes_that_bytes_bound_say_nothing_of_the_shares() -> None:
    """A row of tokens at 80 % of what the memory does, as often as all other shapes."""
    others = measured(TRUE)
    row = MeasuredProduct(product=Product(m=1, n=8192, k=8192, layout="TN"), flops_per_s=1.42e12)
    memory_s = row.bytes / (2039e9 * A100.memory.achieved_fraction)
    assert memory_s == pytest.approx(0.8 * row.product.flops / row.flops_per_s, rel=0.01)
    found = fit_products(A100, [*others, *[row] * len(others)]).gemm
    assert found.tn_fraction == pytest.approx(0.7)


def test_no_share_is_above_the_peak() -> None:
    """Rates of another GPU."""
    fast = [replace(one, flops_per_s=10 * one.flops_per_s) for one in measured(TRUE)]
    assert fit_products(A100, fast).gemm.tn_fraction == 1.0


def test_errors_are_about_the_noise() -> None:
    """Five percent of noise: a mean error of 0.8 times that, as of a normal distribution; more where left out."""
    fit = fit_products(A100, measured(TRUE, noise=0.05))
    assert 0.02 < np.abs(fit.errors_N).mean() < 0.06
    assert np.abs(fit.errors_N).mean() <= np.abs(fit.held_out_errors_N).mean() < 0.08


def test_a_layout_without_shapes_keeps_its_share() -> None:
    """Of the profile that the fit starts from."""
    fit = fit_products(A100, [one for one in measured(TRUE) if one.product.layout != "NT"])
    assert fit.gemm.nt_fraction == A100.gemm.nt_fraction


def test_the_error_is_of_the_predicted_time() -> None:
    """A shape that ran at twice the predicted rate: predicted too long by 100 %."""
    shape = measured(TRUE)[0]
    faster = replace(shape, flops_per_s=2 * shape.flops_per_s)
    assert relative_errors(TRUE, [faster]).tolist() == pytest.approx([1.0])


def test_bytes_that_take_longer_count() -> None:
    """One row of tokens reads a weight: 2 * 8192 * 8192 bytes, and those of the row and the result."""
    row = MeasuredProduct(product=Product(m=1, n=8192, k=8192, layout="TN"), flops_per_s=1e12)
    assert row.bytes == 2 * 8192 * 8192 + 2 * 2 * 8192
    predicted_s = row.bytes / (2039e9 * A100.memory.achieved_fraction) + A100.launch_ps / 1e12
    measured_s = 2 * 8192 * 8192 / 1e12
    assert relative_errors(A100, [row]).tolist() == pytest.approx([predicted_s / measured_s - 1])


def test_bytes_are_those_of_operands_and_results() -> None:
    """Two products of 3 x 5 by 5 x 7 in half precision, added to in single precision: 8 bytes an entry."""
    shape = Product(m=3, n=7, k=5, batch=2, layout="NT")
    assert MeasuredProduct(product=shape, flops_per_s=1.0, result_bytes=8).bytes == 2 * (2 * (15 + 35) + 8 * 21)


def test_fewer_shapes_than_two_a_figure_are_refused() -> None:
    """Five figures."""
    with pytest.raises(InputError, match="9 shapes\n  allowed: 10 or more: five figures are fitted"):
        fit_products(A100, measured(TRUE)[:9])
    assert len(fit_products(A100, measured(TRUE)[:10]).errors_N) == 10
