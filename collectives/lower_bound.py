"""Lower bound on the time of a schedule over given links, with nothing but its own messages in the way.

A message cannot leave before the longest chain of messages it waits for, and a collective cannot end before the longest
chain of those that wait for it. In between, every NIC and every GPU's NVLink carries its messages one after another, in
either direction; a message that leaves through another GPU's NIC crosses NVLink to it first. For each of them the best
order is known when messages may be interrupted: of those that could leave, always the one with the longest chain behind
it. The largest of these ends is the bound. Acknowledgements are left out, what messages on their way to a NIC do to
others on NVLink, and everything that messages can do to one another elsewhere.

Source: Jackson's preemptive schedule; Carlier, "The one-machine sequencing problem", European Journal of Operational
Research 11 (1982).

Shapes: n members, M messages.
"""

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fabrictune.collectives.schedule import GroupShape, Schedule
from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S


@dataclass(frozen=True, kw_only=True)
class UniformLinks:
    """The links of a clean fabric, all alike: every pair of hosts is `num_hops` links of one rate apart."""

    rate_bps: float
    num_hops: int
    delay_ps: float  # of all cables between two hosts
    mtu_bytes: int  # payload of a full packet
    overhead_bytes: int  # of a packet on the wire
    least_bytes: int  # no packet is shorter
    nvlink_rate_bps: float

    def wire_bytes(self, payload_M: IntArray) -> IntArray:
        """Return messages of a payload each on the wire, 0 for empty ones."""
        full_M, last_M = self._packets(payload_M)
        return np.where(payload_M > 0, full_M * self._full_bytes + last_M, 0)

    def duration_ps(self, num_bytes: IntArray) -> FloatArray:
        """Return how long bytes on the wire take at the links' rate."""
        return np.asarray(num_bytes * (BITS_PER_BYTE * PS_PER_S / self.rate_bps))

    def tail_ps(self, payload_M: IntArray) -> FloatArray:
        """Return how long after it has left its NIC a message has wholly arrived: cables, and switches that store.

        A last packet that is short still follows a full one.
        """
        full_M, last_M = self._packets(payload_M)
        longest_M = np.where(full_M > 0, self._full_bytes, last_M)
        return (self.num_hops - 1) * self.duration_ps(longest_M) + self.delay_ps

    @property
    def _full_bytes(self) -> int:
        return max(self.mtu_bytes + self.overhead_bytes, self.least_bytes)

    def _packets(self, payload_M: IntArray) -> tuple[IntArray, IntArray]:
        """Return the number of full packets before the last one, and the last one's bytes on the wire."""
        full_M = np.maximum(-(-payload_M // self.mtu_bytes) - 1, 0)
        last_M = payload_M - full_M * self.mtu_bytes
        return full_M, np.maximum(last_M + self.overhead_bytes, self.least_bytes)


def lower_bound_ps(schedule: Schedule, shape: GroupShape, num_bytes: int, links: UniformLinks) -> float:
    """Return the bound for one collective of a buffer; 0 for one that moves nothing."""
    payload_M = schedule.bytes_M(num_bytes)
    if not payload_M.any():
        return 0.0
    is_local_M = schedule.sender_M // shape.local_size == schedule.receiver_M // shape.local_size
    nvlink_M = payload_M * (BITS_PER_BYTE * PS_PER_S / links.nvlink_rate_bps)
    busy_M = np.where(is_local_M, nvlink_M, links.duration_ps(links.wire_bytes(payload_M)))
    after_M = np.where(is_local_M | (payload_M == 0), 0.0, links.tail_ps(payload_M))
    before_M = np.where(is_local_M | (_exits(schedule, shape) == schedule.sender_M), 0.0, nvlink_M)
    total_M = before_M + busy_M + after_M
    head_M = _heads(schedule, total_M) + before_M
    tail_M = after_M + _tails(schedule, total_M)
    ends_ps = []
    for carrier_M in _carriers(schedule, shape, is_local_M):
        order = np.argsort(carrier_M, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(carrier_M[order])) + 1)
        ends_ps += [preemptive_end_ps(head_M[own], busy_M[own], tail_M[own]) for own in groups]
    return max(ends_ps)


def _carriers(schedule: Schedule, shape: GroupShape, is_local_M: BoolArray) -> tuple[IntArray, IntArray]:
    """Return what carries each message out of its sender and into its receiver: NICs from 0, NVLinks from n on."""
    n = shape.num_members
    return (
        np.where(is_local_M, n + schedule.sender_M, _exits(schedule, shape)),
        np.where(is_local_M, n + schedule.receiver_M, schedule.receiver_M),
    )


def _exits(schedule: Schedule, shape: GroupShape) -> IntArray:
    """Return through whose NIC each message would leave its host: it keeps to the receiver's rail."""
    return schedule.sender_M // shape.local_size * shape.local_size + schedule.receiver_M % shape.local_size


def _heads(schedule: Schedule, total_M: FloatArray) -> FloatArray:
    """Return when each message could leave at the earliest."""
    head_M = np.zeros(len(total_M))
    offset_N1, row_D = schedule.dependencies.offset_N1, schedule.dependencies.row_D
    for begin, end in _steps(schedule):
        row = row_D[offset_N1[begin] : offset_N1[end]]
        waiting = np.repeat(np.arange(begin, end), np.diff(offset_N1[begin : end + 1]))
        np.maximum.at(head_M, waiting, head_M[row] + total_M[row])
    return head_M


def _tails(schedule: Schedule, total_M: FloatArray) -> FloatArray:
    """Return how long after each message's arrival the last of those ends that wait for it, or for those, and so on."""
    tail_M = np.zeros(len(total_M))
    offset_N1, row_D = schedule.dependencies.offset_N1, schedule.dependencies.row_D
    for begin, end in reversed(_steps(schedule)):
        row = row_D[offset_N1[begin] : offset_N1[end]]
        waiting = np.repeat(np.arange(begin, end), np.diff(offset_N1[begin : end + 1]))
        np.maximum.at(tail_M, row, tail_M[waiting] + total_M[waiting])
    return tail_M


def _steps(schedule: Schedule) -> list[tuple[int, int]]:
    """Return the first message of each step and the one behind its last."""
    _, first = np.unique(schedule.step_M, return_index=True)
    return list(pairwise([*first.tolist(), len(schedule)]))


def preemptive_end_ps(head: FloatArray, busy: FloatArray, tail: FloatArray) -> float:
    """Return when the last message's tail ends if one carrier takes them by Jackson's rule."""
    arrivals = np.argsort(head, kind="stable").tolist()
    waiting: list[tuple[float, int]] = []  # longest tail first
    left = busy.tolist()
    now, end, next_arrival = 0.0, 0.0, 0
    while waiting or next_arrival < len(arrivals):
        if not waiting:
            now = max(now, float(head[arrivals[next_arrival]]))
        while next_arrival < len(arrivals) and head[arrivals[next_arrival]] <= now:
            message = arrivals[next_arrival]
            heapq.heappush(waiting, (-float(tail[message]), message))
            next_arrival += 1
        message = waiting[0][1]
        until = float(head[arrivals[next_arrival]]) if next_arrival < len(arrivals) else np.inf
        step = min(left[message], until - now)
        now += step
        left[message] -= step
        if left[message] <= 0:
            heapq.heappop(waiting)
            end = max(end, now + float(tail[message]))
    return end
