"""Events of a job's journal: what happened, in the order in which the driver recorded it.

An event's kind says which values it has. All are JSON. `elapsed_s` counts from the job's first event on monotonic
clocks; `time_ns` is the time of day, for people.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# kind: names of its values
KINDS: Mapping[str, tuple[str, ...]] = {
    "job started": ("recipe", "num_ranks", "num_nodes", "settings"),
    "driver started": ("pid", "continues"),
    "node joined": ("node", "host", "address", "num_slots", "check"),
    "node refused": ("node", "check"),  # self-check not passed, or no key
    "node not started": ("node", "cause", "attempt", "wait_s"),  # the backend refuses; the next attempt after wait_s
    "node not ended": ("node", "cause", "attempt", "wait_s"),
    "node evicted": ("node", "cause"),
    "node ended": ("node", "exit_code"),
    # source: storage, memory, initial; peers: the node that keeps each node's copies, and what it lacks
    "generation started": ("generation", "nodes", "first_step", "source", "code", "peers"),
    "training": ("generation", "step", "restore_s", "read_bytes"),  # its first step is complete
    "step": ("generation", "step", "loss", "gradient_norm", "elapsed_ns"),
    "saved": ("generation", "step", "tier", "blocked_ns", "written_bytes", "elapsed_s"),
    "save failed": ("generation", "step", "tier", "cause"),
    "copies late": (
        "generation",
        "node",
        "step",
        "cause",
    ),  # of a save in memory: two newer ones are there, or why not sent
    "fault detected": (
        "generation",
        "cause",
        "entity",
        "ranks",
        "nodes",
        "evidence",
        "quiet_s",
        "is_fatal",
        "step",
        "error",
        "is_hardware",
    ),
    "decision": ("generation", "action", "reason", "evicted", "avoided", "before_step", "wait_s"),
    "ranks down": ("generation", "elapsed_s", "stacks"),
    "change asked": ("task",),  # that the next generation is to have
    "code changed": ("generation", "code", "is_rollback"),  # from this generation on
    "job ended": ("outcome", "cause", "step"),
}


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event, numbered by the journal."""

    number: int
    elapsed_s: float
    time_ns: int
    kind: str
    values: Mapping[str, Any]
