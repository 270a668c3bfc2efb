"""The time of a matrix product: closed forms, and what no shape can make better."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.hardware.files import bundled_profile, profile_names
from fabrictune.hardware.gemm import Product, product_s
from fabrictune.hardware.gpu import GpuSpec

SIZES = st.integers(1, 20_000)


def gpu(half_depth: float = 0.0, load_cost: float = 0.0) -> GpuSpec:
    """Return an A100 with 108 multiprocessors whose TN products reach all of 108 TFLOP/s."""
    whole = bundled_profile("a100").gpu
    gemm = replace(whole.gemm, tn_fraction=1.0, best_flops_per_s=1.0, half_depth=half_depth, load_cost=load_cost)
    return replace(whole, peak_flops_per_s=108e12, gemm=gemm)


def product(m: int, n: int, k: int, batch: int = 1) -> Product:
    return Product(m=m, n=n, k=k, batch=batch, layout="TN")


def test_whole_waves_take_their_operations_over_the_rate() -> None:
    """12 x 9 tiles of 256 x 128 on 108 multiprocessors: one wave, 2 * 3072 * 1152 * 1000 operations at 108 TFLOP/s."""
    assert product_s(gpu(), product(3072, 1152, 1000)) == pytest.approx(2 * 3072 * 1152 * 1000 / 108e12)


def test_a_tile_more_than_a_wave_costs_a_wave_of_the_smallest_tile_that_helps() -> None:
    """One row more: 256 x 128 tiles would take two waves, 64 x 64 ones ceil(49 * 18 / 108) = 9 of an eighth."""
    one_wave_s = product_s(gpu(), product(3072, 1152, 1000))
    assert product_s(gpu(), product(3073, 1152, 1000)) == pytest.approx(one_wave_s * 9 / 8)


@pytest.mark.parametrize(
    ("rows", "columns"), [(256, 128), (128, 256), (128, 128), (256, 64), (64, 256), (128, 64), (64, 128), (64, 64)]
)
def test_each_tile_fills_a_wave_of_its_own(rows: int, columns: int) -> None:
    """12 x 9 tiles, 8 multiply-additions to load an entry: larger ones would be half empty, smaller ones load more."""
    down, across = (9, 12) if rows < columns else (12, 9)
    load, best = 1 + 8 * (rows + columns) / (rows * columns), 1 + 8 * 384 / 32768
    expected_s = 2 * 108 * rows * columns * 1000 / 108e12 * load / best
    assert product_s(gpu(load_cost=8), product(down * rows, across * columns, 1000)) == pytest.approx(expected_s)


def test_operations_are_those_of_all_products_of_a_batch() -> None:
    """A multiplication and an addition each."""
    assert product(3, 5, 7, batch=11).flops == 2 * 3 * 5 * 7 * 11


def test_half_of_the_rate_is_lost_at_half_depth() -> None:
    """A depth of 500 with 500 steps besides."""
    assert product_s(gpu(half_depth=500), product(3072, 1152, 500)) == pytest.approx(
        2 * product_s(gpu(), product(3072, 1152, 500))
    )


def test_loading_costs_small_tiles_more() -> None:
    """64 x 64 on one multiprocessor: 4096 + 64 * 128 against the best tile's 32768 + 64 * 384 a step, for 1 and 8."""
    without, loaded = product_s(gpu(), product(64, 64, 1000)), product_s(gpu(load_cost=64), product(64, 64, 1000))
    assert loaded / without == pytest.approx((1 + 64 * 128 / 4096) / (1 + 64 * 384 / 32768))


def test_a_batch_fills_the_waves_that_one_product_does_not() -> None:
    """108 products of one tile are as many tiles as one product of 108."""
    assert product_s(gpu(), product(256, 128, 1000, batch=108)) == product_s(gpu(), product(108 * 256, 128, 1000))


@given(m=SIZES, n=SIZES, k=SIZES)
def test_no_shape_is_faster_than_its_layouts_share_of_the_peak(m: int, n: int, k: int) -> None:
    """Of every bundled GPU."""
    for name in profile_names():
        own = bundled_profile(name).gpu
        shape = Product(m=m, n=n, k=k, layout="NN")
        assert product_s(own, shape) >= shape.flops / (own.peak_flops_per_s * own.gemm.nn_fraction) * (1 - 1e-9)


@given(m=SIZES, n=SIZES, k=SIZES, more=st.integers(1, 5_000))
def test_a_larger_product_takes_no_less_time(m: int, n: int, k: int, more: int) -> None:
    """Along each of its sizes."""
    own = bundled_profile("a100").gpu
    duration_s = product_s(own, product(m, n, k))
    assert product_s(own, product(m + more, n, k)) >= duration_s
    assert product_s(own, product(m, n + more, k)) >= duration_s
    assert product_s(own, product(m, n, k + more)) > duration_s
    assert product_s(own, product(m, n, k, batch=2)) >= duration_s
