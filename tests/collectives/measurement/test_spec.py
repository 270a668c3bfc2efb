"""Sizes as nccl-tests steps them, and cases as ranks can have them."""

import pytest

from fabrictune.collectives.measurement.spec import BenchCase, BenchSpec
from fabrictune.foundation.errors import InputError


def test_sizes_rise_by_a_factor_or_by_a_step() -> None:
    """nccl-tests' `-f 2` and `-i 1024`: the last size is the largest that does not pass the end."""
    assert BenchSpec(min_bytes=8, max_bytes=100).sizes() == (8, 16, 32, 64)
    assert BenchSpec(min_bytes=1024, max_bytes=4000, step_bytes=1024).sizes() == (1024, 2048, 3072)


def test_parts_have_whole_elements() -> None:
    """Three ranks: an all-gather of 64 B has room for 5 elements a rank, 60 B; an all-reduce needs no parts."""
    spec = BenchSpec(names=("all_gather", "all_reduce"), min_bytes=64, max_bytes=64)
    assert [(case.name, case.size_bytes, case.is_in_place) for case in spec.cases(3, is_on_gpus=False)] == [
        ("all_gather", 60, False),
        ("all_gather", 60, True),
        ("all_reduce", 64, True),
    ]


def test_sizes_that_round_to_the_same_are_measured_once() -> None:
    """1, 2 and 4 B are all one element of 4 B."""
    spec = BenchSpec(min_bytes=1, max_bytes=8)
    assert [case.size_bytes for case in spec.cases(2, is_on_gpus=False)] == [4, 8]


def test_a_reduce_scatter_in_place_is_for_gpus() -> None:
    """On processors it goes through a buffer of its own."""
    spec = BenchSpec(names=("reduce_scatter",), min_bytes=8, max_bytes=8)
    here, there = (spec.cases(2, is_on_gpus=is_on_gpus) for is_on_gpus in (False, True))
    assert here == (BenchCase(name="reduce_scatter", size_bytes=8, is_in_place=False),)
    assert [case.is_in_place for case in there] == [False, True]


def test_every_mistake_is_told_at_once() -> None:
    """A range that ends before it begins, a factor that stands still, and no iteration."""
    with pytest.raises(InputError) as error:
        BenchSpec(min_bytes=16, max_bytes=8, step_factor=1, num_iterations=0)
    assert [mistake.where for mistake in error.value.mistakes] == ["min_bytes", "step_factor", "num_iterations"]
    with pytest.raises(InputError, match=r"1,048,576 sizes\n  allowed: up to 10,000"):
        BenchSpec(min_bytes=1, max_bytes=2**20, step_bytes=1)
    with pytest.raises(InputError, match="did you mean 'all_reduce'"):
        BenchSpec(names=("all_reduc",))
