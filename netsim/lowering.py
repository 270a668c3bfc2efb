"""Network, traffic, law and configuration, lowered to the flat arrays an engine reads.

Everything is checked here, once, so that the compiled engine and its Python reference may trust what they get.

Shapes: P ports, Q queue pairs, H entries of a path (its hops and an end mark), N transfers, D dependencies, S probes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cc.interface import MAX_TELEMETRY_HOPS, NEVER, UNLIMITED_CWND_BYTES, CompiledLaw
from foundation.errors import InputError, Mistake, RouteError, TraceError
from foundation.seeds import stream_key
from foundation.traces import Medium, TrafficTrace
from netsim.config import PacketConfig, ProbeConfig
from netsim.headroom import PAUSE_FRAME_BYTES, pfc_headroom_bytes, pfc_response_ps
from topology.fabric import NO_NIC, Fabric
from topology.network import NO_PORT, Network

PATH_END = 2**32 - 1
MAX_IDS = 2**24  # ports and queue pairs an event can name
MAX_PORT_DELAY_PS = 2**32 - 1
MAX_SAMPLES = 20_000_000
NEVER_MARK = 2**62

IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class EngineInputs:
    """What an engine reads; names and units as in netsim/engine/simulation.hpp."""

    settings: Mapping[str, Any]
    port_rate_bps: IntArray  # P
    port_delay_ps: IntArray  # P
    port_peer: IntArray  # P
    port_is_host: IntArray  # P
    pause_above: IntArray  # P, bytes in the ingress buffer behind the port
    resume_below: IntArray  # P
    ingress_limit: IntArray  # P
    pause_response: IntArray  # P, picoseconds
    loss_fraction: NDArray[np.float64]  # P
    path: NDArray[np.uint32]  # Q x 2 x H, flat
    path_stride: int  # H
    flow: np.ndarray  # Q records of the law, the engine's header filled in
    transfer_medium: IntArray  # N
    transfer_qp: IntArray  # N
    transfer_bytes: IntArray  # N
    transfer_start: IntArray  # N
    transfer_delay: IntArray  # N
    num_dependencies: IntArray  # N
    dependent_offset: IntArray  # N + 1
    dependent_row: IntArray  # D
    probed_port: IntArray  # S


def lower(
    network: Network,
    traffic: TrafficTrace,
    law: CompiledLaw,
    config: PacketConfig,
    *,
    seed: int,
    probe: ProbeConfig | None,
) -> EngineInputs:
    """Return the arrays of a run; raises InputError, RouteError or TraceError for what an engine cannot run."""
    fabric = network.fabric
    path_QDH = _checked_paths(network, uses_telemetry=law.uses_telemetry)
    _check_ports(fabric)
    _check_traffic(traffic, len(network.queue_pairs), config)
    dependent_offset, dependent_row = _dependents(traffic)
    return EngineInputs(
        settings=_settings(config, seed, probe),
        port_rate_bps=fabric.port_rate_bps_P,
        port_delay_ps=fabric.port_delay_ps_P,
        port_peer=fabric.port_peer_P,
        port_is_host=(fabric.port_nic_P != NO_NIC).astype(np.int64),
        **_buffers(fabric, config),
        loss_fraction=np.full(fabric.num_ports, config.loss_fraction),
        path=np.where(path_QDH == NO_PORT, PATH_END, path_QDH).astype(np.uint32).ravel(),
        path_stride=path_QDH.shape[2],
        flow=_flows(fabric, path_QDH, law, config),
        transfer_medium=traffic.medium_N,
        transfer_qp=traffic.qp_N,
        transfer_bytes=traffic.bytes_N,
        transfer_start=traffic.start_ps_N,
        transfer_delay=traffic.delay_ps_N,
        num_dependencies=np.diff(traffic.dependencies.offset_N1),
        dependent_offset=dependent_offset,
        dependent_row=dependent_row,
        probed_port=_probed_ports(path_QDH, fabric.num_ports, probe),
    )


def _settings(config: PacketConfig, seed: int, probe: ProbeConfig | None) -> dict[str, Any]:
    return {
        "mtu_bytes": config.mtu_bytes,
        "wire_overhead_bytes": config.wire_overhead_bytes,
        "ack_bytes": config.ack_bytes,
        "pause_frame_bytes": PAUSE_FRAME_BYTES,
        "ack_every_packets": config.ack_every_packets,
        "ecn_min_bytes": config.ecn.kmin_bytes if config.ecn.enabled else NEVER_MARK,
        "ecn_max_bytes": config.ecn.kmax_bytes,
        "ecn_max_fraction": config.ecn.pmax_fraction,
        "is_pfc_enabled": config.pfc.enabled,
        "cnp_interval_ps": config.cnp_interval_ns * 1000,
        "retransmission_timeout_ps": config.retransmission_timeout_ns * 1000,
        "retry_limit": config.retry_limit,
        "endpoint_delay_ps": config.endpoint_delay_ns * 1000,
        "nvlink_rate_bps": config.nvlink_rate_bps,
        "time_limit_ps": NEVER if config.time_limit_ns is None else config.time_limit_ns * 1000,
        "probe_interval_ps": NEVER if probe is None or probe.interval_ns is None else probe.interval_ns * 1000,
        "max_samples": MAX_SAMPLES,
        "random_key": stream_key(seed, "netsim", "ports") % 2**64,
    }


def _checked_paths(network: Network, *, uses_telemetry: bool) -> NDArray[np.int64]:
    """Return the paths, shape (Q, 2, H), padded with NO_PORT to a power of two that holds every end mark."""
    if len(network.epochs) != 1:
        raise RouteError(
            Mistake(where="network", found=f"{len(network.epochs)} routing epochs", allowed="one, from the start")
        )
    port_QDH = network.epochs[0].port_QDH.astype(np.int64)
    fabric = network.fabric
    _check_paths(fabric, port_QDH)
    num_pairs, _, num_hops = port_QDH.shape
    _require_ids(num_pairs, "queue pairs")
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


def _check_ports(fabric: Fabric) -> None:
    _require_ids(fabric.num_ports, "ports")
    if (fabric.port_delay_ps_P > MAX_PORT_DELAY_PS).any():
        port = int(np.argmax(fabric.port_delay_ps_P))
        raise InputError(
            Mistake(
                where=fabric.link_label(port),
                found=f"a delay of {int(fabric.port_delay_ps_P[port])} ps",
                allowed=f"up to {MAX_PORT_DELAY_PS} ps (858 km of cable)",
            )
        )


def _require_ids(number: int, what: str) -> None:
    if number >= MAX_IDS:
        raise InputError(Mistake(where="network", found=f"{number} {what}", allowed=f"fewer than {MAX_IDS}"))


def _check_traffic(traffic: TrafficTrace, num_pairs: int, config: PacketConfig) -> None:
    on_fabric_N = traffic.medium_N == Medium.FABRIC
    if (traffic.qp_N[on_fabric_N] >= num_pairs).any():
        row = int(np.nonzero(on_fabric_N & (traffic.qp_N >= num_pairs))[0][0])
        raise TraceError(
            Mistake(
                where=f"traffic trace, row {row}",
                found=f"queue pair {int(traffic.qp_N[row])}",
                allowed=f"a row of the network's {num_pairs} queue pairs",
            )
        )
    packets_N = np.maximum(1, -(-traffic.bytes_N[on_fabric_N] // config.mtu_bytes)).astype(np.float64)
    packets_Q = np.bincount(traffic.qp_N[on_fabric_N], weights=packets_N, minlength=1)
    if packets_Q.max() >= PATH_END or len(traffic) >= PATH_END:
        raise TraceError(
            Mistake(
                where="traffic trace", found=f"{packets_Q.max():.3g} packets of one queue pair", allowed="2**32 - 2"
            )
        )


def _buffers(fabric: Fabric, config: PacketConfig) -> dict[str, IntArray]:
    """Return the thresholds of the ingress buffer behind each port, one computation per kind of link."""
    link_P2 = np.stack([fabric.port_rate_bps_P, fabric.port_delay_ps_P], axis=1)
    link_U2, kind_P = np.unique(link_P2, axis=0, return_inverse=True)
    rows = [_buffer(int(rate_bps), int(delay_ps), config) for rate_bps, delay_ps in link_U2]
    table_U4 = np.array(rows, np.int64).reshape(-1, 4)
    names = ("pause_above", "resume_below", "ingress_limit", "pause_response")
    return {name: table_U4[kind_P.ravel(), column].copy() for column, name in enumerate(names)}


def _buffer(rate_bps: int, delay_ps: int, config: PacketConfig) -> tuple[int, int, int, int]:
    """Return pause_above, resume_below, ingress_limit and pause_response of one kind of link."""
    pfc, frame_bytes = config.pfc, config.full_frame_bytes
    response_ps = pfc_response_ps(rate_bps) if pfc.response_ns is None else pfc.response_ns * 1000
    if not pfc.enabled:
        return pfc.buffer_bytes, 0, pfc.buffer_bytes, response_ps
    headroom_bytes = pfc.headroom_bytes
    if headroom_bytes is None:
        headroom_bytes = pfc_headroom_bytes(
            rate_bps=rate_bps, delay_ps=delay_ps, full_frame_bytes=frame_bytes, response_ps=response_ps
        )
    xoff_bytes = pfc.buffer_bytes - headroom_bytes if pfc.xoff_bytes is None else pfc.xoff_bytes
    xon_bytes = xoff_bytes * 4 // 5 if pfc.xon_bytes is None else pfc.xon_bytes
    pause_above = xoff_bytes - frame_bytes
    if pause_above < 0 or xon_bytes > xoff_bytes:
        raise InputError(
            Mistake(
                where="pfc",
                found=(
                    f"{pfc.buffer_bytes} B of buffer, {headroom_bytes} B of headroom, xoff at {xoff_bytes} B"
                    f" and xon at {xon_bytes} B, on a link of {rate_bps} bps and {delay_ps} ps"
                ),
                allowed=f"xoff of a full frame ({frame_bytes} B) or more, and xon not above it",
                next_step="raise pfc.buffer or set pfc.xoff and pfc.xon",
            )
        )
    return pause_above, min(xon_bytes, pause_above), xoff_bytes + headroom_bytes, response_ps


def _flows(fabric: Fabric, path_QDH: NDArray[np.int64], law: CompiledLaw, config: PacketConfig) -> np.ndarray:
    """Return the law's records, the engine's header filled in."""
    rate_QDH = np.where(path_QDH == NO_PORT, 1, fabric.port_rate_bps_P[path_QDH])
    delay_QDH = np.where(path_QDH == NO_PORT, 0, fabric.port_delay_ps_P[path_QDH])
    frame_bytes_D1 = np.array([[config.full_frame_bytes], [config.ack_bytes]])
    serialization_QDH = np.where(path_QDH == NO_PORT, 0, -(-frame_bytes_D1 * 8 * 10**12 // rate_QDH))
    flow = np.zeros(len(path_QDH), law.flow_dtype)
    flow["line_rate_bps"] = flow["rate_bps"] = rate_QDH[:, 0, 0]
    flow["cwnd_bytes"] = UNLIMITED_CWND_BYTES
    flow["deadline_ps"] = NEVER
    flow["base_rtt_ps"] = (serialization_QDH + delay_QDH).sum(axis=(1, 2)) + config.endpoint_delay_ns * 1000
    flow["mtu_bytes"] = config.mtu_bytes
    flow["num_hops"] = (path_QDH[:, 0] != NO_PORT).sum(axis=1)
    return flow


def _dependents(traffic: TrafficTrace) -> tuple[IntArray, IntArray]:
    """Return the transfers that wait for each transfer: the trace's dependencies turned round, in row order."""
    offset_N1, row_D = traffic.dependencies.offset_N1, traffic.dependencies.row_D
    waiting_D = np.repeat(np.arange(len(traffic)), np.diff(offset_N1))
    order_D = np.argsort(row_D, kind="stable")
    counts_N = np.bincount(row_D, minlength=len(traffic))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts_N)]).astype(np.int64), waiting_D[order_D]


def _probed_ports(path_QDH: NDArray[np.int64], num_ports: int, probe: ProbeConfig | None) -> IntArray:
    if probe is None or probe.interval_ns is None:
        return np.zeros(0, np.int64)
    if probe.ports == "all":
        return np.arange(num_ports)
    data_QH = path_QDH[:, 0]
    num_paths_P = np.bincount(data_QH[data_QH != NO_PORT], minlength=num_ports)
    busiest = np.argsort(-num_paths_P, kind="stable")[: probe.num_busiest]
    return np.sort(busiest[num_paths_P[busiest] > 0])
