"""Commands: what the control of a job wants done, carried out by the driver in order, the journal's records first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Record:
    """Append an event to the journal; with an origin, the sender and its number, at most once."""

    kind: str
    values: Mapping[str, Any]
    origin: tuple[str, int] | None = None
    clock_s: float | None = None  # when it happened, by the monotonic clock of the driver's machine; None for now


@dataclass(frozen=True, kw_only=True)
class Send:
    """Send a message to a node's executor, if it is connected."""

    node: str
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class StartNode:
    """Let the backend start a node."""

    node: str


@dataclass(frozen=True, kw_only=True)
class EndNode:
    """Let the backend end a node, and everything that runs on it."""

    node: str


@dataclass(frozen=True, kw_only=True)
class Finish:
    """End the job."""

    outcome: str  # finished, interrupted, stopped
    cause: str
    step: int


Command = Record | Send | StartNode | EndNode | Finish
