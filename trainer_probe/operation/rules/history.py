"""A job's history as the decisions need it, read from its journal.

Progress is a newer checkpoint; in a job that has saved none, a later step. What was decided before the last progress
does not count against a restart.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabrictune.trainer_probe.operation.decisions import Decision, Diagnosis
from fabrictune.trainer_probe.operation.events import Event

RESTARTS = ("restart", "replace", "replay elsewhere")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault that was detected before."""

    number: int  # of its event
    elapsed_s: float
    generation: int
    cause: str
    entity: str
    nodes: tuple[str, ...]
    step: int
    error: str
    is_fatal: bool


@dataclass(frozen=True, kw_only=True)
class History:
    """What a job has been through, without the fault that is decided now."""

    elapsed_s: float  # of the last event
    faults: tuple[Fault, ...]
    restarts_without_progress: int
    nodes: Mapping[int, tuple[str, ...]]  # by generation
    losses: Mapping[int, Mapping[int, float]]  # by generation and step
    refused: frozenset[str]  # nodes that did not pass their last check

    @property
    def generation(self) -> int:
        """The last generation that was started, 0 where none was."""
        return max(self.nodes, default=0)


def read_history(events: Sequence[Event], diagnosis: Diagnosis | None = None) -> History:
    """Return the history of a job; the diagnosis that is decided now is left out of it if it was recorded already."""
    decided = max((event.number for event in events if event.kind == "decision"), default=-1)
    faults = tuple(_fault(event) for event in events if event.kind == "fault detected")
    nodes: dict[int, tuple[str, ...]] = {}
    losses: dict[int, dict[int, float]] = {}
    refused: set[str] = set()
    for event in events:
        values = event.values
        match event.kind:
            case "generation started":
                nodes[values["generation"]] = tuple(values.get("nodes") or ())
            case "step":
                losses.setdefault(values["generation"], {})[values["step"]] = read_loss(values.get("loss"))
            case "node refused":
                refused.add(values["node"])
            case "node joined":
                refused.discard(values["node"])
    return History(
        elapsed_s=max((event.elapsed_s for event in events), default=0.0),
        faults=tuple(fault for fault in faults if fault.number < decided or not _is_same(fault, diagnosis)),
        restarts_without_progress=_count_restarts(events),
        nodes=nodes,
        losses=losses,
        refused=frozenset(refused),
    )


def read_loss(value: object) -> float:
    """Return a loss from JSON, where one that is not finite is null or text."""
    if isinstance(value, str):
        return {"inf": math.inf, "Infinity": math.inf, "-inf": -math.inf, "-Infinity": -math.inf}.get(value, math.nan)
    return float(value) if isinstance(value, int | float) else math.nan


def fault_values(diagnosis: Diagnosis, generation: int) -> dict[str, Any]:
    """Return the values of the event "fault detected"."""
    return {
        "generation": generation,
        "cause": diagnosis.cause,
        "entity": diagnosis.entity,
        "ranks": list(diagnosis.ranks),
        "nodes": list(diagnosis.nodes),
        "evidence": list(diagnosis.evidence),
        "quiet_s": diagnosis.quiet_s,
        "is_fatal": diagnosis.is_fatal,
        "step": diagnosis.step,
        "error": diagnosis.error,
        "is_hardware": diagnosis.is_hardware,
    }


def decision_values(decision: Decision, generation: int) -> dict[str, Any]:
    """Return the values of the event "decision"."""
    return {
        "generation": generation,
        "action": decision.action,
        "reason": decision.reason,
        "evicted": list(decision.evicted),
        "avoided": list(decision.avoided),
        "before_step": decision.before_step,
        "wait_s": decision.wait_s,
    }


def _fault(event: Event) -> Fault:
    values = event.values
    return Fault(
        number=event.number,
        elapsed_s=event.elapsed_s,
        generation=values["generation"],
        cause=values["cause"],
        entity=values["entity"],
        nodes=tuple(values.get("nodes") or ()),
        step=values.get("step", -1),
        error=values.get("error", ""),
        is_fatal=values.get("is_fatal", True),
    )


def _is_same(fault: Fault, diagnosis: Diagnosis | None) -> bool:
    return diagnosis is not None and (fault.cause, fault.entity) == (diagnosis.cause, diagnosis.entity)


def _count_restarts(events: Sequence[Event]) -> int:
    """Return the restarts since the last progress."""
    progress = "saved" if any(event.kind == "saved" for event in events) else "step"
    best, count = -1, 0
    for event in events:
        if event.kind == progress and event.values["step"] > best:
            best, count = event.values["step"], 0
        elif event.kind == "decision" and event.values["action"] in RESTARTS:
            count += 1
    return count
