"""Priorities as an engine reads them: rules, and for each port and priority its part of the buffer.

Shapes: C priorities in ascending order, P ports, N nodes, Q queue pairs; those of the arrays are in
netsim/engine/state/arrays.inl. All arrays are empty where a configuration lists no priorities.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrictune.cc.interface import NEVER
from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.queues import PriorityConfig
from fabrictune.netsim.config.switch import EcnConfig
from fabrictune.netsim.engine_inputs.limits import NO_PRIORITY
from fabrictune.netsim.headroom import QUANTUM_BITS
from fabrictune.topology.fabric import NO_NIC, Fabric
from fabrictune.topology.network import Network

NO_MARK = 2**62
UNLIMITED_BYTES = 2**62
PAUSE_PATIENCE_PS = 10**10  # 10 ms in addition to the pause itself, more than any cable and response takes

INTEGERS = (
    "priority_weight",
    "priority_is_lossless",
    "priority_ecn_min",
    "priority_ecn_max",
    "priority_ecn_drops",
    "priority_output_reserve",
    "priority_input_reserve",
    "priority_input_headroom",
    "priority_resume_offset",
    "priority_shared_buffer",
    "priority_headroom_pool",
    "priority_queue_pair",
)
FRACTIONS = ("priority_alpha", "priority_ecn_max_fraction")


def marking(ecn: EcnConfig) -> tuple[int, int, float]:
    """Return the queue from which packets may be marked, that from which all are, and the share just below it."""
    kmin_bytes, kmax_bytes, pmax_fraction = ecn.curve
    return kmin_bytes if ecn.enabled else NO_MARK, kmax_bytes, pmax_fraction


def priority_settings(config: PacketConfig) -> dict[str, Any]:
    """Return the settings of priorities and their pauses; times in picoseconds."""
    queues, pfc = config.queues, config.pfc

    def place(priority: int | None) -> int:
        return NO_PRIORITY if priority is None else queues.numbers.index(priority)

    return {
        "full_frame_bytes": config.full_frame_bytes,
        "acknowledgement_priority": place(queues.acknowledgements),
        "cnp_priority": place(queues.cnp),
        "trimmed_priority": place(config.trimming.priority if config.trimming.enabled else None),
        "acknowledgements_are_ecn_capable": config.nic.ecn_capable != "data",
        "cnps_are_ecn_capable": config.nic.ecn_capable == "all",
        "pause_quanta": pfc.quanta or 0,
        "is_pause_refreshed": pfc.refresh,
        "watchdog_detect_ps": pfc.watchdog.detect_ns * PS_PER_NS if pfc.watchdog else NEVER,
        "watchdog_restore_ps": pfc.watchdog.restore_ns * PS_PER_NS if pfc.watchdog else 0,
        "watchdog_drops": pfc.watchdog is not None and pfc.watchdog.action == "drop",
    }


def pause_patience_ps(fabric: Fabric, config: PacketConfig) -> int:
    """Return a time in which every pause that is not renewed has run out."""
    slowest_bps = int(fabric.port_rate_bps_P.min())
    return 2 * (config.pfc.quanta or 0) * QUANTUM_BITS * 10**12 // slowest_bps + PAUSE_PATIENCE_PS


def priorities(network: Network, config: PacketConfig, ports: Mapping[str, IntArray]) -> dict[str, NDArray[Any]]:
    """Return the arrays in INTEGERS and FRACTIONS.

    `ports` are the arrays of ports, with the thresholds of a buffer of its own behind each. Raises InputError for queue
    pairs of a priority that is not listed, and for a shared buffer that is used up by reserves and headroom.
    """
    rules = sorted(config.queues.priorities, key=lambda rule: rule.priority)
    if not rules:
        return {name: np.zeros(0, np.int64) for name in INTEGERS} | {name: np.zeros(0) for name in FRACTIONS}
    curve_C = [marking(rule.ecn or config.ecn) for rule in rules]
    is_lossless_C = np.array([rule.lossless and config.pfc.enabled for rule in rules])
    columns: dict[str, Any] = {
        "priority_weight": [rule.weight for rule in rules],
        "priority_is_lossless": is_lossless_C,
        "priority_ecn_min": [curve[0] for curve in curve_C],
        "priority_ecn_max": [curve[1] for curve in curve_C],
        "priority_ecn_drops": [(rule.ecn or config.ecn).not_capable == "drop" for rule in rules],
        "priority_queue_pair": _queue_pairs(network, config.queues.numbers),
        **(
            _own_buffers(network.fabric, config, is_lossless_C, ports)
            if config.buffer.size_bytes is None
            else _shared_buffers(network.fabric, config, rules, is_lossless_C, ports)
        ),
    }
    is_shared = config.buffer.size_bytes is not None
    return {
        **{name: np.ravel(np.asarray(columns[name], np.int64)) for name in INTEGERS},
        "priority_alpha": np.array([rule.alpha if is_shared else 0.0 for rule in rules]),
        "priority_ecn_max_fraction": np.array([curve[2] for curve in curve_C]),
    }


def _queue_pairs(network: Network, numbers: tuple[int, ...]) -> IntArray:
    priority_Q = network.queue_pairs.priority_Q
    unlisted = sorted(set(priority_Q.tolist()) - set(numbers))
    if unlisted:
        raise InputError(
            Mistake(
                where="queues.priorities",
                found=f"{list(numbers)}, with queue pairs of priority {', '.join(str(number) for number in unlisted)}",
                allowed="every priority that queue pairs have",
                next_step="list it as well",
            )
        )
    return np.searchsorted(numbers, priority_Q)


def _own_buffers(
    fabric: Fabric, config: PacketConfig, is_lossless_C: BoolArray, ports: Mapping[str, IntArray]
) -> dict[str, Any]:
    """Return the buffers where each port and lossless priority has xoff and headroom, each lossy queue the buffer.

    A NIC has them for lossy priorities as well, without headroom.
    """
    xoff_P = ports["pause_above"] + config.full_frame_bytes
    whole_P = np.where(ports["drain_rate"] > 0, ports["ingress_limit"], 0)
    return {
        "priority_output_reserve": np.full(len(is_lossless_C), config.pfc.buffer_bytes),
        "priority_input_reserve": np.where(is_lossless_C, xoff_P[:, None], whole_P[:, None]),
        "priority_input_headroom": np.outer(ports["ingress_limit"] - xoff_P, is_lossless_C),
        "priority_resume_offset": np.outer(xoff_P - ports["resume_below"], is_lossless_C),
        "priority_shared_buffer": np.zeros(fabric.num_nodes),
        "priority_headroom_pool": np.full(fabric.num_nodes, UNLIMITED_BYTES),
    }


def _shared_buffers(
    fabric: Fabric,
    config: PacketConfig,
    rules: list[PriorityConfig],
    is_lossless_C: BoolArray,
    ports: Mapping[str, IntArray],
) -> dict[str, Any]:
    """Return the buffers where ports share what reserves and headroom leave of their switch's; NICs share nothing."""
    own = _own_buffers(fabric, config, is_lossless_C, ports)
    buffer, frame_bytes = config.buffer, config.full_frame_bytes
    assert buffer.size_bytes is not None, "chosen by the caller"
    behind_P = fabric.port_node_P[fabric.port_peer_P]
    is_host_N = np.isin(np.arange(fabric.num_nodes), fabric.port_node_P[fabric.port_nic_P != NO_NIC])
    reserve_C = np.array([rule.reserve_bytes for rule in rules])
    headroom_P = own["priority_input_headroom"].sum(axis=1)
    pool_N = np.bincount(behind_P, weights=headroom_P, minlength=fabric.num_nodes)
    if buffer.headroom_pool_bytes is not None:
        pool_N[:] = buffer.headroom_pool_bytes
    reserved_N = np.bincount(behind_P, minlength=fabric.num_nodes) * reserve_C.sum()
    shared_N = np.where(is_host_N, 0, buffer.size_bytes - pool_N - reserved_N)
    least = int(shared_N[~is_host_N].min(initial=buffer.size_bytes))
    if least < frame_bytes:
        raise InputError(
            Mistake(
                where="buffer.size",
                found=f"{buffer.size_bytes} B, of which reserves and headroom leave {least} B",
                allowed=f"what leaves a full frame ({frame_bytes} B) or more to be shared",
                next_step="raise buffer.size, or set buffer.headroom_pool",
            )
        )
    in_host_P1 = is_host_N[behind_P][:, None]
    offset_bytes = buffer.resume_offset_bytes or 2 * frame_bytes
    return {
        **own,
        "priority_output_reserve": reserve_C,
        "priority_input_reserve": np.where(in_host_P1, own["priority_input_reserve"], reserve_C * is_lossless_C),
        "priority_resume_offset": np.where(in_host_P1, own["priority_resume_offset"], offset_bytes),
        "priority_shared_buffer": shared_N,
        "priority_headroom_pool": np.where(is_host_N, UNLIMITED_BYTES, pool_N),
    }
