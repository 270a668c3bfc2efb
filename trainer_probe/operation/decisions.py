"""Diagnoses and decisions: what the rules conclude, and what the driver then does."""

from dataclasses import dataclass
from typing import Literal

Cause = Literal[
    "rank killed",  # by a signal, from outside or by the kernel
    "rank failed",  # with an error of its own
    "rank stopped",  # SIGSTOP, a debugger, a freezer
    "rank hung",  # does nothing that others wait for
    "rank slow",  # works, and others wait for it: named, never ended
    "deadlock",  # ranks that wait for one another in a circle
    "not a number",  # loss or gradients
    "loss spike",
    "executor lost",  # no heartbeat, and the node answers or its executor is gone
    "node lost",
    "link cut",  # between nodes that are both alive
    "loader failed",
    "store lost",
    "storage full",
    "storage slow",
    "checkpoint damaged",
    "data damaged",
    "code or data",  # the same error at the same step on other nodes
]
Action = Literal["go on", "restart", "replace", "replay elsewhere", "roll back", "stop"]


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """A fault: its cause, who is guilty, and what it was concluded from."""

    cause: Cause
    entity: str  # as in findings: "rank 3", "node b", "link a-b", "storage s3://..."
    ranks: tuple[int, ...] = ()  # guilty
    nodes: tuple[str, ...] = ()
    evidence: tuple[str, ...]  # a sentence each
    quiet_s: float  # how long the first sign had lasted
    is_fatal: bool  # the generation cannot go on
    step: int = -1  # at which it happened, -1 where that is not known or means nothing
    error: str = ""  # of the guilty rank, one line
    is_hardware: bool = False  # the evidence names a device


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What to do about a diagnosis."""

    action: Action
    reason: str  # one sentence, with the numbers it rests on
    evicted: tuple[str, ...] = ()  # nodes that take no part in the next generation
    avoided: tuple[str, ...] = ()  # nodes whose ranks move elsewhere if there is room
    before_step: int | None = None  # resume from a checkpoint before this step
    wait_s: float = 0.0  # before the next generation starts
