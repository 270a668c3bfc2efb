"""The paths of a network as an engine follows them: checked, and padded to one stride."""

from itertools import pairwise

import numpy as np

from fabrictune.cc.interface import MAX_TELEMETRY_HOPS
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, RouteError
from fabrictune.netsim.engine_inputs.limits import PATH_END, require_ids
from fabrictune.topology.fabric import NO_NIC, Fabric
from fabrictune.topology.network import NO_PORT, Network


def checked_paths(network: Network, *, uses_telemetry: bool) -> IntArray:
    """Return the paths of the first epoch, shape (Q, 2, H), padded with NO_PORT.

    H is a power of two that holds every epoch's paths and their end marks. Later epochs may leave queue pairs without
    a path; the first may not.
    """
    _check_epochs(network)
    port_QDH = network.epochs[0].port_QDH.astype(np.int64)
    num_pairs = len(port_QDH)
    num_hops = max(epoch.port_QDH.shape[2] for epoch in network.epochs)
    require_ids(num_pairs, "queue pairs")
    if uses_telemetry and num_hops > MAX_TELEMETRY_HOPS:
        raise RouteError(
            Mistake(where="network", found=f"paths of {num_hops} hops", allowed=f"{MAX_TELEMETRY_HOPS} with telemetry")
        )
    stride = max(8, 1 << num_hops.bit_length())
    if 2 * num_pairs * stride >= PATH_END:
        raise RouteError(Mistake(where="network", found=f"{num_pairs} paths of up to {stride} hops", allowed="fewer"))
    padded = np.full((num_pairs, 2, stride), NO_PORT, np.int64)
    padded[:, :, : port_QDH.shape[2]] = port_QDH
    return padded


def _check_epochs(network: Network) -> None:
    """Raise RouteError unless epochs follow one another from time 0, each with right paths."""
    starts_ps = [epoch.start_ps for epoch in network.epochs]
    if not starts_ps or starts_ps[0] != 0 or any(later <= earlier for earlier, later in pairwise(starts_ps)):
        raise RouteError(
            Mistake(where="network", found=f"routing epochs from {starts_ps} ps on", allowed="one from 0, others later")
        )
    distinct = {id(epoch.port_QDH): epoch.port_QDH for epoch in network.epochs}.values()
    for number, port_QDH in enumerate(distinct):
        _check_paths(network.fabric, port_QDH.astype(np.int64), may_be_cut_off=number > 0)


def _check_paths(fabric: Fabric, port_QDH: IntArray, *, may_be_cut_off: bool) -> None:
    """Raise RouteError unless each path starts at a NIC and every port leads to the node of the next."""
    is_hop_QDH = port_QDH != NO_PORT
    is_right = bool(((port_QDH >= NO_PORT) & (port_QDH < fabric.num_ports)).all())
    is_right = is_right and not (is_hop_QDH[:, :, 1:] & ~is_hop_QDH[:, :, :-1]).any()
    if is_right:
        has_next_QDH = is_hop_QDH[:, :, 1:]
        behind_QDH = fabric.port_node_P[fabric.port_peer_P[port_QDH[:, :, :-1]]]
        is_joined_QDH = behind_QDH == fabric.port_node_P[port_QDH[:, :, 1:]]
        starts_at_nic_QD = is_hop_QDH[:, :, 0] & (fabric.port_nic_P[port_QDH[:, :, 0]] != NO_NIC)
        is_cut_off_QD = may_be_cut_off & ~is_hop_QDH.any(axis=2)
        is_right = bool((is_joined_QDH | ~has_next_QDH).all() and (starts_at_nic_QD | is_cut_off_QD).all())
    if not is_right:
        raise RouteError(
            Mistake(where="network", found="a path that does not run from NIC to NIC", allowed="one that does")
        )
