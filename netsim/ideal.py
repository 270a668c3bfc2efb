"""Ideal completion times: a transfer alone on the fabric, its packets back to back.

Every link receives a packet whole before it sends it on. Equal packets follow one another at the pace of the slowest
link so far; only the last may be shorter and then waits less. The slowdown of a run's transfer is its completion time
over this.

Shapes: N transfers, Q queue pairs, H links of a path.
Source: the makespan of a permutation flow shop (Johnson 1954), jobs being packets and machines being links.
Left out: hosts, congestion control, acknowledgements, other paths than the first that hashing chose.
"""

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import UNKNOWN, TrafficTrace
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.topology.network import NO_PORT, Network


def ideal_times_ps(network: Network, traffic: TrafficTrace, config: PacketConfig) -> IntArray:
    """Return for each transfer how long it takes alone on the fabric, shape (N,); -1 for those that do not cross it."""
    fabric, path_QH = network.fabric, network.epochs[0].port_QDH[:, 0].astype(np.int64)
    is_link_QH = path_QH != NO_PORT
    rate_QH = np.where(is_link_QH, fabric.port_rate_bps_P[path_QH], 1)
    delay_Q = np.where(is_link_QH, fabric.port_delay_ps_P[path_QH], 0).sum(axis=1)
    on_fabric_N = traffic.qp_N >= 0
    qp_N, bytes_N = traffic.qp_N[on_fabric_N], traffic.bytes_N[on_fabric_N]
    num_packets_N = np.maximum(1, -(-bytes_N // config.mtu_bytes))
    last_payload_N = bytes_N - (num_packets_N - 1) * config.mtu_bytes
    last_frame_N = np.maximum(last_payload_N + config.wire_overhead_bytes, config.ack_bytes)

    def sent_ps(frame_bytes: int | IntArray, hop: int) -> IntArray:
        ps = -(-np.asarray(frame_bytes) * 8 * 10**12 // rate_QH[qp_N, hop])
        return np.where(is_link_QH[qp_N, hop], ps, 0)

    full_ps_N, slowest_ps_N, longest_ps_N = np.zeros((3, len(qp_N)), np.int64)
    rest_ps_N = sum((sent_ps(last_frame_N, hop) for hop in range(path_QH.shape[1])), np.zeros(len(qp_N), np.int64))
    alone_ps_N = rest_ps_N.copy()
    for hop in range(path_QH.shape[1]):
        full_ps = sent_ps(config.full_frame_bytes, hop)
        full_ps_N += full_ps
        slowest_ps_N = np.maximum(slowest_ps_N, full_ps)
        # Full packets on the links so far, most of them on the slowest, and the last packet from this link on.
        longest_ps_N = np.maximum(longest_ps_N, full_ps_N + (num_packets_N - 2) * slowest_ps_N + rest_ps_N)
        rest_ps_N = rest_ps_N - sent_ps(last_frame_N, hop)
    ideal_ps_N = np.full(len(traffic), UNKNOWN, np.int64)
    ideal_ps_N[on_fabric_N] = np.where(num_packets_N == 1, alone_ps_N, longest_ps_N) + delay_Q[qp_N]
    return ideal_ps_N
