"""Nodes without a heartbeat: their executor is gone, or the node is.

The backend knows for certain that an executor has ended. Else a node is silent once its last heartbeat is older than
the limit. Where all nodes fall silent at once the driver itself may have been late, and they get twice as long. A node
that other nodes do not reach either is lost; one that nobody misses has lost its executor.
"""

from fabrictune.trainer_probe.operation.decisions import Diagnosis
from fabrictune.trainer_probe.operation.observations import NodeView
from fabrictune.trainer_probe.operation.rules.log_signs import read_signs
from fabrictune.trainer_probe.operation.rules.view import View, seconds


def find_lost_node(view: View) -> Diagnosis | None:
    """Return the diagnosis of the node that ended or has been silent for longest, None where all report."""
    lost = [node for node in view.nodes if not _has_finished(node, view) and (node.has_ended or _is_silent(node, view))]
    if not lost:
        return None
    first = max(lost, key=lambda node: (node.has_ended, node.age_s))
    watchers = tuple(
        other.node
        for other in view.nodes
        if other not in lost and other.heartbeat is not None and first.node in other.heartbeat.unreachable
    )
    signs = read_signs(view.log_lines(first.node))
    return Diagnosis(
        cause="node lost" if watchers else "executor lost",
        entity=f"node {first.node}",
        ranks=tuple(rank for rank, node in sorted(view.snapshot.node_of_rank.items()) if node == first.node),
        nodes=tuple(node.node for node in sorted(lost, key=lambda node: node is not first)),
        evidence=(
            *(_describe(node, view) for node in lost),
            *([f"not reached by {', '.join(watchers)}"] if watchers else []),
            *(f"{sign.meaning}: {line}" for sign, line in signs),
        ),
        quiet_s=first.age_s,
        is_fatal=True,
        is_hardware=bool(watchers) or any(sign.is_hardware for sign, _ in signs),
    )


def _is_silent(node: NodeView, view: View) -> bool:
    if node.heartbeat is None:
        return node.age_s > view.limits.start_s
    limit_s = view.settings.heartbeat_limit_s
    if len(view.nodes) > 1 and all(other.age_s > limit_s for other in view.nodes):
        limit_s *= 2
    return node.age_s > limit_s


def _has_finished(node: NodeView, view: View) -> bool:
    statuses = [status for status in view.ranks.values() if view.node_of(status.rank) == node.node]
    return bool(statuses) and all(status.section == "done" for status in statuses)


def _describe(node: NodeView, view: View) -> str:
    if node.has_ended:
        return f"the executor of node {node.node} has ended"
    if node.heartbeat is None:
        return f"node {node.node} has not reported since it was asked to start {seconds(node.age_s)} ago"
    return (
        f"no heartbeat of node {node.node} for {seconds(node.age_s)}, "
        f"with a limit of {seconds(view.settings.heartbeat_limit_s)}"
    )
