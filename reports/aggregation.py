"""Aggregation of a fabric until it can be drawn: nodes become boxes, links between two boxes one bundle.

A fabric of a few hundred links is drawn as it is, every node a box and every link a bundle of its own. A larger one is
folded by ToR set (the nodes' group), then by rail, then by tier alone, at the first of these that fits on a page.

Shapes: N nodes, P ports, B boxes, U bundles.
"""

from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.reports.fabric_view import FabricView
from fabrictune.topology.fabric import NO_GROUP, NO_RAIL

MAX_BOXES = 240
MAX_BUNDLES = 1_200


@dataclass(frozen=True, kw_only=True, eq=False)
class Folded:
    """Boxes and bundles of a drawn fabric."""

    box_N: IntArray
    name_B: tuple[str, ...]
    size_B: IntArray  # nodes in each box
    tier_B: IntArray
    group_B: IntArray  # NO_GROUP where a box holds nodes of several
    bundle_P: IntArray  # ports of both directions of a link are in one bundle
    ends_U2: IntArray  # the bundle's two boxes, lower tier first; bundles of the same two are neighbours
    is_edge_U: BoolArray  # bundles that end at hosts
    folded_by: str  # "" where each node is drawn


def fold(fabric: FabricView) -> Folded:
    """Return the finest folding that fits."""
    tier_N, group_N, rail_N = fabric.node_tier_N, fabric.node_group_N, node_rails(fabric)
    finer_levels: tuple[tuple[str, tuple[IntArray, ...]], ...] = (
        ("", (tier_N, group_N, rail_N, np.arange(fabric.num_nodes))),
        ("ToR set", (tier_N, group_N)),
        ("rail", (tier_N, rail_N)),
    )
    for folded_by, keys in finer_levels:
        folded = _fold_by(fabric, keys, folded_by)
        if len(folded.name_B) <= MAX_BOXES and len(folded.ends_U2) <= MAX_BUNDLES:
            return folded
    return _fold_by(fabric, (tier_N,), "tier")


def node_rails(fabric: FabricView) -> IntArray:
    """Return the rail each node serves: the one that all NICs on its links share, or NO_RAIL."""
    own_nic_P, peer_nic_P = fabric.port_nic_P, fabric.port_nic_P[fabric.port_peer_P]
    rail_P = np.where(own_nic_P >= 0, fabric.port_rail_P, fabric.port_rail_P[fabric.port_peer_P])
    ports = np.nonzero((own_nic_P >= 0) | (peer_nic_P >= 0))[0]
    lowest_N = np.full(fabric.num_nodes, np.iinfo(np.int64).max)
    highest_N = np.full(fabric.num_nodes, NO_RAIL)
    np.minimum.at(lowest_N, fabric.port_node_P[ports], rail_P[ports])
    np.maximum.at(highest_N, fabric.port_node_P[ports], rail_P[ports])
    return np.where(lowest_N == highest_N, highest_N, NO_RAIL)


def _fold_by(fabric: FabricView, keys: tuple[IntArray, ...], folded_by: str) -> Folded:
    key_BK, first_B, box_N, size_B = np.unique(
        np.stack(keys, axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    box_N = box_N.reshape(-1)
    end_P2 = np.stack([box_N[fabric.port_node_P], box_N[fabric.peer_node_P]], axis=1)
    # Where nodes stand alone so do links: the lower of its two port numbers distinguishes parallel links.
    link_P = np.zeros(fabric.num_ports) if folded_by else np.minimum(np.arange(fabric.num_ports), fabric.port_peer_P)
    key_P3 = np.column_stack([np.sort(end_P2, axis=1), link_P]).astype(np.int64)
    key_U3, bundle_P = np.unique(key_P3, axis=0, return_inverse=True)
    ends_U2 = key_U3[:, :2]
    names = [_box_name(fabric, int(first), folded_by, key) for first, key in zip(first_B, key_BK, strict=True)]
    return Folded(
        box_N=box_N,
        name_B=tuple(names),
        size_B=size_B,
        tier_B=fabric.node_tier_N[first_B],
        group_B=fabric.node_group_N[first_B] if folded_by in ("", "ToR set") else np.full(len(first_B), NO_GROUP),
        bundle_P=bundle_P.reshape(-1),
        ends_U2=ends_U2,
        is_edge_U=np.asarray(fabric.is_host_N[first_B][ends_U2].any(axis=1)),
        folded_by=folded_by,
    )


def _box_name(fabric: FabricView, first: int, folded_by: str, key: IntArray) -> str:
    if not folded_by:
        return fabric.node_name_N[first]
    tier = fabric.tier_name(int(key[0]))
    if len(key) == 1 or key[1] in (NO_GROUP, NO_RAIL):
        return tier
    return f"{tier}, {folded_by} {key[1]}"
