"""The paths of a network as an engine follows them: checked, and padded to one stride."""

import numpy as np
from numpy.typing import NDArray

from cc.interface import MAX_TELEMETRY_HOPS
from foundation.errors import Mistake, RouteError
from netsim.lowering.limits import PATH_END, require_ids
from topology.fabric import NO_NIC, Fabric
from topology.network import NO_PORT, Network


def checked_paths(network: Network, *, uses_telemetry: bool) -> NDArray[np.int64]:
    """Return the paths, shape (Q, 2, H), padded with NO_PORT to a power of two that holds every end mark."""
    if len(network.epochs) != 1:
        raise RouteError(
            Mistake(where="network", found=f"{len(network.epochs)} routing epochs", allowed="one, from the start")
        )
    port_QDH = network.epochs[0].port_QDH.astype(np.int64)
    fabric = network.fabric
    _check_paths(fabric, port_QDH)
    num_pairs, _, num_hops = port_QDH.shape
    require_ids(num_pairs, "queue pairs")
    if uses_telemetry and num_hops > MAX_TELEMETRY_HOPS:
        raise RouteError(
            Mistake(where="network", found=f"paths of {num_hops} hops", allowed=f"{MAX_TELEMETRY_HOPS} with telemetry")
        )
    stride = max(8, 1 << num_hops.bit_length())
    if 2 * num_pairs * stride >= PATH_END:
        raise RouteError(Mistake(where="network", found=f"{num_pairs} paths of up to {stride} hops", allowed="fewer"))
    padded = np.full((num_pairs, 2, stride), NO_PORT, np.int64)
    padded[:, :, :num_hops] = port_QDH
    return padded


def _check_paths(fabric: Fabric, port_QDH: NDArray[np.int64]) -> None:
    """Raise RouteError unless each path starts at a NIC and every port leads to the node of the next."""
    is_hop_QDH = port_QDH != NO_PORT
    is_right = bool(((port_QDH >= NO_PORT) & (port_QDH < fabric.num_ports)).all())
    is_right = is_right and not (is_hop_QDH[:, :, 1:] & ~is_hop_QDH[:, :, :-1]).any()
    if is_right:
        has_next_QDH = is_hop_QDH[:, :, 1:]
        behind_QDH = fabric.port_node_P[fabric.port_peer_P[port_QDH[:, :, :-1]]]
        is_joined_QDH = behind_QDH == fabric.port_node_P[port_QDH[:, :, 1:]]
        starts_at_nic_QD = is_hop_QDH[:, :, 0] & (fabric.port_nic_P[port_QDH[:, :, 0]] != NO_NIC)
        is_right = bool((is_joined_QDH | ~has_next_QDH).all() and starts_at_nic_QD.all())
    if not is_right:
        raise RouteError(
            Mistake(where="network", found="a path that does not run from NIC to NIC", allowed="one that does")
        )
