"""Memory estimate of a run; a run that cannot fit is refused before it starts.

Packets dominate. At one instant there are no more than the buffers and wires hold, and no more than the traffic has.
"""

import os
import resource
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from fabrictune.cc.interface import NEVER
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.generated_traces import GeneratedTrace
from fabrictune.foundation.row_ranges import CHUNK_ROWS, ranges
from fabrictune.foundation.units import format_bytes
from fabrictune.netsim import _engine
from fabrictune.netsim.engine_inputs.inputs import EngineInputs
from fabrictune.netsim.fluid.audits import MOST_IN_REPLAY
from fabrictune.netsim.work import least_time_ps

MEMORY_OF_MACHINE = Path("/proc/meminfo")
CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
GROWTH = 2  # tables double as they grow, and copy themselves while they do
COPIES = 2  # of arrays: the one given, and the one that the engine keeps
EVENT_BYTES = 16
DEPENDENT_OFFSET_BYTES = 4
DEPENDENCY_BYTES = 8  # turned round, and as it came
FLUID_EVENT_BYTES = 24
AUDIT_BYTES = 160  # of what audits draw from, and its order
PYTHON_BYTES_PER_TRANSFER = 310  # of the trace, its tables and the record
GENERATED_BYTES_PER_TRANSFER = 40  # of the columns that a metric needs, where the rest is generated
CREDIT_BYTES = 8  # what a packet says of its queue pair's credit
REPORT_BYTES = 4 + 16  # what an acknowledgement names under selective repeat: the packet expected, and those beyond it
TIME_IN_HOST_BYTES = 8  # of a packet
ENTROPY_BYTES = 2  # of a packet
SIDE_COPIES = 2  # arrays beside packets are made as long again as there are packets
DEPARTURE_BYTES = 4  # how often a packet's wire had been down when it left
VALUES_PER_PACKET = 60  # kept by exact skip at most, with the part of a pair and a port
WATCHED_BYTES_PER_PAIR = 512  # windows of a queue pair, with its prediction in an audit
WATCHED_BYTES_PER_PORT = 16  # who sends through it, and what a span moves
INTERVAL_BYTES = 16  # of a transfer, or of what NVLink carries each way
REMEMBERED_BYTES = 512  # windows of a queue pair in a group that it has left
MOST_REMEMBERED = 1 << 16
LOGGED_PER_PACKET = 4  # by exact skip: calls of a law for its sending, acknowledgement and notification; a draw


def estimated_bytes(inputs: EngineInputs, *, uses_telemetry: bool = False) -> int:
    """Return an upper estimate of a run's memory; telemetry takes room with every packet."""
    given_bytes = sum(array.nbytes for array in inputs.arrays.values())
    num_threads = int(inputs.settings["num_threads"])
    captured_bytes = int(inputs.settings["max_captured"]) * _engine.BYTES_PER_CAPTURED_PACKET * GROWTH
    return (
        (COPIES - 1) * given_bytes
        + num_threads * (given_bytes + _state_bytes(inputs) + captured_bytes)
        + _python_bytes(inputs)
        + _sample_bytes(inputs) * GROWTH
        + (_skip_bytes(inputs) + _mean_rate_bytes(inputs)) * GROWTH
        + _most_packets(inputs) * _packet_bytes(inputs, uses_telemetry=uses_telemetry) * GROWTH
    )


def _packet_bytes(inputs: EngineInputs, *, uses_telemetry: bool) -> int:
    """Return the room of a packet with what is kept beside it."""
    beside = (
        (CREDIT_BYTES, len(inputs["credit_window"])),
        (REPORT_BYTES, len(inputs["reorder_window"])),
        (TIME_IN_HOST_BYTES, _spends_time_in_hosts(inputs)),
        (ENTROPY_BYTES, inputs.settings["num_entropy_values"]),
    )
    return (
        _engine.BYTES_PER_PACKET
        + EVENT_BYTES
        + (_engine.BYTES_PER_TELEMETRY if uses_telemetry else 0)
        + (DEPARTURE_BYTES if _can_go_wrong(inputs) else 0)
        + (_engine.SKIP_BYTES_PER_PACKET if inputs.settings["skips_repeats"] else 0)
        + SIDE_COPIES * sum(num_bytes for num_bytes, is_kept in beside if is_kept)
    )


def _state_bytes(inputs: EngineInputs) -> int:
    """Return the room of what the engine keeps beside its arrays and packets, of which each thread has its own."""
    flow_bytes = -(-inputs["flow"].dtype.itemsize // 64) * 64
    transfer_bytes = _engine.BYTES_PER_TRANSFER + DEPENDENT_OFFSET_BYTES + EVENT_BYTES
    return (
        len(inputs["port_rate_bps"]) * _engine.BYTES_PER_PORT
        + len(inputs["flow"]) * (_engine.BYTES_PER_QUEUE_PAIR + flow_bytes)
        + transfer_bytes * len(inputs.traffic)
        + DEPENDENCY_BYTES * inputs.totals.num_dependencies
        + _path_choice_bytes(inputs)
        + _fault_bytes(inputs)
        + _priority_bytes(inputs)
        + _host_bytes(inputs)
    )


def require_memory(inputs: EngineInputs, *, uses_telemetry: bool = False, available_bytes: int | None = None) -> None:
    """Raise InputError if the run needs more memory than is available."""
    _require(estimated_bytes(inputs, uses_telemetry=uses_telemetry), available_bytes)


def fitting(inputs: EngineInputs, *, uses_telemetry: bool = False, available_bytes: int | None = None) -> EngineInputs:
    """Return a run that fits in memory, without exact skip where only that is too much; raises InputError otherwise."""
    if available_bytes is None:
        available_bytes = least_limit_bytes()
    is_exact = inputs.settings["skips_repeats"] and not inputs.settings["skips_at_mean_rates"]
    if is_exact and estimated_bytes(inputs, uses_telemetry=uses_telemetry) > available_bytes:
        settings = {**inputs.settings, "skips_repeats": False}
        inputs = replace(inputs, settings=settings, not_searched="memory is too small to look for what repeats")
    require_memory(inputs, uses_telemetry=uses_telemetry, available_bytes=available_bytes)
    return inputs


def require_fluid_memory(inputs: EngineInputs, available_bytes: int | None = None, *, has_audits: bool = True) -> None:
    """Raise InputError if a run at max-min shares needs more memory than is available, audits included."""
    _require(fluid_bytes(inputs, has_audits=has_audits), available_bytes)


def fluid_bytes(inputs: EngineInputs, *, has_audits: bool = True) -> int:
    """Return an upper estimate of the memory of a run at max-min shares."""
    given_bytes = sum(array.nbytes for array in inputs.arrays.values())
    transfer_bytes = _engine.BYTES_PER_FLUID_TRANSFER + DEPENDENT_OFFSET_BYTES + FLUID_EVENT_BYTES
    return (
        (1 + has_audits) * COPIES * given_bytes  # of the run, and of its audits
        + (transfer_bytes + has_audits * AUDIT_BYTES) * len(inputs.traffic)
        + DEPENDENCY_BYTES * GROWTH * inputs.totals.num_dependencies
        + _python_bytes(inputs)
        + has_audits * _most_audited_bytes(inputs)
    )


def _most_audited_bytes(inputs: EngineInputs) -> int:
    """Return the room of the packets of one replay, all of its transfers at once."""
    packets = MOST_IN_REPLAY * -(-inputs.totals.largest_bytes // int(inputs.settings["mtu_bytes"]))
    return min(packets, _most_packets(inputs)) * _packet_bytes(inputs, uses_telemetry=False) * GROWTH


def _require(needed_bytes: int, available_bytes: int | None) -> None:
    if available_bytes is None:
        available_bytes = least_limit_bytes()
    if needed_bytes > available_bytes:
        raise InputError(
            Mistake(
                where="traffic",
                found=f"a run that may need {format_bytes(needed_bytes)} of memory",
                allowed=f"what is free on this machine, or allowed: {format_bytes(available_bytes)}",
                next_step="simulate fewer transfers, a smaller fabric or buffers, take fewer threads, or probe rarely",
            )
        )


def least_limit_bytes() -> int:
    """Return the least of the machine's free memory, its container's limit and the process's own limit."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError, ValueError, StopIteration):
        lines = MEMORY_OF_MACHINE.read_text().splitlines()
        available = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        limits.append(int(available) * 1024)
    own_limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if own_limit != resource.RLIM_INFINITY:
        limits.append(own_limit)
    for path in CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # not there, or "max"
            limits.append(int(path.read_text()))
    return min(limits)


def _python_bytes(inputs: EngineInputs) -> int:
    """Return the room of all transfers in Python and in the record."""
    num_transfers = len(inputs.traffic)
    if not isinstance(inputs.traffic, GeneratedTrace):
        return PYTHON_BYTES_PER_TRANSFER * num_transfers
    chunk_rows = min(num_transfers, CHUNK_ROWS)
    return GENERATED_BYTES_PER_TRANSFER * num_transfers + PYTHON_BYTES_PER_TRANSFER * chunk_rows


def _path_choice_bytes(inputs: EngineInputs) -> int:
    """Return the room of a random stream a port, and of one flowlet at every hop of every flow."""
    if not len(inputs["next_hop_port"]):
        return 0
    random_bytes = len(inputs["port_rate_bps"]) * _engine.BYTES_PER_RANDOM_STREAM
    flowlets = len(inputs["path"]) if inputs.settings["flowlet_gap_ps"] else 0
    return random_bytes + flowlets * _engine.BYTES_PER_FLOWLET * 2 * GROWTH


def _sample_bytes(inputs: EngineInputs) -> int:
    """Return the room of all samples until the time limit; without one, in the time that the traffic takes at least."""
    limit_ps: int = inputs.settings["time_limit_ps"]
    interval_ps: int = inputs.settings["probe_interval_ps"]
    if interval_ps == NEVER:
        return 0
    length_ps = int(least_time_ps(inputs)) if limit_ps == NEVER else limit_ps
    num_instants, most = length_ps // interval_ps + 1, int(inputs.settings["max_samples"])
    num_port_samples = min(num_instants * len(inputs["probed_port"]), most)
    num_flow_samples = min(num_instants * len(inputs["probed_flow"]), most)
    return num_port_samples * _engine.BYTES_PER_PORT_SAMPLE + num_flow_samples * _engine.BYTES_PER_FLOW_SAMPLE


def _host_bytes(inputs: EngineInputs) -> int:
    """Return the room of what hosts keep under rare settings."""
    settings, num_pairs = inputs.settings, len(inputs["flow"])
    needed_bytes = _selective_repeat_bytes(inputs)
    needed_bytes += len(inputs["credit_window"]) * _engine.BYTES_PER_CREDITED_PAIR
    needed_bytes += len(inputs["grant_rate"]) * _engine.BYTES_PER_GRANT_PACER
    if settings["num_receives"]:
        receives = min(settings["num_receives"], len(inputs.traffic))
        needed_bytes += num_pairs * (_engine.BYTES_PER_RECEIVE_QUEUE + receives * 8)
    has_slow_host = inputs["drain_rate"].any()
    if has_slow_host:
        needed_bytes += len(inputs["port_rate_bps"]) * _engine.BYTES_PER_NIC_BUFFER
    if _spends_time_in_hosts(inputs):
        needed_bytes += num_pairs * _engine.BYTES_PER_ENDPOINT
        needed_bytes += len(inputs.traffic) * _engine.BYTES_PER_ROUND_TRIPS
    return needed_bytes


def _spends_time_in_hosts(inputs: EngineInputs) -> bool:
    settings = inputs.settings
    return bool(inputs["drain_rate"].any() or settings["endpoint_delay_ps"] or settings["endpoint_jitter_ps"])


def _selective_repeat_bytes(inputs: EngineInputs) -> int:
    """Return the room of what both ends know of the packets of a full window, or of all a queue pair has."""
    num_selective = len(inputs["reorder_window"])
    if not num_selective:
        return 0
    packets_Q = np.zeros(num_selective)
    for begin, end in ranges(0, len(inputs.traffic)):
        qp_N = inputs.traffic.column("qp_N", begin, end)
        packets_N = inputs.traffic.column("bytes_N", begin, end) // inputs.settings["mtu_bytes"] + 1
        packets_Q += np.bincount(qp_N[qp_N >= 0], packets_N[qp_N >= 0], minlength=num_selective)
    tracked = float(np.minimum(packets_Q, inputs.settings["window_packets"]).sum())
    return num_selective * _engine.BYTES_PER_SELECTIVE_PAIR + int(tracked) * _engine.BYTES_PER_TRACKED_PACKET


def _fault_bytes(inputs: EngineInputs) -> int:
    """Return the room of each port's health."""
    return len(inputs["port_rate_bps"]) * _engine.BYTES_PER_PORT_HEALTH if _can_go_wrong(inputs) else 0


def _can_go_wrong(inputs: EngineInputs) -> bool:
    return bool(len(inputs["epoch_time"]) or len(inputs["fault_time"]))


def _priority_bytes(inputs: EngineInputs) -> int:
    """Return the room of each priority's queues at each port, and of their watchdogs."""
    num_queues = len(inputs["priority_input_reserve"])
    watchdog_bytes = 0 if inputs.settings["watchdog_detect_ps"] == NEVER else _engine.BYTES_PER_WATCHDOG
    return num_queues * (_engine.BYTES_PER_PRIORITY + watchdog_bytes)


def _skip_bytes(inputs: EngineInputs) -> int:
    """Return the room of what exact skip keeps of pairs, ports and queues, and of what it logs."""
    if not inputs.settings["skips_repeats"]:
        return 0
    sent = int(inputs.totals.packets_Q.sum())
    flow_bytes = -(-inputs["flow"].dtype.itemsize // 64) * 64
    return (
        len(inputs["flow"]) * (_engine.SKIP_BYTES_PER_PAIR + flow_bytes)
        + (len(inputs["port_rate_bps"]) + len(inputs["priority_input_reserve"])) * _engine.SKIP_BYTES_PER_PORT
        + min(VALUES_PER_PACKET * sent, int(inputs.settings["most_values_kept"])) * _engine.SKIP_BYTES_PER_VALUE
        + min(LOGGED_PER_PACKET * sent, int(inputs.settings["most_logged"])) * _engine.SKIP_BYTES_PER_LOGGED
    )


def _mean_rate_bytes(inputs: EngineInputs) -> int:
    """Return the room of what bounded skip watches and remembers, and of the interval of each transfer."""
    if not inputs.settings["skips_at_mean_rates"]:
        return 0
    num_pairs, num_transfers = len(inputs["flow"]), len(inputs.traffic)
    num_changes = 2 * num_pairs * num_transfers  # of groups, at most: whenever a transfer begins or ends
    return (
        num_pairs * WATCHED_BYTES_PER_PAIR
        + len(inputs["port_rate_bps"]) * (WATCHED_BYTES_PER_PORT + 2 * INTERVAL_BYTES)
        + num_transfers * INTERVAL_BYTES
        + min(num_changes, MOST_REMEMBERED) * REMEMBERED_BYTES
    )


def _most_packets(inputs: EngineInputs) -> int:
    frame_bytes = min(inputs.settings["mtu_bytes"] + inputs.settings["wire_overhead_bytes"], 2**16)
    wire_bytes_P = inputs["port_rate_bps"].astype(np.float64) * inputs["port_delay_ps"] / 8e12
    in_network = (_buffer_bytes(inputs) + float(wire_bytes_P.sum())) / frame_bytes
    sent = float(inputs.totals.packets_Q.sum())
    return int(2 * min(in_network, sent))  # a data packet may have an acknowledgement or notification in flight with it


def _buffer_bytes(inputs: EngineInputs) -> float:
    """Return what the buffers of all switches hold at most."""
    if not len(inputs["priority_weight"]):
        return float(inputs["ingress_limit"].sum())
    num_ports = len(inputs["port_rate_bps"])
    return float(
        inputs["priority_shared_buffer"].sum()
        + (inputs["priority_input_reserve"] + inputs["priority_input_headroom"]).sum()
        + num_ports * inputs["priority_output_reserve"].sum()
    )
