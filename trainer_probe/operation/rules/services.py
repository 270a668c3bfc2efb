"""Processes that ranks rely on: the loader of a node, and the store.

A service that is dead or stopped is seen by its own process. Errors of ranks name one too, once all nodes have
reported since: the end of a rank that served others gives the same errors.
"""

from fabrictune.trainer_probe.operation.decisions import Cause, Diagnosis
from fabrictune.trainer_probe.operation.observations import RankStatus, ServiceStatus
from fabrictune.trainer_probe.operation.rules.deaths import STOPPED_STATES, error_kind, has_failed
from fabrictune.trainer_probe.operation.rules.view import View, seconds


def find_dead_service(view: View) -> Diagnosis | None:
    """Return the diagnosis of a loader or store whose process ended or stands stopped."""
    for node in view.nodes:
        for service in node.heartbeat.services if node.heartbeat is not None else ():
            if reason := _reason(service, view):
                return _diagnosis(view, service.name, node.node, (reason,), service.state_s)
    return None


def find_service_error(view: View) -> Diagnosis | None:
    """Return the diagnosis of a loader or store that ranks could not use."""
    failed = [
        status
        for status in view.ranks.values()
        if has_failed(status) and error_kind(status) in ("loader", "store") and view.has_settled(status)
    ]
    if not failed:
        return None
    first = max(failed, key=lambda status: (view.since_s(status), -status.rank))
    kind = error_kind(first)
    evidence = tuple(
        f"rank {status.rank} failed in step {status.step}: {status.error}"
        for status in failed
        if error_kind(status) == kind
    )
    return _diagnosis(view, kind, view.node_of(first.rank), evidence, view.since_s(first), first)


def service_cause(name: str) -> Cause:
    """Return the cause of a service's fault."""
    return "loader failed" if name == "loader" else "store lost"


def service_entity(name: str, node: str) -> str:
    """Return how a service is named: a node has one loader, a job one store."""
    return f"loader {node}" if name == "loader" else "store"


def _reason(service: ServiceStatus, view: View) -> str:
    if service.process_state in ("", "Z", "X"):
        if service.exit_code == 0 or service.state_s < view.settings.settle_s:
            return ""  # it ended as it should, or perhaps with a rank whose end is not known yet
        code = "" if service.exit_code is None else f" with exit code {service.exit_code}"
        return f"the {service.name}, process {service.pid}, has ended{code}"
    if service.process_state in STOPPED_STATES and service.state_s >= view.limits.stopped_s:
        return (
            f"the {service.name}, process {service.pid}, is in state {service.process_state} for "
            f"{seconds(service.state_s)}, with a limit of {seconds(view.limits.stopped_s)}"
        )
    return ""


def _diagnosis(
    view: View,
    name: str,
    node: str,
    evidence: tuple[str, ...],
    quiet_s: float,
    first: RankStatus | None = None,
) -> Diagnosis:
    return Diagnosis(
        cause=service_cause(name),
        entity=service_entity(name, node),
        nodes=(node,),
        evidence=evidence,
        quiet_s=quiet_s,
        is_fatal=True,
        step=first.step if first else max((status.step for status in view.ranks.values()), default=-1),
        error=first.error if first else "",
    )
