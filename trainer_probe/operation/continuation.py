"""Where a job is, read from its journal: all that a driver that is started again needs to go on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from fabrictune.trainer_probe.operation.decisions import Diagnosis
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.operation.tasks import JobTask

ROLL_BACK: Literal["roll back"] = "roll back"


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """The state of a job by its journal; without events that of a new one."""

    settings: Mapping[str, Any] | None = None  # as the job was started; None for a new one
    generation: int = 0
    nodes: tuple[str, ...] = ()  # of the generation
    task: JobTask | None = None
    next_task: JobTask | None = None  # that was asked for since
    before_change: JobTask | None = None  # to go back to until the changed one has saved a checkpoint
    is_open: bool = False  # its ranks may run
    diagnosis: Diagnosis | None = None  # for which it is ended
    is_deciding: bool = False  # it has ended, and what to do is open
    evicted: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()
    before_step: int | None = None
    wait_s: float = 0.0
    names: tuple[str, ...] = ()  # of all nodes there ever were
    outcome: str = ""
    num_starts: int = 0  # of drivers

    def after(self, event: Event) -> "Continuation":
        """Return the state after one more event."""
        values = event.values
        match event.kind:
            case "job started":
                return replace(self, settings=values["settings"])
            case "driver started":
                return replace(self, num_starts=self.num_starts + 1, outcome="")
            case "node joined" if values["node"] not in self.names:
                return replace(self, names=(*self.names, values["node"]))
            case "node evicted":
                return replace(self, evicted=(*self.evicted, values["node"]))
            case "generation started":
                return replace(
                    self,
                    generation=values["generation"],
                    nodes=tuple(values["nodes"]),
                    task=JobTask.of_values(values["task"]),
                    next_task=None,
                    before_change=_task_of(values.get("before_change")),
                    is_open=True,
                    diagnosis=None,
                    before_step=None,
                    wait_s=0.0,
                )
            case "change asked":
                return replace(self, next_task=_task_of(values["task"]))
            case "saved" if values["generation"] == self.generation:
                return replace(self, before_change=None)
            case "fault detected" if values["is_fatal"]:
                return replace(self, diagnosis=_diagnosis_of(values))
            case "ranks down":
                return replace(self, is_open=False, is_deciding=self.diagnosis is not None)
            case "decision":
                return replace(
                    self,
                    is_deciding=False,
                    next_task=self.before_change if values["action"] == ROLL_BACK else self.next_task,
                    avoided=tuple(values["avoided"]),
                    before_step=values["before_step"],
                    wait_s=values["wait_s"],
                )
            case "job ended":
                return replace(self, outcome=values["outcome"])
        return self


def read_continuation(events: Iterable[Event]) -> Continuation:
    """Return where a job is after its events."""
    state = Continuation()
    for event in events:
        state = state.after(event)
    return state


def _task_of(values: Mapping[str, Any] | None) -> JobTask | None:
    return None if values is None else JobTask.of_values(values)


def _diagnosis_of(values: Mapping[str, Any]) -> Diagnosis:
    """Return the diagnosis of a "fault detected"."""
    return Diagnosis(
        cause=values["cause"],
        entity=values["entity"],
        ranks=tuple(values["ranks"]),
        nodes=tuple(values["nodes"]),
        evidence=tuple(values["evidence"]),
        quiet_s=values["quiet_s"],
        is_fatal=True,
        step=values["step"],
        error=values["error"],
        is_hardware=values["is_hardware"],
    )
