"""Ranks go where a strategy says, and rings cross ToR sets as often as it implies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import ParallelLayout, RankAxis
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.placement import PLACEMENTS, place, tor_sets


def test_contiguous_keeps_ring_neighbours_under_one_set(small_clos: Fabric) -> None:
    """16 hosts in sets of 4: a ring over all hosts leaves a set 4 times, not 16."""
    placement = place(ParallelLayout(tp=8, dp=16), small_clos, "contiguous")
    host_D = placement.host_R[::8]
    assert host_D.tolist() == list(range(16))
    set_D = small_clos.node_group_N[host_D]
    assert (set_D != np.roll(set_D, -1)).sum() == 4


def test_interleaved_sends_every_step_to_another_set(small_clos: Fabric) -> None:
    """Hosts are dealt out over the sets in turn, so all 16 steps of the ring climb."""
    placement = place(ParallelLayout(tp=8, dp=16), small_clos, "interleaved")
    host_D = placement.host_R[::8]
    assert host_D.tolist() == [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]
    set_D = small_clos.node_group_N[host_D]
    assert (set_D != np.roll(set_D, -1)).all()


@pytest.mark.parametrize("strategy", PLACEMENTS)
def test_rank_uses_the_nic_of_its_gpu(small_clos: Fabric, strategy: str) -> None:
    """Eight GPUs and eight NICs a host: GPU g has NIC g, which is rail g."""
    placement = place(ParallelLayout(tp=8, dp=16), small_clos, strategy)
    assert placement.nic_R.tolist() == (placement.host_R * 8 + placement.gpu_R).tolist()
    assert small_clos.nic_rail_C[placement.nic_R].tolist() == placement.gpu_R.tolist()


def test_two_gpus_share_a_nic_where_there_are_half_as_many(fat_tree: Fabric) -> None:
    """Eight GPUs on the one NIC of a fat tree's host all use it."""
    placement = place(ParallelLayout(tp=8, dp=2), fat_tree, "contiguous")
    assert placement.nic_R.tolist() == [0] * 8 + [1] * 8


orders = st.permutations(["tp", "dp", "pp"]).map(tuple)


@given(
    tp=st.sampled_from([1, 2, 3, 4, 8, 16]),
    dp=st.integers(1, 8),
    pp=st.integers(1, 4),
    order=orders,
    strategy=st.sampled_from(sorted(PLACEMENTS)),
)
def test_no_gpu_is_used_twice(tp: int, dp: int, pp: int, order: tuple[RankAxis, ...], strategy: str) -> None:
    """Every rank has a GPU of its own, on a host that has its NIC, whatever the layout."""
    fabric = build_clos(ClosSpec(num_hosts=64, hosts_per_tor_set=8))
    layout = ParallelLayout(tp=tp, dp=dp, pp=pp, order=order)
    placement = place(layout, fabric, strategy)
    used = set(zip(placement.host_R.tolist(), placement.gpu_R.tolist(), strict=True))
    assert len(used) == layout.world_size
    assert (fabric.nic_host_C[placement.nic_R] == placement.host_R).all()
    assert ((placement.gpu_R >= 0) & (placement.gpu_R < 8)).all()


def test_places_do_not_depend_on_how_ranks_are_numbered(small_clos: Fabric) -> None:
    """Another order of axes renames the ranks; the same coordinates stay on the same GPU."""
    layouts = [ParallelLayout(tp=4, dp=8, pp=2, order=order) for order in (("tp", "dp", "pp"), ("pp", "dp", "tp"))]
    places = []
    for layout in layouts:
        placement = place(layout, small_clos, "interleaved")
        ranks = [layout.rank(tp=t, dp=d, pp=p) for t in range(4) for d in range(8) for p in range(2)]
        places.append((placement.host_R[ranks].tolist(), placement.gpu_R[ranks].tolist()))
    assert places[0] == places[1]


def test_tor_sets_come_from_the_cabling(small_clos: Fabric) -> None:
    """Hosts with the same ToRs are a set, whether or not the file said so."""
    assert tor_sets(small_clos) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]


def test_a_job_that_does_not_fit_is_refused(small_clos: Fabric) -> None:
    """129 ranks on 128 GPUs."""
    with pytest.raises(InputError) as raised:
        place(ParallelLayout(dp=129), small_clos, "contiguous")
    assert str(raised.value) == (
        "placement: 129 ranks for 128 GPUs at 8 a host\n"
        "  allowed: a rank for each GPU at most\n"
        "  next: lower the degrees of the layout, or build a larger fabric"
    )


def test_an_unknown_strategy_is_refused(small_clos: Fabric) -> None:
    """The message lists what there is."""
    with pytest.raises(InputError, match="did you mean 'interleaved'"):
        place(ParallelLayout(dp=2), small_clos, "interleave")
