"""The law's records, one for each queue pair, with the engine's header filled in."""

import numpy as np

from fabrictune.cc.interface import NEVER, UNLIMITED_CWND_BYTES, CompiledLaw
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_NS, PS_PER_S
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import NO_PORT

DEFAULT_WINDOW = 1.5  # bandwidth-delay products of credit


def make_flow_records(
    fabric: Fabric, path_QDH: IntArray, law: CompiledLaw, config: PacketConfig, *, drain_rate_P: IntArray
) -> np.ndarray:
    """Return the law's records, the engine's header filled in."""
    flow = np.zeros(len(path_QDH), law.flow_dtype)
    flow["line_rate_bps"] = flow["rate_bps"] = line_rates_bps(fabric, path_QDH)
    flow["cwnd_bytes"] = UNLIMITED_CWND_BYTES
    flow["deadline_ps"] = NEVER
    flow["base_rtt_ps"] = unloaded_round_trips_ps(fabric, path_QDH, config, drain_rate_P=drain_rate_P)
    flow["mtu_bytes"] = config.mtu_bytes
    flow["num_hops"] = (path_QDH[:, 0] != NO_PORT).sum(axis=1)
    return flow


def credit_windows_bytes(flow: np.ndarray, config: PacketConfig) -> IntArray:
    """Return the most credit of each queue pair, shape (Q,); empty without receiver credits."""
    chosen = config.transport.credits
    if not chosen.enabled:
        return np.empty(0, np.int64)
    if chosen.window_bytes is not None:
        return np.full(len(flow), chosen.window_bytes, np.int64)
    round_trip_bytes_Q = flow["line_rate_bps"] * flow["base_rtt_ps"] / (BITS_PER_BYTE * PS_PER_S)
    window_bytes_Q: IntArray = (DEFAULT_WINDOW * round_trip_bytes_Q).astype(np.int64)
    return np.maximum(window_bytes_Q, config.full_frame_bytes)


def line_rates_bps(fabric: Fabric, path_QDH: IntArray) -> IntArray:
    """Return the rate of each flow's NIC, shape (Q,)."""
    return np.where(path_QDH[:, 0, 0] == NO_PORT, 1, fabric.port_rate_bps_P[path_QDH[:, 0, 0]])


def unloaded_round_trips_ps(
    fabric: Fabric, path_QDH: IntArray, config: PacketConfig, *, drain_rate_P: IntArray
) -> IntArray:
    """Return the round trip of a full packet and its acknowledgement on empty queues, shape (Q,)."""
    rate_QDH = np.where(path_QDH == NO_PORT, 1, fabric.port_rate_bps_P[path_QDH])
    delay_QDH = np.where(path_QDH == NO_PORT, 0, fabric.port_delay_ps_P[path_QDH])
    frame_bytes_D1 = np.array([[config.full_frame_bytes], [config.ack_bytes]])
    serialization_QDH = np.where(path_QDH == NO_PORT, 0, -(-frame_bytes_D1 * 8 * 10**12 // rate_QDH))
    round_trip_Q: IntArray = (serialization_QDH + delay_QDH).sum(axis=(1, 2))
    return round_trip_Q + _endpoint_ps_Q(path_QDH[:, 0], config, drain_rate_P)


def _endpoint_ps_Q(path_QH: IntArray, config: PacketConfig, drain_rate_P: IntArray) -> IntArray:
    """Return how long a full packet is in the receiving host at least."""
    last_Q = path_QH[np.arange(len(path_QH)), (path_QH != NO_PORT).sum(axis=1) - 1]
    rate_Q = drain_rate_P[last_Q]
    drain_Q = np.where(rate_Q > 0, -(-config.full_frame_bytes * 8 * 10**12 // np.maximum(rate_Q, 1)), 0)
    return np.asarray(drain_Q + config.nic.endpoint_delay_ns * PS_PER_NS)
