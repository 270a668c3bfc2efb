"""Earliest times of a traffic trace's transfers, given how long each takes: longest paths through their dependencies.

Nothing shares a link here. With the time that each transfer takes alone, and what a request sends through one NIC at
that NIC's rate, the result is a lower bound on any run of the same transfers; with no time at all, the computation that
the job would take on a network without delay.

Source: the critical path method, Kelley and Walker, "Critical-Path Planning and Scheduling", EJCC (1959).

Shapes: N transfers, D dependencies, Q requests of the jobs, W transfers of one wave.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import UNKNOWN, Medium, TrafficTrace
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.ideal import IdealTimes
from fabrictune.topology.network import Network

MAX_TRANSFERS = 2**22  # whose dependencies are held in memory


@dataclass(frozen=True, kw_only=True)
class Durations:
    """How long transfers take, and how long after it is issued a request is complete at the earliest."""

    transfer_ps_N: IntArray
    request_ps_Q: IntArray

    @classmethod
    def none(cls, traffic: TrafficTrace) -> "Durations":
        """Return those of a network that takes no time."""
        return cls(
            transfer_ps_N=np.zeros(len(traffic), np.int64), request_ps_Q=np.zeros(_num_requests(traffic), np.int64)
        )

    @classmethod
    def at_line_rate(cls, network: Network, traffic: TrafficTrace, config: PacketConfig) -> "Durations":
        """Return those of transfers that share no link; a request's bytes share the NIC that they leave through."""
        qp_N, bytes_N = traffic.qp_N, traffic.bytes_N
        is_nvlink_N = traffic.medium_N == Medium.NVLINK
        transfer_ps_N = np.maximum(IdealTimes(network, config).of(qp_N, bytes_N), 0)
        transfer_ps_N[is_nvlink_N] = bytes_N[is_nvlink_N] * BITS_PER_BYTE * PS_PER_S // config.nvlink_rate_bps
        return cls(transfer_ps_N=transfer_ps_N, request_ps_Q=_through_nics_ps(network, traffic))


class TransferGraph:
    """The transfers of a trace in waves, each of which waits for earlier ones only."""

    def __init__(self, traffic: TrafficTrace) -> None:
        self._start_ps_N, self._delay_ps_N = traffic.start_ps_N, traffic.delay_ps_N
        self._waves = list(_waves(traffic))
        self._request_N = np.full(len(traffic), UNKNOWN, np.int64)  # which request each last transfer of one completes
        self._ready_row_Q = np.zeros(_num_requests(traffic), np.int64)
        operation_N = traffic.operation_N
        for job in traffic.jobs:
            last_Q = np.zeros(len(job.requests), np.int64)
            first = operation_N[job.begin]
            np.maximum.at(last_Q, operation_N[job.begin : job.end] - first, np.arange(job.begin, job.end))
            self._request_N[last_Q] = first + np.arange(len(last_Q))
            self._ready_row_Q[first : first + len(last_Q)] = job.begin + np.arange(len(last_Q))

    def finishes(self, durations: Durations) -> IntArray:
        """Return when each transfer finishes at the earliest, shape (N,)."""
        waited_ps_N, finish_ps_N = self._start_ps_N.copy(), np.zeros(len(self._start_ps_N), np.int64)
        for row_W, child_D, parent_D in self._waves:
            ended_ps_W = waited_ps_N[row_W] + self._delay_ps_N[row_W] + durations.transfer_ps_N[row_W]
            request_W = self._request_N[row_W]
            is_last_W = request_W != UNKNOWN
            if is_last_W.any():
                request = request_W[is_last_W]
                at_least_ps = finish_ps_N[self._ready_row_Q[request]] + durations.request_ps_Q[request]
                ended_ps_W[is_last_W] = np.maximum(ended_ps_W[is_last_W], at_least_ps)
            finish_ps_N[row_W] = ended_ps_W
            np.maximum.at(waited_ps_N, child_D, finish_ps_N[parent_D])
        return finish_ps_N


def _waves(traffic: TrafficTrace) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Yield the transfers that wait for none but those so far, and the dependencies on them: who waits, for whom."""
    dependencies = traffic.dependencies
    waiting_N = np.diff(dependencies.offset_N1)
    order_D = np.argsort(dependencies.row_D, kind="stable")
    child_D = np.repeat(np.arange(len(traffic)), waiting_N)[order_D]
    first_N1 = np.searchsorted(dependencies.row_D[order_D], np.arange(len(traffic) + 1))
    row_W = np.flatnonzero(waiting_N == 0)
    while len(row_W):
        counts = first_N1[row_W + 1] - first_N1[row_W]
        begins = np.repeat(first_N1[row_W] - np.cumsum(counts) + counts, counts)
        children = child_D[begins + np.arange(counts.sum())]
        yield row_W, children, np.repeat(row_W, counts)
        np.subtract.at(waiting_N, children, 1)
        row_W = np.unique(children[waiting_N[children] == 0])


def _num_requests(traffic: TrafficTrace) -> int:
    return int(traffic.operation_N.max(initial=UNKNOWN)) + 1


def _through_nics_ps(network: Network, traffic: TrafficTrace) -> IntArray:
    """Return for each request what it sends through its busiest NIC, payload at the NIC's rate."""
    fabric, num_nics = network.fabric, network.fabric.num_nics
    is_host_P = fabric.port_nic_P >= 0
    rate_bps_C = np.bincount(
        fabric.port_nic_P[is_host_P], weights=fabric.port_rate_bps_P[is_host_P], minlength=num_nics
    )
    counts_N = (traffic.medium_N == Medium.FABRIC) & (traffic.operation_N != UNKNOWN)
    key_K, place_M = np.unique(
        traffic.operation_N[counts_N] * num_nics + traffic.source_N[counts_N], return_inverse=True
    )
    bytes_K = np.bincount(place_M.ravel(), weights=traffic.bytes_N[counts_N], minlength=len(key_K))
    request_K, nic_K = np.divmod(key_K, num_nics)
    request_ps_Q = np.zeros(_num_requests(traffic), np.int64)
    np.maximum.at(request_ps_Q, request_K, (bytes_K * BITS_PER_BYTE * PS_PER_S / rate_bps_C[nic_K]).astype(np.int64))
    return request_ps_Q
