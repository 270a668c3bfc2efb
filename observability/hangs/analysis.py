"""From the evidence of a job to the process that the others wait for.

The waits-for graph is followed from all that wait. It ends at processes that wait for nobody, at requests that all
members have issued, or runs in a circle. What is known of such a process, the surest first, says why; processes whose
stack is in a loader, a checkpoint or a garbage collection wait for nobody, whatever requests they have open.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fabrictune.foundation.waits import Wait, find_circle, find_roots
from fabrictune.foundation.wording import count, some
from fabrictune.observability.hangs.diagnosis import Cause, Certainty, Diagnosis, Edge
from fabrictune.observability.hangs.evidence import UNKNOWN, Progress, SignKind
from fabrictune.observability.hangs.job import Job, Table
from fabrictune.observability.hangs.mismatches import find_mismatch
from fabrictune.observability.hangs.orders import find_out_of_order
from fabrictune.observability.hangs.stacks import Place, place_of
from fabrictune.observability.hangs.waits import GroupWait, find_group_waits, merge_waits

MAX_PROCESSES = 64  # that a diagnosis names
MAX_EDGES = 64
_CAUSE_OF_PLACE = {
    Place.LOADER: Cause.LOADER,
    Place.CHECKPOINT: Cause.CHECKPOINT,
    Place.COLLECTION: Cause.COLLECTION,
    Place.COMPILATION: Cause.COMPILATION,
}
_CAUSE_OF_SIGN = {SignKind.GONE: Cause.GONE, SignKind.STOPPED: Cause.STOPPED}
_RANKING = (  # of roots of which something is known, the surest first
    *(Cause.GONE, Cause.STOPPED, Cause.LOADER, Cause.CHECKPOINT, Cause.COLLECTION, Cause.COMPILATION, Cause.FAILED),
    Cause.MISSING,
)


def diagnose(job: Job) -> Diagnosis | None:
    """Return who keeps a job from going on, None where nothing in the evidence stands still."""
    busy = frozenset(process for process in job.signs if _own_cause(process, job) is not None)
    waits = find_group_waits(job)
    merged = merge_waits(waits, without=busy)
    roots = find_roots(merged, merged)
    ends = [root for root in roots if root not in merged]
    return (
        _of_known(ends, merged, waits, job)
        or _of_mismatch(job, merged)
        or _of_missing(ends, merged, waits, job)
        or _of_incomplete(waits, job)
        or _of_circle(merged, waits, job)
        or _of_signs(job)
        or _of_completions(job)
    )


def _own_cause(process: int, job: Job) -> Cause | None:
    """Return what keeps a process from issuing requests, by signs of the process itself."""
    for kind, cause in _CAUSE_OF_SIGN.items():
        if job.has(process, kind):
            return cause
    sign = job.has(process, SignKind.STACK)
    place = place_of(sign.frames) if sign else None
    return _CAUSE_OF_PLACE.get(place) if place else None


def _of_known(
    ends: Sequence[int], merged: Mapping[int, Wait], waits: Sequence[GroupWait], job: Job
) -> Diagnosis | None:
    """Return the diagnosis of the ends of waits that a source says something of."""
    causes = {end: cause for end in ends if (cause := _own_cause(end, job))}
    if not causes:
        return None
    first = min(causes.values(), key=_RANKING.index)
    guilty = tuple(end for end, cause in causes.items() if cause == first)
    others = [end for end in ends if end not in guilty]
    alternatives = [f"{job.processes[end]}: {causes.get(end, Cause.MISSING).value}" for end in others]
    is_own = first in (Cause.GONE, Cause.STOPPED)
    certainty = Certainty.CERTAIN if is_own or not others else Certainty.LIKELY
    return _with_waits(first, certainty, guilty, merged, waits, job, alternatives)


def _of_mismatch(job: Job, merged: Mapping[int, Wait]) -> Diagnosis | None:
    """Return the diagnosis of members that ask for another request under the number of the others' one."""
    found = find_mismatch(job)
    if found is None:
        return None
    return Diagnosis(
        cause=Cause.MISMATCH,
        certainty=Certainty.LIKELY if found.is_minority else Certainty.POSSIBLE,
        processes=found.processes[:MAX_PROCESSES],
        group=found.table.group,
        number=found.number,
        request=found.theirs,
        source=found.table.source,
        num_waiting=len(merged),
        evidence=(
            *(f"{job.processes[process]} asks for {found.theirs}" for process in found.processes[:8]),
            f"{count(len(found.others), 'other member')} for {found.ours} "
            f"({found.table.source}, number {found.number})",
            *(found.table.rows[process].where for process in found.processes[:8]),
        ),
        alternatives=() if found.is_minority else ("the other members ask for the wrong one; neither is a majority",),
    )


def _of_missing(
    ends: Sequence[int], merged: Mapping[int, Wait], waits: Sequence[GroupWait], job: Job
) -> Diagnosis | None:
    """Return the diagnosis of processes that have not issued what others wait for, and wait for nobody themselves."""
    if not ends:
        return None
    failed = [end for end in ends if job.has(end, SignKind.FAILED)]
    alive = [end for end in ends if job.has(end, SignKind.ALIVE)]
    guilty = failed or alive or _by_stacks(ends, job)
    reached = Counter(blocker for wait in waits for blocker in wait.blockers if blocker in guilty)
    first = max(guilty, key=lambda end: (reached[end], -end))
    number_of = {_held(end, waits) for end in (first,)}
    together = [end for end in guilty if end == first or _held(end, waits) in number_of]
    others = [end for end in ends if end not in together]
    cause = Cause.FAILED if failed else Cause.MISSING
    silent = all(wait.is_silent for wait in waits if first in wait.blockers)
    certainty = Certainty.POSSIBLE if silent or len(others) > len(together) else Certainty.LIKELY
    alternatives = [f"{job.processes[end]}: {Cause.MISSING.value}" for end in others]
    apart = [one for one in job.signs if job.processes[one].rank == UNKNOWN != job.processes[first].rank]
    alternatives += [
        f"perhaps {job.processes[one]}, whose rank no source says: {known.value}"
        for one in apart
        if (known := _own_cause(one, job))
    ][:4]
    if cause is Cause.MISSING and not job.has(first, SignKind.STACK):
        alternatives.append("what it does instead is not in the evidence: take its stack with py-spy")
    return _with_waits(cause, certainty, tuple(together), merged, waits, job, alternatives)


def _by_stacks(ends: Sequence[int], job: Job) -> Sequence[int]:
    """Return the ends of waits that do not wait by their stacks, and of these those without one where others have one.

    A process may wait for a message, which not every source numbers.
    """
    stacks = {process: sign for process in job.signs if (sign := job.has(process, SignKind.STACK))}
    free = [end for end in ends if end not in stacks or place_of(stacks[end].frames) is not Place.WAITS]
    without = [end for end in free if end not in stacks]
    return (without if 2 * len(stacks) > len(job.processes) else []) or free or ends


def _held(process: int, waits: Sequence[GroupWait]) -> tuple[int, int] | None:
    """Return group and number of the first request that a process holds up."""
    return next(((wait.table.group, wait.number) for wait in waits if process in wait.blockers), None)


def _of_incomplete(waits: Sequence[GroupWait], job: Job) -> Diagnosis | None:
    """Return the diagnosis of a request that all have issued: who does not complete it, or has not started it."""
    complete = [wait for wait in waits if not wait.blockers]
    for wait in sorted(complete, key=lambda wait: (not _has_all_members(wait.table, job), wait.number)):
        rows, number = wait.table.rows, wait.number
        behind = [process for process, row in rows.items() if _lacks(row, number, wait.table)]
        not_started = [
            process for process, row in rows.items() if row.started is not None and row.started < number <= _issued(row)
        ]
        has_started = [process for process, row in rows.items() if row.started is not None and row.started >= number]
        if not_started and has_started and len(behind) == len(rows):
            return _of_request(Cause.NOT_STARTED, Certainty.LIKELY, not_started, wait, job)
        if behind:
            is_part = len(behind) < len(rows)
            failed = [process for process in behind if job.has(process, SignKind.FAILED)]
            certainty = Certainty.CERTAIN if failed else Certainty.LIKELY if is_part else Certainty.POSSIBLE
            return _of_request(Cause.TRANSPORT, certainty, failed or behind, wait, job)
    return None


def _has_all_members(table: Table, job: Job) -> bool:
    """Return whether a source says something of all members of a group: else one may not have issued a request."""
    return len(table.rows) == job.groups[table.group].size


def _lacks(row: Progress, number: int, table: Table) -> bool:
    """Return whether a process is seen to wait in vain for a request, or not to have it complete."""
    if table.knows_waits:
        return row.waits_for == number
    return row.completed is not None and row.completed < number


def _issued(row: Progress) -> int:
    return -1 if row.issued is None else row.issued


def _of_request(cause: Cause, certainty: Certainty, guilty: Sequence[int], wait: GroupWait, job: Job) -> Diagnosis:
    rows = wait.table.rows
    done = [process for process, row in rows.items() if row.completed is not None and row.completed >= wait.number]
    text = f"all {count(len(rows), 'member')} issued number {wait.number}; {len(done)} completed it"
    return Diagnosis(
        cause=cause,
        certainty=certainty,
        processes=tuple(guilty[:MAX_PROCESSES]),
        group=wait.table.group,
        number=wait.number,
        request=_request(wait.table, wait.number),
        source=wait.table.source,
        num_waiting=len(rows) - len(done),
        evidence=(
            f"{text} ({wait.table.source})",
            *_signs_of(guilty, job, (SignKind.FAILED,)),
            *(rows[process].where for process in guilty[:4]),
        ),
        alternatives=("a GPU that does not run its kernel looks the same",) if cause is Cause.TRANSPORT else (),
    )


def _of_circle(merged: Mapping[int, Wait], waits: Sequence[GroupWait], job: Job) -> Diagnosis | None:
    """Return the diagnosis of processes that wait for one another."""
    circle = find_circle(merged)
    if not circle:
        return None
    odd = find_out_of_order(circle, job)
    guilty = circle if odd is None else (odd,)
    found = _with_waits(
        Cause.DEADLOCK if odd is None else Cause.SKIPPED, Certainty.POSSIBLE, guilty, merged, waits, job, ()
    )
    edges = [edge for edge in _edges(waits) if edge.waiter in circle and edge.blocker in circle]
    ranks = some(str(job.processes[process]) for process in circle)
    text = f"{ranks} wait for one another; one may stand elsewhere with a request open: stacks would tell"
    return replace(found, edges=tuple(edges[:MAX_EDGES]), alternatives=(text,))


def _of_signs(job: Job) -> Diagnosis | None:
    """Return the diagnosis of processes that are known to be gone, stopped or stuck, without anyone seen to wait."""
    causes = {process: cause for process in job.signs if (cause := _own_cause(process, job))}
    if not causes:
        return None
    first = min(causes.values(), key=_RANKING.index)
    guilty = [process for process, cause in causes.items() if cause == first]
    rest = [f"{job.processes[one]}: {cause.value}" for one, cause in causes.items() if cause != first]
    alone = len(guilty) < max(2, len(job.processes))
    return Diagnosis(
        cause=first,
        certainty=Certainty.LIKELY if alone else Certainty.POSSIBLE,
        processes=tuple(guilty[:MAX_PROCESSES]),
        evidence=tuple(_signs_of(guilty, job, tuple(SignKind))),
        alternatives=(*rest[:8], "no source says who waits for whom"),
    )


def _of_completions(job: Job) -> Diagnosis | None:
    """Return the diagnosis from completions alone: who lacks one that others have, or completed its last one first."""
    for table in job.tables:
        done = {process: row.completed for process, row in table.rows.items() if row.completed is not None}
        if any(row.issued is not None for row in table.rows.values()) or len(done) < 2:
            continue
        most = max(done.values())
        behind = [process for process, number in done.items() if number < most]
        if behind:
            wait = GroupWait(process=behind[0], table=table, number=most, blockers=(), is_silent=False)
            return _of_request(Cause.TRANSPORT, Certainty.POSSIBLE, behind, wait, job)
    latest: dict[int, tuple[int, str]] = {}
    if any(row.issued is not None for table in job.tables for row in table.rows.values()):
        return None  # a source that knows what is open says that nothing is
    for table in job.tables:
        for process, row in table.rows.items():
            if row.time_us is not None:
                latest[process] = max(latest.get(process, (row.time_us, row.where)), (row.time_us, row.where))
    if len(latest) < 2 or len({time for time, _ in latest.values()}) < 2:
        return None
    first = min(time for time, _ in latest.values())
    guilty = [process for process, (time, _) in latest.items() if time == first]
    return Diagnosis(
        cause=Cause.EARLIEST,
        certainty=Certainty.POSSIBLE,
        processes=tuple(guilty[:MAX_PROCESSES]),
        evidence=tuple(latest[process][1] for process in guilty[:8]),
        alternatives=("completions alone do not say who waits; clocks of hosts may differ",),
    )


def _with_waits(
    cause: Cause,
    certainty: Certainty,
    guilty: Sequence[int],
    merged: Mapping[int, Wait],
    waits: Sequence[GroupWait],
    job: Job,
    alternatives: Iterable[str],
) -> Diagnosis:
    """Return the diagnosis of processes that others wait for, with the request that they hold up."""
    held = next((wait for wait in waits if set(guilty) & set(wait.blockers)), None)
    chosen = set(guilty)
    edges = [edge for edge in _edges(waits) if edge.blocker in chosen]
    signs = _signs_of(guilty, job, tuple(SignKind))
    return Diagnosis(
        cause=cause,
        certainty=certainty,
        processes=tuple(guilty[:MAX_PROCESSES]),
        group=held.table.group if held else None,
        number=held.number if held else None,
        request=_request(held.table, held.number) if held else "",
        source=held.table.source if held else "",
        num_waiting=len(_reaching(chosen, merged)),
        edges=tuple(edges[:MAX_EDGES]),
        evidence=(*signs, *(_behind(process, waits, job) for process in guilty[:8] if held)),
        alternatives=tuple(alternatives)[:8],
    )


def _reaching(guilty: set[int], merged: Mapping[int, Wait]) -> set[int]:
    """Return the processes whose waits end at some processes."""
    waiters: dict[int, list[int]] = {}
    for process, wait in merged.items():
        for blocker in wait.blockers:
            waiters.setdefault(blocker, []).append(process)
    found: set[int] = set()
    open_processes = list(guilty)
    while open_processes:
        new = [one for one in waiters.get(open_processes.pop(), ()) if one not in found and one not in guilty]
        found.update(new)
        open_processes += new
    return found


def _edges(waits: Sequence[GroupWait]) -> Iterator[Edge]:
    for wait in waits:
        for blocker in wait.blockers:
            yield Edge(
                waiter=wait.process,
                blocker=blocker,
                group=wait.table.group,
                number=wait.number,
                source=wait.table.source,
            )


def _behind(process: int, waits: Sequence[GroupWait], job: Job) -> str:
    """Return a sentence on the request that a process holds up."""
    wait = next((wait for wait in waits if process in wait.blockers), None)
    if wait is None:
        return f"{job.processes[process]} waits for nobody"
    row = wait.table.rows.get(process)
    number = f"number {wait.number} of {job.groups[wait.table.group]}"
    waiters = len({other.process for other in waits if process in other.blockers and other.table is wait.table})
    if row is None or row.issued is None:
        return f"{job.processes[process]} has nothing of {number} in {wait.table.source}; {waiters} wait for it"
    return (
        f"{job.processes[process]} has issued up to {row.issued}, and {count(waiters, 'member')} "
        f"{'waits' if waiters == 1 else 'wait'} for {number} ({wait.table.source}, {row.where})"
    )


def _signs_of(processes: Iterable[int], job: Job, kinds: tuple[SignKind, ...]) -> list[str]:
    return [
        f"{job.processes[process]}: {sign.text} ({sign.where})"
        for process in list(processes)[:8]
        for sign in job.signs.get(process, ())
        if sign.kind in kinds
    ]


def _request(table: Table, number: int) -> str:
    """Return what a request is, as most of the members that have it say."""
    known = Counter(str(row.requests[number]) for row in table.rows.values() if number in row.requests)
    return known.most_common(1)[0][0] if known else ""


def describe_processes(diagnosis: Diagnosis, job: Job) -> str:
    """Return the guilty processes for people."""
    return some(str(job.processes[process]) for process in diagnosis.processes)
