"""Activity: what the ranks of a job did, and on which clock, from spans or from a communication trace.

Shapes: W pieces of work, Q requests, N rows of a trace, R ranks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from fabrictune.collectives.request_matching import occurrences
from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.foundation.texts import Texts
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.observability.meetings import Meetings, meet

NOT_ENDED = "requests without an end, drawn where they were issued"
NOT_MEASURED = "requests without a time, left out"
DROPPED = "spans left out when they were written"


@dataclass(frozen=True, kw_only=True)
class Work:
    """What ranks did alone, and their waits for requests."""

    rank_W: IntArray
    step_W: IntArray
    name_W: Texts
    start_ns_W: IntArray
    end_ns_W: IntArray

    def where(self, is_kept_W: BoolArray) -> Self:
        """Return the pieces that are kept."""
        return replace(self, **_kept(self, is_kept_W))


@dataclass(frozen=True, kw_only=True)
class Requests:
    """What ranks asked of their groups, with an end each."""

    rank_Q: IntArray
    step_Q: IntArray
    axis_Q: Texts
    name_Q: Texts
    operation_Q: IntArray
    group_Q: IntArray
    sequence_Q: IntArray
    peer_Q: IntArray
    bytes_Q: IntArray
    issue_ns_Q: IntArray
    end_ns_Q: IntArray  # the issue where no end is known
    has_end_Q: BoolArray

    def __len__(self) -> int:
        return len(self.rank_Q)

    def where(self, is_kept_Q: BoolArray) -> Self:
        """Return the requests that are kept."""
        return replace(self, **_kept(self, is_kept_Q))


@dataclass(frozen=True, kw_only=True)
class Activity:
    """What the ranks of a job did."""

    groups: Sequence[Sequence[int]]
    host_R: tuple[str, ...]
    clock_error_ns_R: IntArray  # bound on what a rank's clock is off rank 0's; UNKNOWN where there is none
    work: Work
    requests: Requests
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def ranks(self) -> IntArray:
        """The ranks that did anything, in order."""
        return np.unique(np.concatenate([self.work.rank_W, self.requests.rank_Q]))

    @cached_property
    def meetings(self) -> Meetings:
        """Which requests are one collective or message."""
        columns = ("group_Q", "operation_Q", "rank_Q", "peer_Q", "step_Q", "sequence_Q")
        return meet(groups=self.groups, **{name: getattr(self.requests, name) for name in columns})

    def of_ranks(self, ranks: Sequence[int]) -> Self:
        """Return what some ranks did."""
        return replace(
            self,
            work=self.work.where(np.isin(self.work.rank_W, ranks)),
            requests=self.requests.where(np.isin(self.requests.rank_Q, ranks)),
        )

    def of_steps(self, first: int, last: int) -> Self:
        """Return what the ranks did in steps `first` to `last`."""
        work, requests = self.work, self.requests
        return replace(
            self,
            work=work.where((work.step_W >= first) & (work.step_W <= last)),
            requests=requests.where((requests.step_Q >= first) & (requests.step_Q <= last)),
        )


def activity_of_spans(spans: Spans) -> Activity:
    """Return what the spans of a job say."""
    is_request_N = spans.kind_N == SpanKind.REQUEST
    is_ended_N = ~is_request_N | (spans.end_ns_N != UNKNOWN)
    end_ns_N = np.where(is_ended_N, spans.end_ns_N, spans.issue_ns_N)
    requests, others = np.flatnonzero(is_request_N), np.flatnonzero(~is_request_N)
    waits = np.flatnonzero(is_request_N & is_ended_N & (spans.start_ns_N >= 0) & (spans.start_ns_N < spans.end_ns_N))
    tag_N, axis_N = Texts.of(spans.tag_N), Texts.of(spans.axis_N)
    rows = np.concatenate([others, waits])
    names = (*(_pass_name(spans, row) for row in others.tolist()), *(f"wait {tag_N[row]}" for row in waits.tolist()))
    return Activity(
        groups=spans.groups,
        host_R=spans.host_R,
        clock_error_ns_R=spans.clock_error_ns_R,
        work=Work(
            rank_W=spans.rank_N[rows],
            step_W=spans.step_N[rows],
            name_W=Texts.of(names),
            start_ns_W=spans.start_ns_N[rows],
            end_ns_W=spans.end_ns_N[rows],
        ),
        requests=Requests(
            rank_Q=spans.rank_N[requests],
            step_Q=spans.step_N[requests],
            axis_Q=axis_N.take(requests),
            name_Q=_request_names(spans.operation_N[requests], tag_N.take(requests)),
            operation_Q=spans.operation_N[requests],
            group_Q=spans.group_N[requests],
            sequence_Q=spans.sequence_N[requests],
            peer_Q=spans.peer_N[requests],
            bytes_Q=spans.bytes_N[requests],
            issue_ns_Q=spans.issue_ns_N[requests],
            end_ns_Q=end_ns_N[requests],
            has_end_Q=is_ended_N[requests],
        ),
        left_out={DROPPED: int(spans.num_dropped_R.sum()), NOT_ENDED: int((~is_ended_N).sum())},
    )


def activity_of_trace(trace: CommTrace, host_R: Sequence[str] | None = None) -> Activity:
    """Return what a measured communication trace says; without `host_R` all ranks are of one host.

    Work is from the end of the wait before a request to its issue, as the trace has it; what several requests share
    counts to the first.
    """
    is_timed_N = trace.issue_ps_N != UNKNOWN
    is_ended_N = is_timed_N & (trace.complete_ps_N != UNKNOWN)
    rows = np.flatnonzero(is_timed_N)
    issue_ns_N, work_ns_N = trace.issue_ps_N // PS_PER_NS, trace.compute_before_ps_N // PS_PER_NS
    end_ns_N = np.where(is_ended_N, trace.complete_ps_N // PS_PER_NS, issue_ns_N)
    tag_N = Texts.of(trace.tag_N)
    begin_ns_N = _work_begins(trace.rank_N, issue_ns_N, work_ns_N, rows)
    works = rows[begin_ns_N[rows] < issue_ns_N[rows]]
    waits = np.flatnonzero(is_ended_N & (trace.exposed_wait_ps_N >= PS_PER_NS))
    parts = np.concatenate([works, waits])
    num_ranks = 1 + int(trace.rank_N.max(initial=-1))
    return Activity(
        groups=trace.groups,
        host_R=tuple(host_R or ["host"] * num_ranks),
        clock_error_ns_R=np.zeros(num_ranks, np.int64),
        work=Work(
            rank_W=trace.rank_N[parts],
            step_W=trace.step_N[parts],
            name_W=Texts.of((*("work" for _ in works), *(f"wait {tag_N[row]}" for row in waits.tolist()))),
            start_ns_W=np.concatenate(
                [begin_ns_N[works], end_ns_N[waits] - trace.exposed_wait_ps_N[waits] // PS_PER_NS]
            ),
            end_ns_W=np.concatenate([issue_ns_N[works], end_ns_N[waits]]),
        ),
        requests=Requests(
            rank_Q=trace.rank_N[rows],
            step_Q=trace.step_N[rows],
            axis_Q=Texts.of(trace.axis_N).take(rows),
            name_Q=_request_names(trace.operation_N[rows], tag_N.take(rows)),
            operation_Q=trace.operation_N[rows],
            group_Q=trace.group_N[rows],
            sequence_Q=_sequences(trace)[rows],
            peer_Q=trace.peer_N[rows],
            bytes_Q=trace.bytes_N[rows],
            issue_ns_Q=issue_ns_N[rows],
            end_ns_Q=end_ns_N[rows],
            has_end_Q=is_ended_N[rows],
        ),
        left_out={NOT_MEASURED: int((~is_timed_N).sum()), NOT_ENDED: int((is_timed_N & ~is_ended_N).sum())},
    )


def _sequences(trace: CommTrace) -> IntArray:
    """Return the number of each request among those that it is counted with: `match_requests` pairs equal ones."""
    is_send_N, is_receive_N = trace.operation_N == Operation.SEND, trace.operation_N == Operation.RECEIVE
    is_message_N = is_send_N | is_receive_N
    peer_N = np.where(is_message_N, trace.peer_N, UNKNOWN)
    key_N = np.stack([trace.group_N, trace.rank_N, peer_N, is_send_N, is_receive_N], axis=1)
    _, place_N = np.unique(key_N, axis=0, return_inverse=True)
    return occurrences(place_N.ravel())


def _work_begins(rank_N: IntArray, issue_ns_N: IntArray, work_ns_N: IntArray, rows: IntArray) -> IntArray:
    """Return when the work before each request begins, not before the same rank's last issue."""
    begin_ns_N = issue_ns_N - work_ns_N
    order = rows[np.lexsort((issue_ns_N[rows], rank_N[rows]))]
    is_same = np.flatnonzero(np.diff(rank_N[order]) == 0) + 1
    later = order[is_same]
    begin_ns_N[later] = np.maximum(begin_ns_N[later], issue_ns_N[order[is_same - 1]])
    return np.asarray(begin_ns_N, np.int64)


def _request_names(operation_Q: IntArray, tag_Q: Texts) -> Texts:
    """Return `operation tag` of each request."""
    num_tags = len(tag_Q.vocabulary)
    used, place_Q = np.unique(operation_Q * num_tags + tag_Q.place_N, return_inverse=True)
    names = []
    for key in used.tolist():
        operation, tag = divmod(key, num_tags)
        words = Operation(operation).name.lower().replace("_", "-")
        names.append(f"{words} {tag_Q.vocabulary[tag]}".strip())
    return Texts(vocabulary=tuple(names), place_N=place_Q.ravel().astype(np.int32))


def _pass_name(spans: Spans, row: int) -> str:
    """Return `forward 3`: a pass by its micro-batch, and its model chunk where there are several."""
    kind, micro_batch, chunk = SpanKind(spans.kind_N[row]), int(spans.micro_batch_N[row]), int(spans.chunk_N[row])
    words = kind.name.lower().replace("_", " ")
    if kind == SpanKind.STEP:
        return f"{words} {spans.step_N[row]}"
    if micro_batch == UNKNOWN:
        return words
    return f"{words} {micro_batch}" + (f" of chunk {chunk}" if chunk > 0 else "")


def _kept(table: Work | Requests, is_kept: BoolArray) -> dict[str, Any]:
    """Return the columns of a table with the rows that are kept."""
    rows = np.flatnonzero(is_kept)
    columns = {column.name: getattr(table, column.name) for column in fields(table)}
    return {name: values.take(rows) if isinstance(values, Texts) else values[rows] for name, values in columns.items()}
