"""Requests of several ranks that belong together, joined by group and sequence number.

A collective's request is one on all members of its group, a message one on its sender and its receiver. Its transfer is
the time from the last member's issue to the first member's end; whoever waits for it longer waits for others.

Shapes: N spans, J joined requests, M their members, R ranks.
"""

from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.bounds import bus_factor
from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.foundation.traces import UNKNOWN, Operation
from fabrictune.observability.meetings import meet

MIN_WAIT_NS = 5_000  # a call that need not wait returns within it
NEAR = 2  # a factor between sizes whose time per byte is alike


@dataclass(frozen=True, kw_only=True)
class JoinedRequests:
    """Requests that all their members have issued and ended; members of one lie together, by rank."""

    num_requests: int
    row_M: IntArray  # of the spans
    request_M: IntArray  # 0 to J - 1, ascending
    rank_M: IntArray
    issue_ns_M: IntArray
    start_ns_M: IntArray
    end_ns_M: IntArray
    group_J: IntArray
    axis_J: tuple[str, ...]
    operation_J: IntArray  # SEND for a message
    bytes_J: IntArray
    step_J: IntArray
    first_J: IntArray  # place among M of each one's first member

    @property
    def last_issue_ns_J(self) -> IntArray:
        """When the last member issued each."""
        return self._reduced(np.maximum, self.issue_ns_M)

    @property
    def transfer_ns_J(self) -> IntArray:
        """Time from the last issue to the first end."""
        return np.asarray(self._reduced(np.minimum, self.end_ns_M) - self.last_issue_ns_J)

    @property
    def is_blocked_M(self) -> BoolArray:
        """Whether each member's wait has held it: such a wait ends when the request does."""
        return np.asarray(self.end_ns_M - self.start_ns_M > MIN_WAIT_NS)

    @property
    def is_exposed_J(self) -> BoolArray:
        """Whether some member was held, so that the first end is the request's own."""
        return np.asarray(self._reduced(np.maximum, self.is_blocked_M.astype(np.int64)) > 0)

    @property
    def sort_J(self) -> IntArray:
        """What kind of request each is: those of one axis, operation and size have one number."""
        axes = np.unique(self.axis_J, return_inverse=True)[1] if self.num_requests else np.zeros(0, np.int64)
        keys = np.stack([axes, self.operation_J, self.bytes_J], axis=1)
        return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1]).reshape(-1)

    @property
    def size_J(self) -> IntArray:
        """Members of each."""
        return np.diff(np.append(self.first_J, len(self.row_M)))

    def has_member_J(self, rank: int) -> BoolArray:
        """Return whether a rank is a member of each."""
        has_member_J = np.zeros(self.num_requests, bool)
        has_member_J[self.request_M[self.rank_M == rank]] = True
        return has_member_J

    def _reduced(self, operation: np.ufunc, values_M: IntArray) -> IntArray:
        return np.asarray(operation.reduceat(values_M, self.first_J)) if self.num_requests else np.zeros(0, np.int64)


def join_requests(spans: Spans) -> JoinedRequests:
    """Return the requests of which every member's span is there, with its end."""
    rows = np.flatnonzero((spans.kind_N == SpanKind.REQUEST) & (spans.end_ns_N != UNKNOWN))
    meetings = meet(
        groups=spans.groups,
        group_Q=spans.group_N[rows],
        operation_Q=spans.operation_N[rows],
        rank_Q=spans.rank_N[rows],
        peer_Q=spans.peer_N[rows],
        step_Q=spans.step_N[rows],
        sequence_Q=spans.sequence_N[rows],
    )
    size_M = np.bincount(meetings.meeting_Q, minlength=meetings.num_meetings)
    is_kept_Q = (meetings.is_whole_M & (size_M > 1))[meetings.meeting_Q]
    meeting_Q, rows = meetings.meeting_Q[is_kept_Q], rows[is_kept_Q]
    order = np.lexsort((spans.rank_N[rows], meeting_Q))
    row_M = rows[order]
    _, kept_first, request_M = np.unique(meeting_Q[order], return_index=True, return_inverse=True)
    at_first = row_M[kept_first]
    kept_operation = spans.operation_N[at_first]
    return JoinedRequests(
        num_requests=len(kept_first),
        row_M=row_M,
        request_M=request_M,
        rank_M=spans.rank_N[row_M],
        issue_ns_M=spans.issue_ns_N[row_M],
        start_ns_M=spans.start_ns_N[row_M],
        end_ns_M=spans.end_ns_N[row_M],
        group_J=spans.group_N[at_first],
        axis_J=tuple(map(spans.axis_N.__getitem__, at_first.tolist())),
        operation_J=np.where(kept_operation == Operation.RECEIVE, Operation.SEND, kept_operation),
        bytes_J=spans.bytes_N[at_first],
        step_J=spans.step_N[at_first],
        first_J=kept_first,
    )


def usual_transfer_ns(joined: JoinedRequests) -> FloatArray:
    """Return for each request the median transfer of its sort, of those that somebody waited for, or of all."""
    return usual_ns(joined, joined.transfer_ns_J.astype(np.float64))


def usual_ns(joined: JoinedRequests, value_ns_J: FloatArray, *, without: int | None = None) -> FloatArray:
    """Return for each request the median value of its sort, of those that somebody waited for, or of all.

    Without a rank, of those that it is no member of. Where all of a sort are its own, as where each stage of a pipeline
    has its own size, the collectives of the axis and of about the size count, by their time per byte on the bus.
    """
    sort_J, exposed_J = joined.sort_J, joined.is_exposed_J
    counts_J = np.ones(joined.num_requests, bool) if without is None else ~joined.has_member_J(without)
    usual_J = np.zeros(joined.num_requests)
    for sort in np.unique(sort_J):
        is_sort_J = sort_J == sort
        if not (is_sort_J & counts_J).any():
            usual_J[is_sort_J] = _by_byte_ns(joined, value_ns_J, counts_J & exposed_J, is_sort_J)
            continue
        seen = value_ns_J[is_sort_J & counts_J & exposed_J]
        usual_J[is_sort_J] = np.median(seen if len(seen) else value_ns_J[is_sort_J & counts_J])
    return usual_J


def _by_byte_ns(joined: JoinedRequests, value_ns_J: FloatArray, counts_J: BoolArray, is_sort_J: BoolArray) -> float:
    """Return a sort's value by the time per byte on the bus of others that are alike; its own where none are."""
    own = int(np.flatnonzero(is_sort_J)[0])
    is_axis_J = np.fromiter((axis == joined.axis_J[own] for axis in joined.axis_J), bool, joined.num_requests)
    is_near_J = (joined.bytes_J < NEAR * joined.bytes_J[own]) & (joined.bytes_J * NEAR > joined.bytes_J[own])
    is_message_J = joined.operation_J == Operation.SEND
    alike = np.flatnonzero(is_axis_J & is_near_J & counts_J & (is_message_J == is_message_J[own]))
    if not len(alike):
        return float(np.median(value_ns_J[is_sort_J]))
    return float(np.median(value_ns_J[alike] / _bus_bytes(joined, alike))) * float(_bus_bytes(joined, [own])[0])


def _bus_bytes(joined: JoinedRequests, rows: "IntArray | list[int]") -> FloatArray:
    """Return what a rank at least sends for each of some requests."""
    operations, sizes = joined.operation_J[rows].tolist(), joined.size_J[rows].tolist()
    factors = [bus_factor(Operation(operation), size) for operation, size in zip(operations, sizes, strict=True)]
    return np.asarray(joined.bytes_J[rows] * np.array(factors))
