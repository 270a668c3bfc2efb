"""From a diagnosis and a job's history to what is done about it.

The first rule that has an answer decides. Nothing is done about what does not end a generation. A job is stopped where
another attempt cannot help: damaged data, the same error at the same step on other nodes, or too many restarts without
progress. Else its ranks start again: on the same nodes at a node's first fault, without the node when it fails too
often or a device is named, provided that there is a spare.

Source: MegaScale (NSDI'24), 4; ByteRobust (SOSP'25), 4.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fabrictune.trainer_probe.operation.decisions import Decision, Diagnosis
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.operation.observations import NodeView
from fabrictune.trainer_probe.operation.rules.error_signs import signature
from fabrictune.trainer_probe.operation.rules.history import Fault, History, read_history
from fabrictune.trainer_probe.operation.rules.replay import decide_replay
from fabrictune.trainer_probe.operation.rules.settings import RuleSettings
from fabrictune.trainer_probe.operation.rules.view import seconds

REPEATABLE = ("rank failed", "deadlock", "loader failed")  # errors that code and data give
OWN_SIGNALS = ("SIGSEGV", "SIGILL", "SIGFPE", "SIGBUS", "SIGABRT")  # a process's own doing, as a rule


@dataclass(frozen=True, kw_only=True)
class _Case:
    """A diagnosis with all that is known when it is decided."""

    diagnosis: Diagnosis
    history: History
    spares: tuple[str, ...]
    settings: RuleSettings

    @property
    def wait_s(self) -> float:
        """Time before the next start: none before the first restart, then twice as long each time, up to a limit."""
        count = self.history.restarts_without_progress
        if count == 0:
            return 0.0
        return min(self.settings.backoff_limit_s, self.settings.backoff_s * 2.0 ** min(count - 1, 60))


def decide(
    diagnosis: Diagnosis, events: Sequence[Event], nodes: Sequence[NodeView], settings: RuleSettings
) -> Decision:
    """Return what to do about a diagnosis; `events` may end with the diagnosis itself."""
    history = read_history(events, diagnosis)
    case = _Case(diagnosis=diagnosis, history=history, spares=_spares(nodes, history, settings), settings=settings)
    return next(decision for rule in RULES if (decision := rule(case)) is not None)


def _go_on(case: _Case) -> Decision | None:
    if case.diagnosis.is_fatal:
        return None
    return Decision(action="go on", reason=f"{_what(case.diagnosis)} does not end the generation")


def _stop_for_data(case: _Case) -> Decision | None:
    if case.diagnosis.cause != "data damaged":
        return None
    return Decision(action="stop", reason=f"{_what(case.diagnosis)}: no other node reads them whole")


def _stop_without_progress(case: _Case) -> Decision | None:
    count, limit = case.history.restarts_without_progress, case.settings.restart_limit
    if count < limit:
        return None
    return Decision(
        action="stop",
        reason=f"{_what(case.diagnosis)} after {count} restarts without progress, with a limit of {limit}",
    )


def _end_crash_loop(case: _Case) -> Decision | None:
    """Try the same error at the same step on another node, and stop when it comes there too."""
    diagnosis = case.diagnosis
    if not _is_repeatable(diagnosis):
        return None
    same = [fault for fault in case.history.faults if _is_same_error(fault, diagnosis)]
    if not same:
        return None
    elsewhere = [fault for fault in same if fault.nodes and not set(fault.nodes) & set(diagnosis.nodes)]
    what = f"{signature(diagnosis.error)!r} at step {diagnosis.step}"
    if elsewhere:
        return Decision(
            action="stop",
            reason=f"code or data: {what} on node {', '.join(diagnosis.nodes)}, and before on node "
            f"{', '.join(elsewhere[-1].nodes)} in generation {elsewhere[-1].generation}",
        )
    if len(same) + 1 >= case.settings.same_error_limit:
        return Decision(
            action="stop",
            reason=f"code or data: {what} for the {_ordinal(len(same) + 1)} time, with no other node to try "
            f"and a limit of {case.settings.same_error_limit}",
        )
    return Decision(
        action="replay elsewhere",
        reason=f"{what} for the {_ordinal(len(same) + 1)} time on node {', '.join(diagnosis.nodes)}",
        avoided=diagnosis.nodes,
        wait_s=case.wait_s,
    )


def _replay(case: _Case) -> Decision | None:
    return decide_replay(case.diagnosis, case.history, case.wait_s)


def _leave_checkpoint(case: _Case) -> Decision | None:
    if case.diagnosis.cause != "checkpoint damaged":
        return None
    step = case.diagnosis.step
    return Decision(
        action="restart",
        reason=f"{_what(case.diagnosis)}: the one before it is used",
        before_step=step if step >= 0 else None,
        wait_s=case.wait_s,
    )


def _replace_node(case: _Case) -> Decision | None:
    """Leave out the guilty node for a device's fault, and for too many faults within the window.

    An end of a link that was cut is left out at once where there is a spare: ranks that cannot reach each other notice
    it only when their start takes too long.
    """
    diagnosis = case.diagnosis
    if not diagnosis.nodes or diagnosis.cause == "store lost":
        return None
    node, count = _worst_node(case)
    window = f"{count} faults within {seconds(case.settings.window_s)}"
    is_lost = diagnosis.is_hardware or diagnosis.cause == "node lost"
    is_cut = diagnosis.cause == "link cut" and (count > 1 or (bool(case.spares) and len(diagnosis.nodes) > 1))
    if not (is_lost or is_cut or count >= case.settings.node_faults):
        return None
    reason = f"{_what(diagnosis)}; node {node} has {window}" + (", and its evidence names a device" if is_lost else "")
    if case.spares:
        return Decision(
            action="replace",
            reason=f"{reason}; spare {case.spares[0]} takes its place",
            evicted=(node,),
            wait_s=case.wait_s,
        )
    if node in case.history.refused:
        return Decision(action="stop", reason=f"{reason}, did not pass its self-check, and there is no spare")
    return Decision(
        action="restart",
        reason=f"{reason}; without a spare it starts again if it passes its self-check",
        wait_s=case.wait_s,
    )


def _restart(case: _Case) -> Decision:
    count = case.history.restarts_without_progress
    return Decision(
        action="restart",
        reason=f"{_what(case.diagnosis)}; restart number {count + 1} since the last progress, "
        f"with a limit of {case.settings.restart_limit}",
        wait_s=case.wait_s,
    )


Rule = Callable[[_Case], Decision | None]

# The first with an answer decides.
RULES: tuple[Rule, ...] = (
    _go_on,
    _stop_for_data,
    _end_crash_loop,
    _stop_without_progress,
    _replay,
    _leave_checkpoint,
    _replace_node,
    _restart,
)


def _spares(nodes: Sequence[NodeView], history: History, settings: RuleSettings) -> tuple[str, ...]:
    """Return the nodes that are ready to take another's place: they had no part in the last generation."""
    used = history.nodes.get(history.generation, ())
    return tuple(
        sorted(
            view.node
            for view in nodes
            if view.heartbeat is not None
            and view.heartbeat.state == "ready"
            and view.node not in used
            and not view.has_ended
            and view.age_s <= settings.heartbeat_limit_s
        )
    )


def _is_repeatable(diagnosis: Diagnosis) -> bool:
    if diagnosis.step < 0 or not diagnosis.error:
        return False
    return diagnosis.cause in REPEATABLE or (
        diagnosis.cause == "rank killed" and any(name in diagnosis.error for name in OWN_SIGNALS)
    )


def _is_same_error(fault: Fault, diagnosis: Diagnosis) -> bool:
    return (
        fault.is_fatal
        and fault.cause == diagnosis.cause
        and fault.step == diagnosis.step
        and signature(fault.error) == signature(diagnosis.error)
    )


def _worst_node(case: _Case) -> tuple[str, int]:
    """Return the guilty node with the most faults within the window, this one included, and their number."""
    since_s = case.history.elapsed_s - case.settings.window_s
    recent = [fault for fault in case.history.faults if fault.is_fatal and fault.elapsed_s >= since_s]
    counts = {node: 1 + sum(node in fault.nodes[:2] for fault in recent) for node in case.diagnosis.nodes[:2]}
    suspects = counts if case.diagnosis.cause == "link cut" else dict(list(counts.items())[:1])
    worst = max(suspects, key=lambda node: suspects[node])
    return worst, suspects[worst]


def _what(diagnosis: Diagnosis) -> str:
    step = f" at step {diagnosis.step}" if diagnosis.step >= 0 and not diagnosis.entity.startswith("step") else ""
    return f"{diagnosis.cause} ({diagnosis.entity}){step}"


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
