"""Requests of several ranks that belong together, joined by group and sequence number.

A collective's request is one on all members of its group, a message one on its sender and its receiver. Its transfer is
the time from the last member's issue to the first member's end; whoever waits for it longer waits for others.

Shapes: N spans, J joined requests, M their members, R ranks.
"""

from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray, IntArray
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.foundation.traces import UNKNOWN, Operation

MIN_WAIT_NS = 5_000  # a call that need not wait returns within it


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

    def _reduced(self, operation: np.ufunc, values_M: IntArray) -> IntArray:
        return np.asarray(operation.reduceat(values_M, self.first_J)) if self.num_requests else np.zeros(0, np.int64)


def join_requests(spans: Spans) -> JoinedRequests:
    """Return the requests of which every member's span is there, with its end."""
    rows = np.flatnonzero((spans.kind_N == SpanKind.REQUEST) & (spans.end_ns_N != UNKNOWN))
    operation, group, rank = spans.operation_N[rows], spans.group_N[rows], spans.rank_N[rows]
    is_send, is_message = operation == Operation.SEND, np.isin(operation, (Operation.SEND, Operation.RECEIVE))
    sender = np.where(is_message, np.where(is_send, rank, spans.peer_N[rows]), UNKNOWN)
    receiver = np.where(is_message, np.where(is_send, spans.peer_N[rows], rank), UNKNOWN)
    keys = np.stack([group, sender, receiver, spans.sequence_N[rows]], axis=1)
    order = np.lexsort((rank, *keys.T[::-1]))
    rows, keys = rows[order], keys[order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    first = np.flatnonzero(is_first)
    size = np.diff(np.append(first, len(rows)))
    group_sizes = np.array([len(members) for members in spans.groups] or [0])
    expected = np.where(keys[first, 1] != UNKNOWN, 2, group_sizes[keys[first, 0]]) if len(first) else size
    is_whole = (size == expected) & (size > 1)
    row_M = rows[np.repeat(is_whole, size)]
    kept_first = np.concatenate([[0], np.cumsum(size[is_whole])[:-1]]).astype(np.int64) if is_whole.any() else first[:0]
    at_first = row_M[kept_first]
    kept_operation = spans.operation_N[at_first]
    return JoinedRequests(
        num_requests=int(is_whole.sum()),
        row_M=row_M,
        request_M=np.repeat(np.arange(is_whole.sum()), size[is_whole]),
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
    transfer_J, exposed_J, sort_J = joined.transfer_ns_J, joined.is_exposed_J, joined.sort_J
    usual_J = np.zeros(joined.num_requests)
    for sort in np.unique(sort_J):
        is_sort = sort_J == sort
        seen = transfer_J[is_sort & exposed_J]
        usual_J[is_sort] = np.median(seen if len(seen) else transfer_J[is_sort])
    return usual_J
