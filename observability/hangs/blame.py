"""A diagnosis of processes that others wait for: the request that they hold up, the edges, and sentences on both."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from fabrictune.foundation.wording import count, some
from fabrictune.observability.hangs.diagnosis import Cause, Certainty, Diagnosis, Edge
from fabrictune.observability.hangs.evidence import SignKind
from fabrictune.observability.hangs.graph import WaitGraph
from fabrictune.observability.hangs.job import Job, Table
from fabrictune.observability.hangs.waits import GroupWait

MAX_PROCESSES = 64  # that a diagnosis names
MAX_EDGES = 64


def blame_waited_for(
    graph: WaitGraph, cause: Cause, certainty: Certainty, guilty: Sequence[int], alternatives: Iterable[str]
) -> Diagnosis:
    """Return the diagnosis of processes that others wait for, with the request that they hold up."""
    waits, job = graph.waits, graph.job
    held = next((wait for wait in waits if set(guilty) & set(wait.blockers)), None)
    chosen = set(guilty)
    edges = [edge for edge in edges_of(waits) if edge.blocker in chosen]
    signs = signs_of(guilty, job, tuple(SignKind))
    return Diagnosis(
        cause=cause,
        certainty=certainty,
        processes=tuple(guilty[:MAX_PROCESSES]),
        group=held.table.group if held else None,
        number=held.number if held else None,
        request=request_at(held.table, held.number) if held else "",
        source=held.table.source if held else "",
        num_waiting=len(graph.reaching(chosen)),
        edges=tuple(edges[:MAX_EDGES]),
        evidence=(*signs, *(_behind(process, waits, job) for process in guilty[:8] if held)),
        alternatives=tuple(alternatives)[:8],
    )


def edges_of(waits: Sequence[GroupWait]) -> Iterator[Edge]:
    """Yield who waits for whom."""
    for wait in waits:
        for blocker in wait.blockers:
            yield Edge(
                waiter=wait.process,
                blocker=blocker,
                group=wait.table.group,
                number=wait.number,
                source=wait.table.source,
            )


def signs_of(processes: Iterable[int], job: Job, kinds: tuple[SignKind, ...]) -> list[str]:
    """Return the signs of processes for people, those of some kinds."""
    return [
        f"{job.processes[process]}: {sign.text} ({sign.where})"
        for process in list(processes)[:8]
        for sign in job.signs.get(process, ())
        if sign.kind in kinds
    ]


def request_at(table: Table, number: int) -> str:
    """Return what a request is, as most of the members that have it say."""
    known = Counter(str(row.requests[number]) for row in table.rows.values() if number in row.requests)
    return known.most_common(1)[0][0] if known else ""


def describe_processes(diagnosis: Diagnosis, job: Job) -> str:
    """Return the guilty processes for people."""
    return some(str(job.processes[process]) for process in diagnosis.processes)


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
