"""Metrics of a replayed communication trace: step time and exposed communication, means over steps."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from fabrictune.foundation.layout import AXES
from fabrictune.foundation.records import RunRecord

STEPS = "replayed_steps"
EXPOSED = "exposed_communication"


def mean_of_steps(column: str) -> Callable[[RunRecord], float]:
    """Return the formula of a column's mean over steps; nan where it is not computed."""

    def formula(record: RunRecord) -> float:
        values = record.tables[STEPS][column]
        return float(values.mean()) if len(values) and (values >= 0).all() else math.nan

    return formula


def over_bound(record: RunRecord) -> float:
    """Return the steps' durations over those at the lower bound; nan where that is not computed, or nothing."""
    bound_ps = mean_of_steps("lower_bound_ps")(record)
    return mean_of_steps("duration_ps")(record) / bound_ps if bound_ps > 0 else math.nan


def mean_of_axis(axis: str) -> Callable[[RunRecord], float]:
    """Return the formula of an axis' exposed communication; nan for traces without the axis."""

    def formula(record: RunRecord) -> float:
        table = record.tables[EXPOSED]
        values = table["exposed_ps"][table["axis"] == axis]
        return float(values.mean()) if len(values) else math.nan

    return formula


def _times(column: str, label: str, meaning: str) -> dict[str, Any]:
    return {"label": label, "meaning": meaning, "columns": (f"{STEPS}.{column}",), "formula": mean_of_steps(column)}


REPLAY_TIMES: Mapping[str, dict[str, Any]] = {
    "step_time": _times("duration_ps", "Step time", "time of a replayed step of all ranks, mean over steps"),
    "step_time.lower_bound": _times(
        "lower_bound_ps", "Step time, lower bound", "step time if transfers shared no link and a NIC sent at its rate"
    ),
    "work_time": _times("work_ps", "Work of a rank", "time of a step in which a rank computes, mean over ranks"),
    "exposed_communication": _times(
        "exposed_ps", "Exposed communication", "time of a step that a rank waits for requests, mean over ranks"
    ),
    **{
        f"exposed_communication.{axis}": {
            "label": f"Exposed {axis}",
            "meaning": f"time of a step that a rank waits for {axis} requests, mean over ranks",
            "columns": (f"{EXPOSED}.exposed_ps", f"{EXPOSED}.axis"),
            "formula": mean_of_axis(axis),
        }
        for axis in AXES
    },
}
RATIO = "step_time.ratio"
REPLAY_METRICS = (*REPLAY_TIMES, RATIO)
