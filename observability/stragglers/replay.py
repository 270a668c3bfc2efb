"""Replay of a job's steps from its spans: passes in order on a rank, requests that join ranks.

Each rank has a chain of events: it issues a request, or waits for one. Before an event it works, for as long as it did;
a request ends its transfer after the last member's issue, and lets its waits go. With the work and transfers that were
seen, the times that were seen come out; with others, those of a job that has them.

A request that nobody had to wait for has ended at an unknown time: its transfer is at most the usual one of its sort.

Shapes: R ranks, E events, J joined requests.
"""

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.robust import medians_of_groups
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.observability.stragglers.requests import JoinedRequests, join_requests, usual_ns, usual_transfer_ns

ISSUE, WAIT, END = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class Program:
    """The events of all ranks, rank after rank in order of time."""

    ranks: IntArray  # that have events
    first_R: IntArray  # of each among E, and E at the end
    kind_E: IntArray
    request_E: IntArray  # -1 for END
    step_E: IntArray
    begin_ns_E: IntArray  # as it was seen
    work_ns_E: FloatArray  # before the event
    after_ns_E: FloatArray  # of a wait, what the rank does when the request has ended before it goes on
    begin_ns_R: FloatArray
    transfer_ns_J: FloatArray
    num_members_J: IntArray

    @property
    def num_steps(self) -> int:
        """Steps that are replayed."""
        return len(np.unique(self.step_E))


def program_of(spans: Spans, joined: JoinedRequests | None = None) -> Program:
    """Return the program of spans of common steps; requests of which members are missing are work."""
    joined = join_requests(spans) if joined is None else joined
    ends = np.flatnonzero(spans.kind_N == SpanKind.STEP)
    member = np.arange(len(joined.row_M))
    rank_E = np.concatenate([joined.rank_M, joined.rank_M, spans.rank_N[ends]])
    kind_E = np.repeat([ISSUE, WAIT, END], [len(member), len(member), len(ends)])
    begin_E = np.concatenate([joined.issue_ns_M, joined.start_ns_M, spans.end_ns_N[ends]])
    end_E = np.concatenate([joined.issue_ns_M, joined.end_ns_M, spans.end_ns_N[ends]])
    request_E = np.concatenate([joined.request_M, joined.request_M, np.full(len(ends), -1)])
    step_E = np.concatenate([spans.step_N[joined.row_M]] * 2 + [spans.step_N[ends]])
    order = np.lexsort((kind_E, end_E, begin_E, rank_E))
    rank_E, kind_E, begin_E, end_E = rank_E[order], kind_E[order], begin_E[order], end_E[order]
    request_E, step_E = request_E[order], step_E[order]
    ranks, first = np.unique(rank_E, return_index=True)
    step_begin_R = _first_begins(spans, ranks)
    before_E = np.concatenate([[0], end_E[:-1]])
    before_E[first] = step_begin_R
    transfer_J = np.maximum(joined.transfer_ns_J, 0).astype(np.float64)
    transfer_J = np.where(joined.is_exposed_J, transfer_J, np.minimum(transfer_J, usual_transfer_ns(joined)))
    ready_J = joined.last_issue_ns_J + transfer_J
    is_wait = kind_E == WAIT
    let_go_E = np.where(is_wait, np.maximum(begin_E, ready_J[request_E] if len(ready_J) else 0), end_E)
    return Program(
        ranks=ranks,
        first_R=np.append(first, len(rank_E)),
        kind_E=kind_E,
        request_E=request_E,
        step_E=step_E,
        begin_ns_E=begin_E,
        work_ns_E=np.maximum(begin_E - before_E, 0).astype(np.float64),
        after_ns_E=np.maximum(end_E - let_go_E, 0).astype(np.float64),
        begin_ns_R=step_begin_R.astype(np.float64),
        transfer_ns_J=transfer_J,
        num_members_J=joined.size_J,
    )


def step_time_ns(program: Program) -> float:
    """Return the mean time of a step when the program is replayed."""
    finish_R = _replay(program)
    return float(max(finish_R) - program.begin_ns_R.max()) / max(1, program.num_steps)


def with_usual_work(program: Program, rank: int, peers: IntArray) -> Program:
    """Return the program with a rank's work replaced by its peers' median at the same place of the same step.

    Peers whose steps have other events are left out; with none left the work stays as it is.
    """
    rows = _rows(program, rank)
    own = _shape(program, rows)
    alike = [other for peer in peers if peer != rank and _shape(program, other := _rows(program, int(peer))) == own]
    if not alike:
        return program
    work_ns_E, after_ns_E = program.work_ns_E.copy(), program.after_ns_E.copy()
    work_ns_E[rows] = np.median([program.work_ns_E[other] for other in alike], axis=0)
    after_ns_E[rows] = np.median([program.after_ns_E[other] for other in alike], axis=0)
    return replace(program, work_ns_E=work_ns_E, after_ns_E=after_ns_E)


def with_usual_transfers(program: Program, joined: JoinedRequests, rank: int) -> Program:
    """Return the program with the transfers of a rank's requests at most the usual ones of others' requests.

    So is what their members' ends are apart: where one link is slow, some members end late.
    """
    is_own_J, is_wait_E = joined.has_member_J(rank), program.kind_E == WAIT
    transfer_ns_J = program.transfer_ns_J
    usual_J = np.minimum(transfer_ns_J, usual_ns(joined, transfer_ns_J, without=rank))
    after_ns_J = medians_of_groups(program.after_ns_E[is_wait_E], program.request_E[is_wait_E])
    usual_after_J = usual_ns(joined, after_ns_J, without=rank)
    is_own_E = is_wait_E & is_own_J[program.request_E]
    usual_after_E = np.minimum(program.after_ns_E, usual_after_J[program.request_E])
    return replace(
        program,
        transfer_ns_J=np.where(is_own_J, usual_J, transfer_ns_J),
        after_ns_E=np.where(is_own_E, usual_after_E, program.after_ns_E),
    )


def without_work(program: Program, spans: Spans, kind: SpanKind, ranks: IntArray, *, usual_ns: float = 0.0) -> Program:
    """Return the program without some ranks' spans of a kind, each of which then takes at most `usual_ns`."""
    work_ns_E = program.work_ns_E.copy()
    for rank in ranks.tolist():
        rows = _rows(program, rank)
        own = np.flatnonzero((spans.rank_N == rank) & (spans.kind_N == kind))
        excess = np.maximum(spans.end_ns_N[own] - spans.start_ns_N[own] - usual_ns, 0)
        place = np.searchsorted(program.begin_ns_E[rows], spans.end_ns_N[own])  # the event that the work comes before
        np.subtract.at(work_ns_E[rows], np.minimum(place, len(work_ns_E[rows]) - 1), excess)
    return replace(program, work_ns_E=np.maximum(work_ns_E, 0))


def _rows(program: Program, rank: int) -> slice:
    place = int(np.searchsorted(program.ranks, rank))
    return slice(int(program.first_R[place]), int(program.first_R[place + 1]))


def _shape(program: Program, rows: slice) -> bytes:
    return program.kind_E[rows].tobytes() + program.step_E[rows].tobytes()


def _first_begins(spans: Spans, ranks: IntArray) -> IntArray:
    begin_R = np.full(spans.layout.world_size, np.iinfo(np.int64).max)
    is_step = spans.kind_N == SpanKind.STEP
    np.minimum.at(begin_R, spans.rank_N[is_step], spans.start_ns_N[is_step])
    return begin_R[ranks]


def _replay(program: Program) -> list[float]:
    """Return when each rank has finished its events."""
    kinds, requests = program.kind_E.tolist(), program.request_E.tolist()
    works, afters = program.work_ns_E.tolist(), program.after_ns_E.tolist()
    transfers, left = program.transfer_ns_J.tolist(), program.num_members_J.tolist()
    last_issue = [0.0] * len(left)
    waiting: dict[int, list[int]] = {}
    time: list[float] = program.begin_ns_R.tolist()
    event, end = program.first_R[:-1].tolist(), program.first_R[1:].tolist()
    has_worked = [False] * len(time)
    runnable = deque(range(len(time)))
    while runnable:
        rank = runnable.popleft()
        now, number = time[rank], event[rank]
        while number < end[rank]:
            request = requests[number]
            if not has_worked[rank]:
                now += works[number]
            has_worked[rank] = False
            if kinds[number] == ISSUE:
                last_issue[request] = max(last_issue[request], now)
                left[request] -= 1
                if not left[request]:
                    runnable.extend(waiting.pop(request, ()))
            elif kinds[number] == WAIT:
                if left[request]:
                    waiting.setdefault(request, []).append(rank)
                    has_worked[rank] = True
                    break
                now = max(now, last_issue[request] + transfers[request]) + afters[number]
            number += 1
        time[rank], event[rank] = now, number
    return time
