"""Equal-cost paths of fat trees, and how often the ring of a job leaves its ToR set."""

from functools import partial

import numpy as np

from fabrictune.foundation.cases import Case, exactly
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.topology.builders.clos import build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.builders.megascale import MegascaleSpec
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.placement import place, tor_sets
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network

_FAT_TREE_SOURCE = "Al-Fares et al. (SIGCOMM'08) 3"


def cases() -> tuple[Case, ...]:
    """Return the cases of paths."""
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


def _num_paths(destination: int) -> float:
    """Return how many paths 2,000 queue pairs from host 0 find: 16 are missed with a chance of 16 (15/16)^2000."""
    fabric = build_fat_tree(FatTreeSpec(radix=8))
    queue_pairs = make_queue_pairs(np.zeros(2000), np.full(2000, destination))
    network = build_network(fabric, queue_pairs, HashSpec())
    return float(len(np.unique(network.epochs[0].port_QDH[:, 0], axis=0)))


def _num_ring_borders() -> float:
    """Return the most steps in which a data-parallel ring of the 12,288-GPU job changes its ToR set."""
    fabric = build_clos(MegascaleSpec())
    layout = ParallelLayout(tp=8, dp=192, pp=8)
    placement = place(layout, fabric, "contiguous")
    set_N = np.zeros(fabric.num_nodes, np.int64)
    for number, hosts in enumerate(tor_sets(fabric)):
        set_N[hosts] = number
    set_GD = set_N[placement.host_R[layout.groups("dp")]]
    return float((set_GD != np.roll(set_GD, -1, axis=1)).sum(axis=1).max())
