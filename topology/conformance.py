"""Published results that the topology room claims, and how to obtain ours.

Counts of fabrics and of equal-cost paths, a CRC's check value, what random hashing costs and what polarization leaves:
each through the real builders, hashes and routing, never through a formula of its own.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foundation.cases import Case, around, exactly
from foundation.layout import ParallelLayout
from topology.builders.clos import ClosSpec, build_clos
from topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from topology.collisions import CollisionReport, analyze_collisions
from topology.fabric import Fabric
from topology.hashing import HashSpec
from topology.hashing.crc32 import ISO_HDLC
from topology.placement import place, tor_sets
from topology.queue_pairs import make_queue_pairs
from topology.routing import build_network

MEGASCALE = ClosSpec(num_hosts=1536, hosts_per_tor_set=64)
# One ToR of 64 NICs above which each flow chooses among 64 equal uplinks, or among 32 of twice the rate.
UNSPLIT = ClosSpec(
    num_hosts=128,
    hosts_per_tor_set=64,
    nics_per_host=1,
    tiers=2,
    switch_radix=128,
    uplink_rate_bps=200_000_000_000,
    downlink_split=1,
)
SPLIT = replace(UNSPLIT, uplink_rate_bps=400_000_000_000, downlink_split=2)
# Four uplinks a ToR and six an aggregation switch: every ToR set is one ToR, six of them a pod.
SIX_UPLINKS = ClosSpec(
    num_hosts=48,
    hosts_per_tor_set=4,
    nics_per_host=1,
    switch_radix=12,
    nic_rate_bps=100_000_000_000,
    uplink_rate_bps=100_000_000_000,
    downlink_split=1,
    tor_sets_per_pod=6,
    num_cores=24,
)
NUM_TRIALS = 200  # the mean of a throughput then has a standard error of 0.2 %

_MEGASCALE_SOURCE = "MegaScale (NSDI'24) 3.6: 12,288 GPUs, 64 servers a ToR set, 32 down and 32 up in every tier"
_FAT_TREE_SOURCE = "Al-Fares et al. (SIGCOMM'08) 3"
_RANDOM_SOURCE = "closed form: M E[min(Bin(N, 1/M), capacity)] / N"
_POLARIZED = "closed form: h mod m1 is fixed, so h mod m2 takes m2 / gcd(m1, m2) values"
_LINEAR = "CRC is linear: another seed flips the same bits of every hash, so low bits still agree"


def cases() -> tuple[Case, ...]:
    """Return the room's cases."""
    return (*_counts(), *_paths(), *_random_hashing(), *_polarization())


def _counts() -> tuple[Case, ...]:
    megascale = [
        Case(
            name=f"topology.megascale-{name}",
            source=_MEGASCALE_SOURCE,
            unit="nodes",
            **exactly(expected),
            run=partial(_num_nodes, MEGASCALE, tier),
        )
        for tier, (name, expected) in enumerate({"hosts": 1536, "tors": 192, "aggregations": 192, "cores": 96}.items())
    ]
    fat_trees = [
        Case(
            name=f"topology.fat-tree-k{k}-{name}",
            source=f"{_FAT_TREE_SOURCE}: k^3/4 hosts, 5k^2/4 switches, 3k^3/4 links",
            unit=name,
            **exactly(expected),
            run=partial(_fat_tree_count, k, name),
        )
        for k in (8, 16)
        for name, expected in (("hosts", k**3 // 4), ("switches", 5 * k**2 // 4), ("links", 3 * k**3 // 4))
    ]
    return (*megascale, *fat_trees)


def _paths() -> tuple[Case, ...]:
    return (
        Case(
            name="topology.fat-tree-k8-paths-between-pods",
            source=f"{_FAT_TREE_SOURCE}: (k/2)^2 shortest paths between hosts of different pods",
            unit="paths",
            **exactly(16),
            run=partial(_num_paths, 127),
        ),
        Case(
            name="topology.fat-tree-k8-paths-within-pod",
            source=f"{_FAT_TREE_SOURCE}: k/2 shortest paths between edge switches of one pod",
            unit="paths",
            **exactly(4),
            run=partial(_num_paths, 15),
        ),
        Case(
            name="topology.megascale-ring-leaves-its-tor-set",
            source="MegaScale 175B, tp 8, dp 192: a stage's 192 servers are 3 ToR sets of 64, so a ring has 3 borders",
            unit="steps a ring",
            **exactly(3),
            run=_num_ring_borders,
        ),
    )


def _random_hashing() -> tuple[Case, ...]:
    throughputs = [
        Case(
            name=f"topology.ecmp-throughput-{name}",
            source=f"{_RANDOM_SOURCE}; N 64, M {links}, capacity {64 // links}",
            unit="of line rate",
            **around(expected, 0.01),
            run=partial(_mean_over_trials, spec, _throughput),
        )
        for name, spec, links, expected in (("64-on-64", UNSPLIT, 64, 0.6350), ("64-on-32-double", SPLIT, 32, 0.7336))
    ]
    return (
        *throughputs,
        Case(
            name="topology.ecmp-used-links-64-on-64",
            source="closed form: M (1 - (1 - 1/M)^N), N 64, M 64",
            unit="links",
            **around(64 * (1 - (1 - 1 / 64) ** 64), 0.01),
            run=partial(_mean_over_trials, UNSPLIT, _num_used_links),
        ),
        Case(
            name="topology.ecmp-most-loaded-link-64-on-64",
            source="exact convolution: E[max load], N 64, M 64",
            unit="flows",
            **around(3.958, 0.03),
            run=partial(_mean_over_trials, UNSPLIT, _max_flows),
        ),
    )


def _polarization() -> tuple[Case, ...]:
    k8 = FatTreeSpec(radix=8)
    one_seed = HashSpec(seed_per_switch=False)
    crc = HashSpec(function="crc32")
    rows = (
        ("one-seed-4-then-4", _POLARIZED, 1, partial(_next_hops_used, build_fat_tree, k8, one_seed)),
        ("one-seed-4-then-6", _POLARIZED, 3, partial(_next_hops_used, build_clos, SIX_UPLINKS, one_seed)),
        ("crc32-seeds-4-then-4", _LINEAR, 1, partial(_next_hops_used, build_fat_tree, k8, crc)),
        (
            "mixer-seeds-4-then-4",
            "all next hops of independent hashes",
            4,
            partial(_next_hops_used, build_fat_tree, k8),
        ),
    )
    polarization = [
        Case(name=f"topology.polarization-{name}", source=source, unit="next hops", **exactly(expected), run=run)
        for name, source, expected, run in rows
    ]
    check_value = Case(
        name="topology.crc32-check-value",
        source='CRC-32/ISO-HDLC of "123456789": 0xCBF43926',
        unit="",
        **exactly(0xCBF43926),
        run=lambda: float(ISO_HDLC(np.frombuffer(b"123456789", np.uint8)[None, :], np.zeros(1, np.uint64))[0]),
    )
    return (*polarization, check_value)


def _num_nodes(spec: ClosSpec, tier: int) -> float:
    return float((build_clos(spec).node_tier_N == tier).sum())


def _fat_tree_count(k: int, what: str) -> float:
    fabric = build_fat_tree(FatTreeSpec(radix=k))
    counts = {
        "hosts": fabric.num_nics,
        "switches": fabric.num_nodes - fabric.num_nics,
        "links": fabric.num_ports // 2,
    }
    return float(counts[what])


def _num_paths(destination: int) -> float:
    """Return how many paths 2,000 queue pairs from host 0 find: 16 are missed with a chance of 16 (15/16)^2000."""
    fabric = build_fat_tree(FatTreeSpec(radix=8))
    queue_pairs = make_queue_pairs(np.zeros(2000), np.full(2000, destination))
    network = build_network(fabric, queue_pairs, HashSpec())
    return float(len(np.unique(network.epochs[0].port_QDH[:, 0], axis=0)))


def _num_ring_borders() -> float:
    """Return the most steps in which a data-parallel ring of the 12,288-GPU job changes its ToR set."""
    fabric = build_clos(MEGASCALE)
    layout = ParallelLayout(tp=8, dp=192, pp=8)
    placement = place(layout, fabric, "contiguous")
    set_N = np.zeros(fabric.num_nodes, np.int64)
    for number, hosts in enumerate(tor_sets(fabric)):
        set_N[hosts] = number
    set_GD = set_N[placement.host_R[layout.groups("dp")]]
    return float((set_GD != np.roll(set_GD, -1, axis=1)).sum(axis=1).max())


def _mean_over_trials(spec: ClosSpec, measure: Callable[[Fabric, CollisionReport], float]) -> float:
    """Return the mean over seeds of a measure of 64 flows that all climb from the first ToR to the second."""
    fabric = build_clos(spec)
    queue_pairs = make_queue_pairs(np.arange(64), np.arange(64, 128))
    reports = (
        analyze_collisions(build_network(fabric, queue_pairs, HashSpec(seed=seed))) for seed in range(NUM_TRIALS)
    )
    return float(np.mean([measure(fabric, report) for report in reports]))


def _throughput(fabric: Fabric, report: CollisionReport) -> float:
    return report.mean_throughput_fraction


def _num_used_links(fabric: Fabric, report: CollisionReport) -> float:
    return float((report.num_flows_P[_climbing(fabric)] > 0).sum())


def _max_flows(fabric: Fabric, report: CollisionReport) -> float:
    return float(report.num_flows_P[_climbing(fabric)].max())


def _climbing(fabric: Fabric) -> NDArray[np.bool_]:
    """Mark the ports that lead from a ToR to an aggregation switch."""
    tier_P = fabric.node_tier_N[fabric.port_node_P]
    is_climbing_P: NDArray[np.bool_] = (tier_P == 1) & (tier_P[fabric.port_peer_P] == 2)
    return is_climbing_P


def _next_hops_used(build: Callable[[Any], Fabric], spec: Any, hash_spec: HashSpec | None = None) -> float:
    """Return the most uplinks that any aggregation switch uses for 4,000 flows from the first ToR to other pods."""
    fabric = build(spec)
    half = fabric.num_nics // 2
    queue_pairs = make_queue_pairs(np.arange(4000) % 4, half + np.arange(4000) % half)  # four NICs a ToR
    report = analyze_collisions(build_network(fabric, queue_pairs, hash_spec or HashSpec()))
    tier_P = fabric.node_tier_N[fabric.port_node_P]
    is_used_P = (tier_P == 2) & (tier_P[fabric.port_peer_P] == 3) & (report.num_flows_P > 0)
    return float(np.bincount(fabric.port_node_P[is_used_P]).max())
