"""Ranks fall into groups as MegaScale and Megatron Core number them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import AXES, RANK_AXES, ParallelLayout

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


def test_context_parallel_ranks_follow_their_tensor_group() -> None:
    """Megatron Core's order tp-cp-dp-pp: rank = t + 2 c + 4 d + 8 p, so cp pairs are two ranks apart, dp pairs four."""
    layout = ParallelLayout(tp=2, cp=2, dp=2, pp=2)
    assert layout.group_of("cp", 5) == [5, 7]
    assert layout.group_of("dp", 5) == [1, 5]
    assert layout.group_of("pp", 5) == [5, 13]
    assert layout.group_of("dp_cp", 5) == [1, 3, 5, 7]


def test_an_order_without_cp_has_it_behind_tp() -> None:
    """Files that state the three older axes stand; cp may have a place of its own."""
    stated = ParallelLayout(tp=2, cp=2, dp=2, pp=1, order=("pp", "tp", "dp"))
    assert stated.rank_order == ("pp", "tp", "cp", "dp")
    elsewhere = ParallelLayout(tp=2, cp=2, dp=2, order=("tp", "dp", "pp", "cp"))
    assert elsewhere.groups("cp").tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_experts_are_divided_among_neighbours_along_dp() -> None:
    """tp 1, cp 2, dp 4, ep 2: rank = c + 2 d, so ep pairs d = 0, 1 and 2, 3 of one c; edp has equal d mod 2, all c."""
    layout = ParallelLayout(cp=2, dp=4, ep=2)
    assert layout.groups("ep").tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert layout.groups("edp").tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert layout.groups("dp_cp").tolist() == [[0, 1, 2, 3, 4, 5, 6, 7]]
    assert (layout.replica_axis, layout.expert_replica_axis) == ("dp_cp", "edp")


def test_degrees_of_one_have_no_groups() -> None:
    """A layout of three axes has the groups that it had before there were others."""
    assert MEGASCALE.axes == MEGASCALE.rank_axes == ("tp", "dp", "pp")
    assert (MEGASCALE.replica_axis, MEGASCALE.expert_replica_axis) == ("dp", "dp")
    assert ParallelLayout(cp=2).axes == ("tp", "cp", "dp", "pp", "dp_cp")
    assert ParallelLayout(dp=2, ep=2).axes == ("tp", "dp", "pp", "ep", "edp")
    assert ParallelLayout(cp=2, dp=2, ep=2).axes == ("tp", "cp", "dp", "pp", "ep", "edp", "dp_cp")


def test_a_description_has_the_degrees_in_use() -> None:
    """tp, dp and pp always; expert parallelism is no factor of the number of ranks."""
    assert MEGASCALE.describe() == "tp 8, dp 192, pp 8"
    layout = ParallelLayout(tp=2, cp=4, dp=6, ep=3)
    assert layout.describe() == "tp 2, cp 4, dp 6, pp 1, ep 3"
    assert layout.describe_product() == "tp 2 times cp 4 times dp 6 times pp 1"


degrees = st.integers(1, 4)
layouts = st.builds(
    lambda ep, shards, **more: ParallelLayout(dp=ep * shards, ep=ep, **more),
    ep=st.integers(1, 3),
    shards=st.integers(1, 2),
    tp=degrees,
    cp=degrees,
    pp=degrees,
    order=st.permutations(RANK_AXES).map(tuple),
)


@given(layouts)
def test_coordinates_and_rank_are_inverse(layout: ParallelLayout) -> None:
    """Every rank has one position and every position one rank."""
    for rank in range(layout.world_size):
        position = {axis: int(value) for axis, value in layout.coordinates(rank).items()}
        assert layout.rank(**position) == rank


@given(layouts, st.sampled_from(RANK_AXES))
def test_the_groups_of_an_axis_part_the_ranks(layout: ParallelLayout, axis: str) -> None:
    """Each rank is in one group, and a group's members differ in that coordinate alone, in order."""
    groups = layout.groups(axis)  # type: ignore[arg-type]
    assert sorted(groups.ravel().tolist()) == list(range(layout.world_size))
    for name, values in layout.coordinates(groups).items():
        expected = np.arange(layout.degree(name)) if name == axis else values[:, :1]
        assert (values == expected).all()


@given(layouts, st.sampled_from(AXES))
def test_joint_groups_are_made_of_whole_ones(layout: ParallelLayout, axis: str) -> None:
    """All groups of a name are of its degree and part the ranks; ep times edp is dp_cp, which is dp times cp."""
    groups = layout.groups(axis)  # type: ignore[arg-type]
    assert groups.shape[1] == layout.degree(axis)  # type: ignore[arg-type]
    assert sorted(groups.ravel().tolist()) == list(range(layout.world_size))
    assert layout.group_of(axis, int(groups[-1, 0])) == sorted(groups[-1].tolist())  # type: ignore[arg-type]
    for rank in groups[0].tolist():
        own = {name: set(layout.group_of(name, rank)) for name in AXES}
        assert own["ep"] & own["edp"] == {rank}
        assert own["ep"] | own["edp"] <= own["dp_cp"]
        assert own["ep"] <= own["dp"]
        assert own["dp_cp"] == {member for other in own["cp"] for member in layout.group_of("dp", other)}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dp": 0}, "layout.dp: degree 0\n  allowed: 1 or more"),
        ({"cp": 0}, "layout.cp: degree 0\n  allowed: 1 or more"),
        ({"ep": 0}, "layout.ep: degree 0\n  allowed: 1 or more"),
        ({"dp": 6, "ep": 4}, "layout.ep: degree 4\n  allowed: a divisor of dp 6"),
        (
            {"order": ("tp", "dp")},
            "layout.order: order ('tp', 'dp')\n  allowed: each of tp, dp, pp once, fastest first, and "
            "cp where it does not follow tp",
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
