"""Ranks that ended or stand still: killed, failed with an error of their own, or stopped.

What killed a rank beats what its death did to others. Errors that another's fault may have caused count only when every
node has reported since, so that the cause would be known.
"""

import re
import signal
from dataclasses import replace

from fabrictune.trainer_probe.operation.decisions import Cause, Diagnosis
from fabrictune.trainer_probe.operation.observations import RankStatus
from fabrictune.trainer_probe.operation.rules.error_signs import Kind, kind_of_error
from fabrictune.trainer_probe.operation.rules.log_signs import names_killed_process, read_signs
from fabrictune.trainer_probe.operation.rules.view import View, seconds

STOPPED_STATES = ("T", "t")
_CAUSES: dict[Kind, Cause] = {
    "data": "data damaged",
    "checkpoint": "checkpoint damaged",
    "storage full": "storage full",
    "loader": "loader failed",
    "store": "store lost",
}


def find_killed_rank(view: View) -> Diagnosis | None:
    """Return the diagnosis of ranks that a signal ended, the first of them named."""
    killed = [status for status in view.ranks.values() if _is_killed(status)]
    if not killed:
        return None
    first = max(killed, key=lambda status: (view.since_s(status), -status.rank))
    number = -(first.exit_code or 0)
    evidence = [f"rank {status.rank} was ended by signal {_name(-(status.exit_code or 0))}" for status in killed]
    if names_killed_process(view.log_lines(view.node_of(first.rank)), first.pid):
        evidence.append(f"the kernel of node {view.node_of(first.rank)} killed process {first.pid} for lack of memory")
    return _diagnosis(view, "rank killed", killed, first, evidence, error=first.error or f"signal {_name(number)}")


def find_failed_rank(view: View) -> Diagnosis | None:
    """Return the diagnosis of ranks that failed by themselves, the first of them named."""
    failed = [
        status
        for status in view.ranks.values()
        if has_failed(status) and error_kind(status) not in ("peers", "loader", "store") and view.has_settled(status)
    ]
    if not failed:
        return None
    first = max(failed, key=lambda status: (view.since_s(status), -status.rank))
    kind = error_kind(first)
    evidence = [f"rank {status.rank} failed in step {status.step}: {_error(status)}" for status in failed]
    diagnosis = _diagnosis(view, _CAUSES.get(kind, "rank failed"), failed, first, evidence, error=_error(first))
    if kind == "data":
        return replace(diagnosis, entity=f"data {_place(first.error)}")
    if kind == "checkpoint":
        step = _step_of_checkpoint(first.error)
        return replace(diagnosis, entity=f"checkpoint step {step}" if step >= 0 else "checkpoint", step=step)
    return diagnosis


def find_stopped_rank(view: View) -> Diagnosis | None:
    """Return the diagnosis of ranks that a signal or a debugger stopped, the one that stands longest named.

    A rank that is stopped and continued in turns is slow: its page changes, its processor's time grows, or, where it
    waits for others, it was not in this state all the while.
    """
    limit_s = view.limits.stopped_s
    stopped = [
        status
        for status in view.ranks.values()
        if status.process_state in STOPPED_STATES
        and status.quiet_s >= limit_s
        and (status.idle_s is None or status.idle_s >= limit_s)
        and (status.state_s is None or status.state_s >= limit_s)
    ]
    if not stopped:
        return None
    first = max(stopped, key=lambda status: (status.quiet_s if status.idle_s is None else status.idle_s, -status.rank))
    evidence = [
        f"rank {status.rank} is in state {status.process_state}, its page unchanged for {seconds(status.quiet_s)}, "
        f"with a limit of {seconds(limit_s)}"
        for status in stopped
    ]
    return _diagnosis(view, "rank stopped", stopped, first, evidence)


def has_failed(status: RankStatus) -> bool:
    """Return whether a rank ended by itself before the job did, or says that it has failed."""
    if status.section == "done" or _is_killed(status):
        return False
    return status.section == "failed" or status.exit_code is not None or status.process_state == ""


def error_kind(status: RankStatus) -> Kind:
    """Return what a rank's error is a sign of."""
    return kind_of_error(status.error, is_waiting=status.waits_for is not None)


def _is_killed(status: RankStatus) -> bool:
    """Return whether a signal ended a rank; an abort of a library that missed its peers is theirs."""
    if status.exit_code is None or status.exit_code >= 0:
        return False
    return status.exit_code != -signal.SIGABRT or error_kind(status) != "peers"


def _error(status: RankStatus) -> str:
    if status.error:
        return status.error
    return "its process is gone" if status.exit_code is None else f"exit code {status.exit_code} without an error"


def _place(error: str) -> str:
    """Return where a mistake is, which its text begins with."""
    return error.partition(": ")[2].partition(": ")[0]


def _step_of_checkpoint(error: str) -> int:
    """Return the step of the checkpoint that an error names by its folder, -1 where it names none."""
    named = re.search(r"\bstep-(\d+)", error)
    return int(named[1]) if named else -1


def _name(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)


def _diagnosis(
    view: View,
    cause: Cause,
    guilty: list[RankStatus],
    first: RankStatus,
    evidence: list[str],
    *,
    error: str = "",
) -> Diagnosis:
    nodes = tuple(dict.fromkeys(view.node_of(status.rank) for status in [first, *guilty]))
    signs = [(node, *sign) for node in nodes for sign in read_signs(view.log_lines(node))]
    return Diagnosis(
        cause=cause,
        entity=f"rank {first.rank}",
        ranks=(first.rank, *(status.rank for status in guilty if status is not first)),
        nodes=nodes,
        evidence=(*evidence, *(f"node {node}: {sign.meaning}: {line}" for node, sign, line in signs)),
        quiet_s=view.since_s(first),
        is_fatal=True,
        step=first.step,
        error=error,
        is_hardware=any(sign.is_hardware for _, sign, _ in signs),
    )
