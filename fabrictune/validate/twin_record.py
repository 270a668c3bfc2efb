"""The record of a training beside its twin.

Shapes: P ports.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fabrictune.foundation.checks import CheckReport
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.units import BITS_PER_BYTE
from fabrictune.topology.fabric import Fabric
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.outcome import describe_recipe
from fabrictune.validate.step_twin import ComparedStep, StepTwin
from fabrictune.validate.twin_findings import alarm_rule

KIND = "validate testbed train"
NS_PER_S = 10**9
LEAST_SHARE = 0.02  # of the busiest link's planned bytes, for links that have rows
NOTE = "connections made and closed, retransmissions and gloo's own headers are not planned"


def twin_record(recipe: Recipe, twin: StepTwin, report: CheckReport, *, place: str, started: float) -> RunRecord:
    """Return the record of a run at a `place`; `started` is what `time.perf_counter` said at its start."""
    calibration = twin.calibration
    run = {
        **describe_recipe(recipe),
        "place": place,
        "calibration": None if calibration is None else vars(calibration),
        "alarm_rule": alarm_rule(twin),
        "notes": [NOTE] if twin.fabric else [],
        **describe_run(seed=recipe.seed, started=started),
    }
    tables = {"twin_steps": to_columns("twin_steps", [_step_row(step) for step in twin.steps])}
    if twin.fabric and twin.steps and twin.steps[-1].event.plan:
        tables["twin_links"] = to_columns("twin_links", list(_link_rows(twin, twin.fabric)))
    return RunRecord(kind=KIND, run=run, tables=tables).with_checks(report)


def _step_row(step: ComparedStep) -> dict[str, Any]:
    event = step.event
    return {
        "step": event.step,
        "state": step.state.value,
        "measured_ns": _ns(event.seconds),
        "predicted_ns": _ns(step.predicted_s),
        "half_width_ns": _ns(step.half_width_s),
        "waited_ns": _ns(event.waited_s),
        "sent_bytes": -1 if event.use is None else round(float(event.use.sent_bytes_P.sum())),
        "planned_bytes": -1 if event.plan is None else round(float(event.plan.wire_bytes_P.sum())),
        "is_alarm": int(step.is_alarm),
    }


def _link_rows(twin: StepTwin, fabric: Fabric) -> Iterator[dict[str, Any]]:
    plan = twin.steps[-1].event.plan
    assert plan
    uses = [step.event.use for step in twin.steps[-twin.window :] if step.event.use]
    sent_P = np.median([use.sent_bytes_P for use in uses], axis=0)
    busy_s_P = np.median([use.busy_s_P for use in uses], axis=0)
    planned_P = plan.wire_bytes_P
    for port in np.nonzero(planned_P > LEAST_SHARE * planned_P.max())[0].tolist():
        yield {
            "link": fabric.link_label(port),
            "sent_bytes": round(float(sent_P[port])),
            "planned_bytes": round(float(planned_P[port])),
            "busy_ns": _ns(float(busy_s_P[port])),
            "planned_ns": _ns(float(planned_P[port]) * BITS_PER_BYTE / float(fabric.port_rate_bps_P[port])),
        }


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S) if math.isfinite(seconds) else -1
