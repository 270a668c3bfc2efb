"""Attention's pairs, against counting them one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.hardware.attention import AttentionWork, attention_s
from fabrictune.hardware.files import bundled_profile

SIZES = st.integers(1, 40)


def work(
    queries: int, keys: int, window: int | None, *, is_causal: bool = True, is_backward: bool = False
) -> AttentionWork:
    return AttentionWork(
        num_heads=2,
        head_size=8,
        num_queries=queries,
        num_keys=keys,
        is_causal=is_causal,
        window=window,
        is_backward=is_backward,
    )


@given(queries=SIZES, before=st.integers(0, 40), window=st.none() | SIZES)
def test_pairs_are_those_that_the_mask_leaves(queries: int, before: int, window: int | None) -> None:
    """A query sees itself and what is before it, `window` keys at most."""
    counted = sum(min(before + query + 1, window or before + query + 1) for query in range(queries))
    assert work(queries, before + queries, window).num_pairs == counted


def test_without_a_mask_all_pairs_count() -> None:
    """5 queries of 7 keys."""
    assert work(5, 7, None, is_causal=False).num_pairs == 35


def test_a_backward_pass_makes_five_products_where_forward_makes_two() -> None:
    """At the rate of the kernel: 4 operations a pair and feature forward, 10 backward."""
    gpu = bundled_profile("a100").gpu
    rates = gpu.attention.kernels["flash2"]
    forward, backward = work(64, 64, None), work(64, 64, None, is_backward=True)
    pairs = 64 * 65 // 2
    assert attention_s(gpu, forward) == pytest.approx(4 * 2 * 8 * pairs / (312e12 * rates.forward_fraction))
    assert attention_s(gpu, backward) == pytest.approx(10 * 2 * 8 * pairs / (312e12 * rates.backward_fraction))


def test_the_newest_kernel_is_the_default() -> None:
    """FlashAttention-3 of an H100, -2 of an A100."""
    for name, kernel in (("h100", "flash3"), ("a100", "flash2")):
        gpu = bundled_profile(name).gpu
        assert attention_s(gpu, work(64, 64, None)) == attention_s(gpu, work(64, 64, None), kernel)
