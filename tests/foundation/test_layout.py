"""Ranks fall into tensor, data and pipeline groups as MegaScale numbers them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import AXES, ParallelLayout

MEGASCALE = ParallelLayout(tp=8, dp=192, pp=8)  # 12,288 GPUs, section 2


def test_megascale_has_12288_ranks() -> None:
    """8 x 192 x 8 = 12,288."""
    assert MEGASCALE.world_size == 12_288


def test_a_tensor_group_is_one_server() -> None:
    """Tensor parallel is numbered fastest, so group g is ranks 8g to 8g + 7: the eight GPUs of server g."""
    groups = MEGASCALE.groups("tp")
    assert groups.shape == (1536, 8)
    assert (groups // 8 == np.arange(1536)[:, None]).all()


def test_a_pipeline_stage_is_192_consecutive_servers() -> None:
    """Pipeline is numbered slowest: stage s is ranks 1536 s to 1536 s + 1535, which is servers 192 s to 192 s + 191."""
    servers = np.arange(12_288) // 8
    stage = MEGASCALE.coordinates(np.arange(12_288))["pp"]
    assert (stage == servers // 192).all()


def test_a_data_ring_stays_on_one_rail_of_neighbouring_servers() -> None:
    """Group 0 of data parallel is ranks 0, 8, ..., 1528: GPU 0 of servers 0 to 191."""
    groups = MEGASCALE.groups("dp")
    assert groups.shape == (64, 192)
    assert groups[0].tolist() == list(range(0, 1536, 8))
    assert (groups % 8 == groups[:, :1] % 8).all()


def test_a_pipeline_group_takes_one_rank_of_each_stage() -> None:
    """Rank 0's successors stand 8 x 192 = 1,536 ranks apart."""
    assert MEGASCALE.group_of("pp", 0) == [0, 1536, 3072, 4608, 6144, 7680, 9216, 10752]
    assert MEGASCALE.group_of("pp", 1537) == [1, 1537, 3073, 4609, 6145, 7681, 9217, 10753]


def test_another_order_numbers_another_axis_fastest() -> None:
    """With pipeline fastest, tp=2 dp=1 pp=2 puts the two stages of one tensor rank side by side: 0 and 1."""
    layout = ParallelLayout(tp=2, pp=2, order=("pp", "tp", "dp"))
    assert layout.groups("pp").tolist() == [[0, 1], [2, 3]]
    assert layout.groups("tp").tolist() == [[0, 2], [1, 3]]


degrees = st.integers(1, 5)
layouts = st.builds(ParallelLayout, tp=degrees, dp=degrees, pp=degrees, order=st.permutations(AXES).map(tuple))


@given(layouts)
def test_coordinates_and_rank_are_inverse(layout: ParallelLayout) -> None:
    """Every rank has one position and every position one rank."""
    for rank in range(layout.world_size):
        position = {axis: int(value) for axis, value in layout.coordinates(rank).items()}
        assert layout.rank(**position) == rank


@given(layouts, st.sampled_from(AXES))
def test_the_groups_of_an_axis_part_the_ranks(layout: ParallelLayout, axis: str) -> None:
    """Each rank is in one group, and a group's members differ in that coordinate alone, in order."""
    groups = layout.groups(axis)  # type: ignore[arg-type]
    assert sorted(groups.ravel().tolist()) == list(range(layout.world_size))
    for name, values in layout.coordinates(groups).items():
        expected = np.arange(layout.degree(name)) if name == axis else values[:, :1]
        assert (values == expected).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dp": 0}, "layout.dp: degree 0\n  allowed: 1 or more"),
        (
            {"order": ("tp", "dp")},
            "layout.order: order ('tp', 'dp')\n  allowed: each of tp, dp, pp once, fastest first",
        ),
    ],
)
def test_a_layout_that_makes_no_sense_is_refused(settings: dict[str, object], message: str) -> None:
    """Word for word."""
    with pytest.raises(InputError) as caught:
        ParallelLayout(**settings)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_rank_outside_the_layout_is_the_programmers_mistake() -> None:
    """Ranks of a layout of 4 are 0 to 3."""
    layout = ParallelLayout(dp=4)
    with pytest.raises(AssertionError, match="rank outside"):
        layout.coordinates(4)
    with pytest.raises(AssertionError, match="position outside"):
        layout.rank(tp=0, dp=4, pp=0)
