"""From the evidence of a job to the process that the others wait for.

Each kind of hang has its module. They are asked in this order, the surest first, and the first that knows an answer
gives it.
"""

from fabrictune.observability.hangs.circles import diagnose_circle
from fabrictune.observability.hangs.completions import diagnose_earliest, diagnose_lacking
from fabrictune.observability.hangs.diagnosis import Diagnosis
from fabrictune.observability.hangs.graph import make_graph
from fabrictune.observability.hangs.incomplete import diagnose_incomplete, diagnose_partial
from fabrictune.observability.hangs.job import Job
from fabrictune.observability.hangs.known import diagnose_known, diagnose_signs
from fabrictune.observability.hangs.mismatches import diagnose_mismatch
from fabrictune.observability.hangs.missing import diagnose_missing
from fabrictune.observability.hangs.slow import diagnose_slow


def diagnose(job: Job) -> Diagnosis | None:
    """Return who keeps a job from going on, None where nothing in the evidence stands still."""
    graph = make_graph(job)
    return (
        diagnose_known(graph)
        or diagnose_mismatch(job, num_waiting=len(graph.merged))
        or diagnose_partial(graph)
        or diagnose_missing(graph)
        or diagnose_incomplete(graph)
        or diagnose_circle(graph)
        or diagnose_signs(job)
        or diagnose_lacking(job)
        or diagnose_slow(job)
        or diagnose_earliest(job)
    )
