"""Requests that all members have issued, and that do not complete: what the network or a GPU keeps back.

Where some members have one complete and others wait for nothing else, the traffic to these has stopped. That outweighs
a process that has not issued a request by a source that may not have seen what it waits for. A member that has ended or
is stopped keeps a request open, whatever it has issued.
"""

from collections.abc import Iterator, Sequence

from fabrictune.foundation.wording import count
from fabrictune.observability.hangs.blame import MAX_PROCESSES, request_at, signs_of
from fabrictune.observability.hangs.diagnosis import Cause, Certainty, Diagnosis
from fabrictune.observability.hangs.evidence import Progress, SignKind
from fabrictune.observability.hangs.graph import WaitGraph
from fabrictune.observability.hangs.job import Job, Table
from fabrictune.observability.hangs.own_causes import own_cause, surest
from fabrictune.observability.hangs.waits import GroupWait

HALTED = (Cause.GONE, Cause.STOPPED)


def diagnose_partial(graph: WaitGraph) -> Diagnosis | None:
    """Return the diagnosis of a request that some of its members have complete, unless one that others wait for failed.

    Its group must be seen whole, and the members without it must wait for nobody.
    """
    if any(graph.job.has(end, SignKind.FAILED) for end in graph.ends):
        return None
    stuck = set(graph.stuck)
    for wait in _issued_by_all(graph):
        if not _has_all_members(wait.table, graph.job):
            continue
        done = [process for process, row in wait.table.rows.items() if _has(row, wait.number)]
        behind = [process for process in _behind(wait) if process in stuck]
        if done and behind:
            return _of_behind(behind, wait, graph.job)
    return None


def diagnose_incomplete(graph: WaitGraph) -> Diagnosis | None:
    """Return the diagnosis of a request that all have issued: who does not complete it, or has not started it."""
    for wait in _issued_by_all(graph):
        rows, number = wait.table.rows, wait.number
        behind = _behind(wait)
        not_started = [
            process for process, row in rows.items() if row.started is not None and row.started < number <= _issued(row)
        ]
        has_started = [process for process, row in rows.items() if row.started is not None and row.started >= number]
        if not_started and has_started and len(behind) == len(rows):
            return blame_request(Cause.NOT_STARTED, Certainty.LIKELY, not_started, wait, graph.job)
        if behind:
            return _of_behind(behind, wait, graph.job)
    return None


def _issued_by_all(graph: WaitGraph) -> Iterator[GroupWait]:
    """Yield waits for requests that all members seen have issued; of groups seen whole first, by number."""
    complete = [wait for wait in graph.waits if not wait.blockers]
    yield from sorted(complete, key=lambda wait: (not _has_all_members(wait.table, graph.job), wait.number))


def _has_all_members(table: Table, job: Job) -> bool:
    """Return whether a source says something of all members of a group: else one may not have issued a request."""
    return len(table.rows) == job.groups[table.group].size


def _behind(wait: GroupWait) -> list[int]:
    """Return the members that are seen to wait in vain for a request, or not to have it complete."""
    table = wait.table
    if table.knows_waits:
        return [process for process, row in table.rows.items() if row.waits_for == wait.number]
    return [process for process, row in table.rows.items() if row.completed is not None and row.completed < wait.number]


def _has(row: Progress, number: int) -> bool:
    return row.completed is not None and row.completed >= number


def _issued(row: Progress) -> int:
    return -1 if row.issued is None else row.issued


def _of_behind(behind: Sequence[int], wait: GroupWait, job: Job) -> Diagnosis:
    """Return the diagnosis of members without a request: of those that ended or are stopped, where any did or is.

    One may have been stopped before it was seen to wait.
    """
    rows = wait.table.rows
    without = [process for process, row in rows.items() if not _has(row, wait.number)]
    causes = {process: cause for process in without if (cause := own_cause(process, job)) in HALTED}
    if 0 < len(causes) < len(rows):
        first, halted = surest(causes)
        return blame_request(first, Certainty.CERTAIN, halted, wait, job)
    is_part = len(behind) < len(rows)
    failed = [process for process in behind if job.has(process, SignKind.FAILED)]
    certainty = Certainty.CERTAIN if failed else Certainty.LIKELY if is_part else Certainty.POSSIBLE
    return blame_request(Cause.TRANSPORT, certainty, failed or behind, wait, job)


def blame_request(cause: Cause, certainty: Certainty, guilty: Sequence[int], wait: GroupWait, job: Job) -> Diagnosis:
    """Return the diagnosis of members that keep a request from being complete everywhere."""
    rows = wait.table.rows
    done = [process for process, row in rows.items() if _has(row, wait.number)]
    return Diagnosis(
        cause=cause,
        certainty=certainty,
        processes=tuple(guilty[:MAX_PROCESSES]),
        group=wait.table.group,
        number=wait.number,
        request=request_at(wait.table, wait.number),
        source=wait.table.source,
        num_waiting=len(rows) - len(done),
        evidence=(
            f"all {count(len(rows), 'member')} issued number {wait.number}; {len(done)} completed it "
            f"({wait.table.source})",
            *signs_of(guilty, job, (SignKind.FAILED, SignKind.GONE, SignKind.STOPPED)),
            *(rows[process].where for process in guilty[:4]),
        ),
        alternatives=("a GPU that does not run its kernel looks the same",) if cause is Cause.TRANSPORT else (),
    )
