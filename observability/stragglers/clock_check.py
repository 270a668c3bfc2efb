"""Clocks of ranks, checked by their own requests: whoever waits for one request is let go at one moment.

The ends of a small collective are as far apart as the clocks of its members, and a little more; a rank whose ends are
off by the same time in all of them has a clock that is. It is moved by that time, and named. A large one also ends late
on a rank whose link is slow, so that the smallest quarter of a rank's requests is looked at.

Shapes: N spans, R ranks, M members of joined requests.
"""

from dataclasses import replace

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.robust import deviation, medians_of_groups
from fabrictune.foundation.spans import Spans
from fabrictune.foundation.traces import UNKNOWN, Operation
from fabrictune.observability.stragglers.requests import JoinedRequests, join_requests

MIN_REQUESTS = 5
MIN_SIGMAS = 8.0


def clock_offsets_ns(spans: Spans, joined: JoinedRequests) -> FloatArray:
    """Return how far each rank's clock is ahead of those of its groups, by the ends of their requests; NaN if unseen.

    Only waits that held their rank count, and requests of three members and more, the smallest of a rank's.
    """
    is_joint_J = (joined.size_J > 2) & (joined.operation_J != Operation.SEND)
    rows = np.flatnonzero(is_joint_J[joined.request_M])
    offset_M = np.full(len(joined.row_M), np.nan)
    middle_J = medians_of_groups(joined.end_ns_M, joined.request_M)
    offset_M[rows] = joined.end_ns_M[rows] - middle_J[joined.request_M[rows]]
    offset_M[~joined.is_blocked_M] = np.nan
    result = np.full(spans.layout.world_size, np.nan)
    if not len(joined.row_M):
        return result
    order = np.argsort(joined.rank_M, kind="stable")
    ranks, begins = np.unique(joined.rank_M[order], return_index=True)
    bytes_M = joined.bytes_J[joined.request_M]
    for rank, members in zip(ranks, np.split(order, begins[1:]), strict=True):
        seen = members[np.isfinite(offset_M[members])]
        if len(seen) >= MIN_REQUESTS:
            largest = np.sort(bytes_M[seen])[max(MIN_REQUESTS - 1, len(seen) // 4)]
            result[rank] = np.median(offset_M[seen[bytes_M[seen] <= largest]])
    return result


def wrong_clocks(spans: Spans, offset_ns_R: FloatArray, *, least_ns: float) -> IntArray:
    """Return the ranks whose clocks are off beyond what is known of them, and beyond the others' spread."""
    spread = MIN_SIGMAS * deviation(offset_ns_R)
    known_R = np.where(spans.clock_error_ns_R == UNKNOWN, 0, spans.clock_error_ns_R)
    is_wrong_R = np.abs(np.nan_to_num(offset_ns_R)) > np.maximum(np.maximum(known_R, spread), least_ns)
    return np.flatnonzero(is_wrong_R)


def with_clocks_moved(spans: Spans, offset_ns_R: FloatArray, ranks: IntArray) -> Spans:
    """Return the spans with the times of some ranks moved back by their offsets."""
    moved_R = np.zeros(spans.layout.world_size, np.int64)
    moved_R[ranks] = np.round(offset_ns_R[ranks]).astype(np.int64)
    moved_N = moved_R[spans.rank_N]

    def moved(time_ns_N: IntArray) -> IntArray:
        return np.where(time_ns_N == UNKNOWN, UNKNOWN, time_ns_N - moved_N)

    return replace(
        spans,
        issue_ns_N=moved(spans.issue_ns_N),
        start_ns_N=moved(spans.start_ns_N),
        end_ns_N=moved(spans.end_ns_N),
    )


def checked_clocks(spans: Spans, *, least_ns: float) -> tuple[Spans, FloatArray, IntArray]:
    """Return the spans with wrong clocks moved, each rank's offset before that, and the ranks with wrong clocks."""
    offset_ns_R = clock_offsets_ns(spans, join_requests(spans))
    wrong = wrong_clocks(spans, offset_ns_R, least_ns=least_ns)
    return (with_clocks_moved(spans, offset_ns_R, wrong) if len(wrong) else spans), offset_ns_R, wrong
