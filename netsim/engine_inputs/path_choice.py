"""The next hops among which switches choose, as an engine reads them; empty where paths are fixed.

Every set of paths has its own, in which what is down then leads nowhere: all rows, sets and ports of the first are
before those of the second, and numbers run on.

Shapes: P ports, Q queue pairs, D = 2 directions; those of the arrays are in netsim/engine/state/arrays.inl.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.seeds import stream_key
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.config.path_choice import MAX_QUEUE_LEVELS, PathChoiceConfig
from fabrictune.netsim.engine_inputs.epochs import distinct_epochs
from fabrictune.netsim.engine_inputs.limits import PATH_END
from fabrictune.topology.network import NO_PORT, Network, RoutingEpoch
from fabrictune.topology.next_hops import next_hops

WHOLE_LOAD = 2**16  # a port that sends at its rate

PathTables = dict[str, NDArray[np.uint32]]

NAMES = (
    "next_hop_switch",
    "next_hop_row",  # where in the sets the destination's begin; a switch's is at its number
    "next_hop_exit",
    "next_hop_set",
    "next_hop_offset",
    "next_hop_port",
    "next_hop_weight",
)


PATH_RULES = ("hash", "random", "round-robin", "least-queue", "weighted", "quality", "entropy")  # as in the engine


def path_choice_settings(config: PathChoiceConfig, seed: int) -> dict[str, Any]:
    """Return the settings of an engine's path choice."""
    rules: Mapping[str, str] = {
        "hash": "hash",
        "spray": config.spray,
        "flowlet": config.flowlet_port,
        "adaptive": "least-queue",
        "weighted": "weighted",
        "ars": "quality",
        "entropy": "entropy",
    }
    ars, is_ars = config.ars, config.mode == "ars"
    gap_ns = {"flowlet": config.gap_ns, "ars": ars.flowlet_idle_time_ns}.get(config.mode, 0)
    is_per_packet = is_ars and ars.assign_mode == "per_packet"
    return {
        "path_rule": PATH_RULES.index(rules[config.mode]),
        "flowlet_gap_ps": 0 if is_per_packet else gap_ns * PS_PER_NS,
        "max_flows": ars.max_flows if is_ars else 0,
        "load_sampling_ps": ars.sampling_interval_ns * PS_PER_NS,
        "load_exponent": ars.load_exponent,
        "load_falls_at_once": ars.load_current,
        "load_bands": ars.quantization_bands,
        "past_load": (round(ars.past_load_min_fraction * WHOLE_LOAD), round(ars.past_load_max_fraction * WHOLE_LOAD)),
        "past_load_weight": ars.past_load_weight,
        "future_load": (ars.future_load_min_bytes, ars.future_load_max_bytes),
        "future_load_weight": ars.future_load_weight,
        "queue_step_bytes": config.queue_step_bytes,
        "queue_levels": config.queue_levels or MAX_QUEUE_LEVELS,
        "is_tie_random": config.ties == "random",
        "control_has_choice": config.acknowledgements == "same",
        "path_choice_key": stream_key(seed, "netsim", "path choice") % 2**64,
        "num_entropy_values": config.entropy_values if config.mode == "entropy" else 0,
        "recycles_entropy": config.entropy == "reps",
        "entropy_freeze_ps": config.freeze_ns * PS_PER_NS,
        "entropy_key": stream_key(seed, "netsim", "entropy") % 2**64,
    }


def path_choice(network: Network, config: PathChoiceConfig) -> PathTables:
    """Return the arrays in NAMES, those of later sets of paths behind those of the first."""
    if config.mode == "hash":
        return {name: np.zeros(0, np.uint32) for name in NAMES}
    epochs = [_of_epoch(network, epoch, config) for epoch in distinct_epochs(network)]
    first_set, first_port = 0, 0
    for columns in epochs:
        num_sets, num_ports = len(columns["next_hop_offset"]) - 1, len(columns["next_hop_port"])
        columns["next_hop_set"] += first_set
        columns["next_hop_offset"] += first_port
        first_set, first_port = first_set + num_sets, first_port + num_ports
    num_rows = np.cumsum([0, *(len(columns["next_hop_set"]) for columns in epochs)])
    for columns, begin in zip(epochs, num_rows[:-1], strict=True):
        columns["next_hop_row"] += begin
    joined = {name: np.concatenate([columns[name] for columns in epochs]) for name in NAMES}
    joined["next_hop_switch"] = epochs[0]["next_hop_switch"]
    joined["next_hop_offset"] = np.concatenate(
        [*(columns["next_hop_offset"][:-1] for columns in epochs), epochs[-1]["next_hop_offset"][-1:]]
    )
    return {name: np.where(column < 0, PATH_END, column).astype(np.uint32) for name, column in joined.items()}


def _of_epoch(network: Network, epoch: RoutingEpoch, config: PathChoiceConfig) -> dict[str, IntArray]:
    """Return the columns of one set of paths alone, -1 for what is not there."""
    fabric, pairs = network.fabric, network.queue_pairs
    is_down_P = np.isin(np.arange(fabric.num_ports), list(epoch.down_ports))
    weights = config.weights if config.mode == "weighted" else "equal"
    hops = next_hops(fabric, weights=weights, is_failed_P=is_down_P)
    nic_QD = np.stack([pairs.destination_nic_Q, pairs.source_nic_Q], axis=1)
    columns = (
        hops.switch_N[fabric.port_node_P[fabric.port_peer_P]],
        hops.attachment_C[nic_QD] * hops.set_AS.shape[1],
        _fixed_first(hops.exit_C2[nic_QD], epoch.port_QDH),
        hops.set_AS,
        hops.offset_K1,
        hops.port_X,
        hops.weight_X,
    )
    return {name: column.astype(np.int64).ravel() for name, column in zip(NAMES, columns, strict=True)}


def _fixed_first(exit_QD2: IntArray, port_QDH: NDArray[np.int32]) -> IntArray:
    """Return the exits with the one that ends the hash path in front."""
    last_QD1 = (port_QDH != NO_PORT).sum(axis=2, keepdims=True) - 1
    is_second_QD1 = exit_QD2[:, :, 1:] == np.take_along_axis(port_QDH, last_QD1, axis=2)
    exits: IntArray = np.where(is_second_QD1, exit_QD2[:, :, ::-1], exit_QD2)
    return exits
