"""The next hops among which switches choose, as an engine reads them; empty where paths are fixed.

Shapes: P ports, Q queue pairs, D = 2 directions, A attachments, S switches, K sets, X ports of all sets.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foundation.seeds import stream_key
from netsim.config.path_choice import MAX_QUEUE_LEVELS, PathChoiceConfig
from netsim.lowering.limits import PATH_END
from topology.network import NO_PORT, Network
from topology.next_hops import next_hops

Columns = dict[str, NDArray[np.uint32]]

NAMES = (
    "next_hop_switch",  # P: number of the switch behind the wire, PATH_END for a host
    "next_hop_row",  # Q x D: where in the sets the destination's begin; a switch's stands at its number
    "next_hop_exit",  # Q x D x 2: ports straight to the destination, that of the hash path first
    "next_hop_set",  # A x S
    "next_hop_offset",  # K + 1
    "next_hop_port",  # X
    "next_hop_weight",  # X
)


def path_choice_settings(config: PathChoiceConfig, seed: int) -> dict[str, Any]:
    """Return the settings of an engine's path choice."""
    rules: Mapping[str, str] = {
        "hash": "hash",
        "spray": config.spray,
        "flowlet": config.flowlet_port,
        "adaptive": "least-queue",
        "weighted": "weighted",
    }
    return {
        "path_rule": ("hash", "random", "round-robin", "least-queue", "weighted").index(rules[config.mode]),
        "flowlet_gap_ps": config.gap_ns * 1000 if config.mode == "flowlet" else 0,
        "queue_step_bytes": config.queue_step_bytes,
        "queue_levels": config.queue_levels or MAX_QUEUE_LEVELS,
        "is_tie_random": config.ties == "random",
        "control_has_choice": config.acknowledgements == "same",
        "path_choice_key": stream_key(seed, "netsim", "path choice") % 2**64,
    }


def path_choice(network: Network, config: PathChoiceConfig, path_QDH: NDArray[np.int64]) -> Columns:
    """Return the columns in NAMES."""
    if config.mode == "hash":
        return {name: np.zeros(0, np.uint32) for name in NAMES}
    fabric, pairs = network.fabric, network.queue_pairs
    hops = next_hops(fabric, weights=config.weights if config.mode == "weighted" else "equal")
    nic_QD = np.stack([pairs.destination_nic_Q, pairs.source_nic_Q], axis=1)
    columns = (
        hops.switch_N[fabric.port_node_P[fabric.port_peer_P]],
        hops.attachment_C[nic_QD] * hops.set_AS.shape[1],
        _fixed_first(hops.exit_C2[nic_QD], path_QDH),
        hops.set_AS,
        hops.offset_K1,
        hops.port_X,
        hops.weight_X,
    )
    return {
        name: np.where(column < 0, PATH_END, column).astype(np.uint32).ravel()
        for name, column in zip(NAMES, columns, strict=True)
    }


def _fixed_first(exit_QD2: NDArray[np.int64], path_QDH: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the exits with the one that ends the hash path in front."""
    last_QD1 = (path_QDH != NO_PORT).sum(axis=2, keepdims=True) - 1
    is_second_QD1 = exit_QD2[:, :, 1:] == np.take_along_axis(path_QDH, last_QD1, axis=2)
    exits: NDArray[np.int64] = np.where(is_second_QD1, exit_QD2[:, :, ::-1], exit_QD2)
    return exits
