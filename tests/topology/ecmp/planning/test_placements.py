"""Hosts are swapped only where less traffic climbs, and MegaScale's placement is where the search begins."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.ecmp.planning.placements import PlacementPlan, RankTraffic, plan_placement
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.placement import Placement, nics_of_gpus, place
from fabrictune.topology.rank_pairs import neighbour_pairs


@pytest.fixture(scope="module")
def pods() -> Fabric:
    """Return 16 hosts in four ToR sets of four, two sets a pod: 2 links apart in a pod, 4 across."""
    return build_clos(ClosSpec(num_hosts=16, hosts_per_tor_set=4, tor_sets_per_pod=2))


def rings(layout: ParallelLayout) -> RankTraffic:
    """Return data-parallel rings in which each step asks for 1 bps."""
    pairs = neighbour_pairs(layout, ("dp",))
    return RankTraffic(
        source_E=pairs.source_E, destination_E=pairs.destination_E, demand_bps_E=np.ones(len(pairs), np.float64)
    )


def on_hosts(fabric: Fabric, layout: ParallelLayout, host_H: IntArray) -> Placement:
    """Return a placement with a tensor group of eight on each host in order."""
    start = place(layout, fabric, "contiguous")
    host_R = host_H[np.arange(layout.world_size) // 8]
    return replace(start, host_R=host_R, nic_R=nics_of_gpus(fabric, host_R, start.gpu_R, 8))


def test_a_bad_placement_becomes_megascales(pods: Fabric) -> None:
    """A ring of 16 hosts over four sets leaves a set four times: twice within a pod and twice across, 8 x (4 + 8)."""
    layout = ParallelLayout(tp=8, dp=16)
    plan = plan_placement(place(layout, pods, "interleaved"), pods, rings(layout))
    assert plan.start == "contiguous"
    assert plan.climbing_bps[-1] == 8 * (2 * 2 + 2 * 4)
    assert plan.placement.host_R.tolist() == place(layout, pods, "contiguous").host_R.tolist()


def test_swaps_join_what_talks_when_the_first_placement_does_not(pods: Fabric) -> None:
    """Two jobs' rings threaded through one another in the ranks' order: contiguous splits both, swaps part them."""
    layout = ParallelLayout(tp=8, dp=8)
    partner = np.array([0, 4, 1, 5, 2, 6, 3, 7])  # ring order 0-2-4-6 and 1-3-5-7 of hosts: four sets of two pairs
    rank_H = partner * 8
    traffic = RankTraffic(
        source_E=rank_H[[0, 2, 4, 6, 1, 3, 5, 7]],
        destination_E=rank_H[[2, 4, 6, 0, 3, 5, 7, 1]],
        demand_bps_E=np.ones(8),
    )
    scattered = on_hosts(pods, layout, np.array([0, 4, 8, 12, 1, 5, 9, 13]))
    plan = plan_placement(scattered, pods, traffic)
    assert plan.climbing_bps[-1] == 0.0


def test_the_plan_is_a_placement(pods: Fabric) -> None:
    """Every rank keeps its GPU index, has the NIC of that index, and no two share a GPU."""
    layout = ParallelLayout(tp=8, dp=12)
    plan = plan_placement(on_hosts(pods, layout, np.arange(15, 3, -1)), pods, rings(layout))
    placement = plan.placement
    assert placement.nic_R.tolist() == (placement.host_R * 8 + placement.gpu_R).tolist()
    assert len(set(placement.nic_R.tolist())) == 96


@settings(max_examples=30, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_no_pass_makes_it_worse(data: st.DataObject, seed: int) -> None:
    """Whatever the hosts and whoever talks to whom, no pass lets more traffic climb, and the count is the truth."""
    fabric = build_clos(ClosSpec(num_hosts=12, hosts_per_tor_set=2, nics_per_host=8, tor_sets_per_pod=3))
    layout = ParallelLayout(tp=8, dp=data.draw(st.integers(2, 12)))
    hosts = np.array(data.draw(st.permutations(range(12)))[: layout.dp])
    ranks = st.integers(0, layout.world_size - 1)
    ends = data.draw(st.lists(st.tuples(ranks, ranks, st.integers(1, 9)), min_size=1, max_size=40))
    source, destination, demand = (np.array(column) for column in zip(*ends, strict=True))
    traffic = RankTraffic(source_E=source, destination_E=destination, demand_bps_E=demand.astype(np.float64))
    plan = plan_placement(on_hosts(fabric, layout, hosts), fabric, traffic, seed=seed)
    assert list(plan.climbing_bps) == sorted(plan.climbing_bps, reverse=True)
    assert plan.climbing_bps[-1] == climbing(plan, traffic)


def climbing(plan: PlacementPlan, traffic: RankTraffic) -> float:
    """Return the climbing traffic by hand: sets of two hosts, pods of three sets."""
    host_R = plan.placement.host_R
    total = 0.0
    for source, destination, demand in zip(
        traffic.source_E.tolist(), traffic.destination_E.tolist(), traffic.demand_bps_E.tolist(), strict=True
    ):
        sets = host_R[source] // 2, host_R[destination] // 2
        total += demand * (0 if sets[0] == sets[1] else 2 if sets[0] // 3 == sets[1] // 3 else 4)
    return total


def test_one_seed_gives_one_plan(pods: Fabric) -> None:
    """The order of the swaps comes from a named stream."""
    layout = ParallelLayout(tp=8, dp=14)
    start = on_hosts(pods, layout, np.array([3, 9, 1, 14, 5, 11, 0, 8, 2, 13, 6, 4, 15, 7]))
    first, second = (plan_placement(start, pods, rings(layout), seed=5) for _ in range(2))
    assert first.placement.host_R.tolist() == second.placement.host_R.tolist()
    assert first.climbing_bps == second.climbing_bps
