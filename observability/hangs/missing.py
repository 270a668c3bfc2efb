"""Processes that have not issued what others wait for, and are not seen to wait themselves.

Which of several it is, is said by an error, by a source that saw them without an open request, or by stacks. A process
of which a source that has others has nothing may wait for what only that source numbers: the diagnosis says so.
"""

from collections import Counter
from collections.abc import Sequence

from fabrictune.observability.hangs.blame import blame_waited_for
from fabrictune.observability.hangs.diagnosis import Cause, Certainty, Diagnosis
from fabrictune.observability.hangs.evidence import UNKNOWN, SignKind
from fabrictune.observability.hangs.graph import WaitGraph
from fabrictune.observability.hangs.job import Job
from fabrictune.observability.hangs.own_causes import own_cause
from fabrictune.observability.hangs.stacks import Place, place_of
from fabrictune.observability.hangs.waits import GroupWait

MAX_OTHERS = 4  # processes that may be missing too, by name


def diagnose_missing(graph: WaitGraph) -> Diagnosis | None:
    """Return the diagnosis of the ends of waits of which no source says anything."""
    ends, job, waits = graph.ends, graph.job, graph.waits
    if not ends:
        return None
    failed = [end for end in ends if job.has(end, SignKind.FAILED)]
    alive = [end for end in ends if job.has(end, SignKind.ALIVE)]
    guilty = failed or alive or _by_stacks(ends, job)
    reached = Counter(blocker for wait in waits for blocker in wait.blockers if blocker in guilty)
    first = max(guilty, key=lambda end: (reached[end], -end))
    held = _held(first, waits)
    together = [end for end in guilty if end == first or _held(end, waits) == held]
    others = [end for end in ends if end not in together]
    cause = Cause.FAILED if failed else Cause.MISSING
    silent = all(wait.is_silent for wait in waits if first in wait.blockers)
    certainty = Certainty.POSSIBLE if silent or len(others) > len(together) else Certainty.LIKELY
    alternatives = [f"{job.processes[end]}: {Cause.MISSING.value}" for end in others[:MAX_OTHERS]]
    apart = [one for one in job.signs if job.processes[one].rank == UNKNOWN != job.processes[first].rank]
    alternatives += [
        f"perhaps {job.processes[one]}, whose rank no source says: {known.value}"
        for one in apart
        if (known := own_cause(one, job))
    ][:4]
    if cause is Cause.MISSING:
        alternatives += _not_collected(first, job)
        if not job.has(first, SignKind.STACK):
            alternatives.append("what it does instead is not in the evidence: take its stack with py-spy")
    return blame_waited_for(graph, cause, certainty, tuple(together), alternatives)


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


def _not_collected(process: int, job: Job) -> list[str]:
    """Return a sentence for each source that numbers requests of other processes and has nothing of this one."""
    return [
        f"{source} has nothing of {job.processes[process]}: a request that it waits for may not have been collected"
        for source in job.sources_without(process)
    ]
