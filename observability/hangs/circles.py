"""Processes that wait for one another in a circle, and the one of them that has left out a request."""

from dataclasses import replace

from fabrictune.foundation.waits import find_circle
from fabrictune.foundation.wording import some
from fabrictune.observability.hangs.blame import MAX_EDGES, blame_waited_for, edges_of
from fabrictune.observability.hangs.diagnosis import Cause, Certainty, Diagnosis
from fabrictune.observability.hangs.graph import WaitGraph
from fabrictune.observability.hangs.orders import find_out_of_order


def diagnose_circle(graph: WaitGraph) -> Diagnosis | None:
    """Return the diagnosis of processes that wait for one another, None where none do."""
    circle = find_circle(graph.merged)
    if not circle:
        return None
    odd = find_out_of_order(circle, graph.job)
    cause, guilty = (Cause.DEADLOCK, circle) if odd is None else (Cause.SKIPPED, (odd,))
    found = blame_waited_for(graph, cause, Certainty.POSSIBLE, guilty, ())
    edges = [edge for edge in edges_of(graph.waits) if edge.waiter in circle and edge.blocker in circle]
    ranks = some(str(graph.job.processes[process]) for process in circle)
    text = f"{ranks} wait for one another; one may stand elsewhere with a request open: stacks would tell"
    return replace(found, edges=tuple(edges[:MAX_EDGES]), alternatives=(text,))
