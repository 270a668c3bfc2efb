"""Journals of made-up jobs, event by event."""

from typing import Any

from fabrictune.trainer_probe.operation.events import Event


def journal(*rows: tuple[float, str, dict[str, Any]]) -> list[Event]:
    """Return events of (elapsed_s, kind, values)."""
    return [
        Event(number=number, elapsed_s=elapsed_s, time_ns=0, kind=kind, values=values)
        for number, (elapsed_s, kind, values) in enumerate(rows, 1)
    ]


def step(elapsed_s: float, generation: int, number: int, seconds: float = 10.0) -> tuple[float, str, dict[str, Any]]:
    """Return a step's row."""
    values = {"generation": generation, "step": number, "loss": 1.0, "elapsed_ns": round(seconds * 1e9)}
    return elapsed_s, "step", values


ONE_FAULT = (  # ten steps of 10 s, a save of 2 s after step 1, a fault in step 4, back to step 2
    (0.0, "job started", {"num_ranks": 8, "num_nodes": 2}),
    (1.0, "driver started", {"pid": 1, "continues": False}),
    (5.0, "generation started", {"generation": 0, "first_step": 0, "source": "initial"}),
    (25.0, "training", {"generation": 0, "step": 0, "restore_s": 3.0}),
    step(25.0, 0, 0),
    step(35.0, 0, 1),
    step(47.0, 0, 2),
    (48.0, "saved", {"generation": 0, "step": 1, "tier": "memory", "blocked_ns": 2_000_000_000}),
    step(57.0, 0, 3),
    (
        80.0,
        "fault detected",
        {"generation": 0, "cause": "rank killed", "entity": "rank 3", "quiet_s": 17.0, "is_fatal": True},
    ),
    (81.0, "decision", {"generation": 0, "action": "restart"}),
    (85.0, "ranks down", {"generation": 0, "elapsed_s": 4.0}),
    (90.0, "generation started", {"generation": 1, "first_step": 2, "source": "memory"}),
    (120.0, "training", {"generation": 1, "step": 2, "restore_s": 8.0}),
    step(120.0, 1, 2),
    step(130.0, 1, 3),
    step(140.0, 1, 4),
    (141.0, "job ended", {"outcome": "done", "cause": "", "step": 4}),
)
