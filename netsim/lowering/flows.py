"""The law's records, one for each queue pair, with the engine's header filled in."""

import numpy as np
from numpy.typing import NDArray

from cc.interface import NEVER, UNLIMITED_CWND_BYTES, CompiledLaw
from netsim.config.packet import PacketConfig
from topology.fabric import Fabric
from topology.network import NO_PORT


def flows(fabric: Fabric, path_QDH: NDArray[np.int64], law: CompiledLaw, config: PacketConfig) -> np.ndarray:
    """Return the law's records, the engine's header filled in."""
    rate_QDH = np.where(path_QDH == NO_PORT, 1, fabric.port_rate_bps_P[path_QDH])
    delay_QDH = np.where(path_QDH == NO_PORT, 0, fabric.port_delay_ps_P[path_QDH])
    frame_bytes_D1 = np.array([[config.full_frame_bytes], [config.ack_bytes]])
    serialization_QDH = np.where(path_QDH == NO_PORT, 0, -(-frame_bytes_D1 * 8 * 10**12 // rate_QDH))
    flow = np.zeros(len(path_QDH), law.flow_dtype)
    flow["line_rate_bps"] = flow["rate_bps"] = rate_QDH[:, 0, 0]
    flow["cwnd_bytes"] = UNLIMITED_CWND_BYTES
    flow["deadline_ps"] = NEVER
    flow["base_rtt_ps"] = (serialization_QDH + delay_QDH).sum(axis=(1, 2)) + _endpoint_ps(config)
    flow["mtu_bytes"] = config.mtu_bytes
    flow["num_hops"] = (path_QDH[:, 0] != NO_PORT).sum(axis=1)
    return flow


def _endpoint_ps(config: PacketConfig) -> int:
    """Return how long a full packet is in the receiving host at least."""
    drain_rate_bps = config.nic.drain_rate_bps
    drain_ps = -(-config.full_frame_bytes * 8 * 10**12 // drain_rate_bps) if drain_rate_bps else 0
    return drain_ps + config.nic.endpoint_delay_ns * 1000
