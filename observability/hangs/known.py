"""Processes to blame by what a source says of themselves: gone, stopped, in a loader, a checkpoint, a collection."""

from fabrictune.observability.hangs.blame import MAX_PROCESSES, blame_waited_for, signs_of
from fabrictune.observability.hangs.diagnosis import Cause, Certainty, Diagnosis
from fabrictune.observability.hangs.evidence import SignKind
from fabrictune.observability.hangs.graph import WaitGraph
from fabrictune.observability.hangs.job import Job
from fabrictune.observability.hangs.own_causes import own_cause, surest


def diagnose_known(graph: WaitGraph) -> Diagnosis | None:
    """Return the diagnosis of the ends of waits that a source says something of."""
    job = graph.job
    causes = {end: cause for end in graph.ends if (cause := own_cause(end, job))}
    if not causes:
        return None
    first, guilty = surest(causes)
    others = [end for end in graph.ends if end not in guilty]
    alternatives = [f"{job.processes[end]}: {causes.get(end, Cause.MISSING).value}" for end in others]
    is_own = first in (Cause.GONE, Cause.STOPPED)
    certainty = Certainty.CERTAIN if is_own or not others else Certainty.LIKELY
    return blame_waited_for(graph, first, certainty, guilty, alternatives)


def diagnose_signs(job: Job) -> Diagnosis | None:
    """Return the diagnosis of processes that are known to be gone, stopped or stuck, without anyone seen to wait."""
    causes = {process: cause for process in job.signs if (cause := own_cause(process, job))}
    if not causes:
        return None
    first, guilty = surest(causes)
    rest = [f"{job.processes[one]}: {cause.value}" for one, cause in causes.items() if cause != first]
    alone = len(guilty) < max(2, len(job.processes))
    return Diagnosis(
        cause=first,
        certainty=Certainty.LIKELY if alone else Certainty.POSSIBLE,
        processes=guilty[:MAX_PROCESSES],
        evidence=tuple(signs_of(guilty, job, tuple(SignKind))),
        alternatives=(*rest[:8], "no source says who waits for whom"),
    )
