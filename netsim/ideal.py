"""Ideal completion times: a transfer alone on the fabric, its packets back to back.

Every link receives a packet whole before it sends it on. Equal packets follow one another at the pace of the slowest
link so far; only the last may be shorter and then waits less. The slowdown of a run's transfer is its completion time
over this.

Shapes: N transfers, Q queue pairs, H links of a path, V paths of different rates, U sizes, J jobs: sizes on paths.
Source: the makespan of a permutation flow shop (Johnson 1954), jobs being packets and machines being links.
Left out: hosts, congestion control, acknowledgements, other paths than the first that hashing chose.
"""

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.topology.network import NO_PORT, Network


class IdealTimes:
    """How long transfers take alone on a network's first paths."""

    def __init__(self, network: Network, config: PacketConfig) -> None:
        fabric, path_QH = network.fabric, network.epochs[0].port_QDH[:, 0].astype(np.int64)
        is_link_QH = path_QH != NO_PORT
        rate_QH = np.where(is_link_QH, fabric.port_rate_bps_P[path_QH], 0)
        self._delay_Q = np.where(is_link_QH, fabric.port_delay_ps_P[path_QH], 0).sum(axis=1)
        self._rates_VH, rates_Q = np.unique(rate_QH, axis=0, return_inverse=True)
        self._rates_Q = rates_Q.ravel()
        self._config = config

    def of(self, qp_N: IntArray, bytes_N: IntArray) -> IntArray:
        """Return for each transfer how long it takes alone, shape (N,); -1 for those that do not cross the fabric."""
        on_fabric_N = qp_N >= 0
        qp_N, bytes_N = qp_N[on_fabric_N], bytes_N[on_fabric_N]
        ideal_ps_N = np.full(len(on_fabric_N), UNKNOWN, np.int64)
        ideal_ps_N[on_fabric_N] = self._without_delays_ps(self._rates_Q[qp_N], bytes_N) + self._delay_Q[qp_N]
        return ideal_ps_N

    def _without_delays_ps(self, rates_N: IntArray, bytes_N: IntArray) -> IntArray:
        """Return the time that links take; where sizes recur, once for each size and each path's rates."""
        size_U, num_rates = np.unique(bytes_N), len(self._rates_VH)
        if num_rates * len(size_U) > len(bytes_N):
            return self._makespans_ps(rates_N, bytes_N)
        rates_VU, size_VU = np.repeat(np.arange(num_rates), len(size_U)), np.tile(size_U, num_rates)
        ideal_ps_VU = self._makespans_ps(rates_VU, size_VU)
        return np.asarray(ideal_ps_VU[rates_N * len(size_U) + np.searchsorted(size_U, bytes_N)])

    def _makespans_ps(self, rates_J: IntArray, bytes_J: IntArray) -> IntArray:
        """Return how long links of these rates need for so many bytes, without delays."""
        config, rate_JH = self._config, self._rates_VH[rates_J]
        num_packets_J = np.maximum(1, -(-bytes_J // config.mtu_bytes))
        last_payload_J = bytes_J - (num_packets_J - 1) * config.mtu_bytes
        last_frame_J = np.maximum(last_payload_J + config.wire_overhead_bytes, config.ack_bytes)

        def sent_ps(frame_bytes: int | IntArray, hop: int) -> IntArray:
            rate_J = rate_JH[:, hop]
            ps = -(-np.asarray(frame_bytes) * 8 * 10**12 // np.maximum(rate_J, 1))
            return np.where(rate_J > 0, ps, 0)

        full_ps_J, slowest_ps_J, longest_ps_J = np.zeros((3, len(bytes_J)), np.int64)
        num_hops = rate_JH.shape[1]
        rest_ps_J = sum((sent_ps(last_frame_J, hop) for hop in range(num_hops)), np.zeros(len(bytes_J), np.int64))
        alone_ps_J = rest_ps_J.copy()
        for hop in range(num_hops):
            full_ps = sent_ps(config.full_frame_bytes, hop)
            full_ps_J += full_ps
            slowest_ps_J = np.maximum(slowest_ps_J, full_ps)
            # Full packets on the links so far, most of them on the slowest, and the last packet from this link on.
            longest_ps_J = np.maximum(longest_ps_J, full_ps_J + (num_packets_J - 2) * slowest_ps_J + rest_ps_J)
            rest_ps_J = rest_ps_J - sent_ps(last_frame_J, hop)
        return np.where(num_packets_J == 1, alone_ps_J, longest_ps_J)
