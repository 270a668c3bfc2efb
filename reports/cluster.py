"""A cluster's validation: how each stage ended, and measured beside predicted, the nearest to its limit first."""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_S, format_duration, format_number, format_rate
from fabrictune.reports.blocks import Cell, Section, Table, duration, left_out, missing, number, words
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

STAGES = select("cluster_stages", "stage", "state", "reason", "wall_s")
MEASUREMENTS = select(
    "cluster_measurements",
    *("stage", "part", "subject", "unit", "measured", "predicted"),
    *("predicted_low", "predicted_high", "limit", "verdict", "detail"),
)
MAX_ROWS = 64
TONES = {"good": "good", "bad": "bad", "failed": "bad", "done": "good", "incomplete": "bad", "stopped": "bad"}


def cluster_section(runs: Sequence[Run]) -> Section | None:
    """Return the stages and measurements of each validation, or None."""
    tables = []
    for run in runs:
        if (stages := run.rows(STAGES)) is not None:
            tables.append(_stages(run.label, stages))
        if (measured := run.rows(MEASUREMENTS)) is not None and len(measured["stage"]):
            tables.append(_measurements(run.label, measured))
    if not tables:
        return None
    lead = "Skipped is not passed. Predictions are ranges over hash seeds; limits are below all of them."
    return Section(anchor="cluster", title="Validation of the cluster", lead=lead, blocks=tuple(tables))


def _stages(label: str, stages: Columns) -> Table:
    rows = tuple(
        (
            words(str(stages["stage"][row])),
            words(str(stages["state"][row]), tone=TONES.get(str(stages["state"][row]), "")),
            words(str(stages["reason"][row])),
            number(float(stages["wall_s"][row]), duration(float(stages["wall_s"][row]) * PS_PER_S)),
        )
        for row in range(len(stages["stage"]))
    )
    return Table(caption=f"{label}: stages", headings=("Stage", "State", "Reason", "Time"), rows=rows)


def _measurements(label: str, measured: Columns) -> Table:
    order = np.argsort(_margins(measured), kind="stable")[:MAX_ROWS].tolist()
    rows = tuple(
        (
            *(words(str(measured[name][row])) for name in ("stage", "part", "subject")),
            *(_value(measured, name, row) for name in ("measured", "predicted", "predicted_low", "predicted_high")),
            _value(measured, "limit", row),
            words(str(measured["verdict"][row]), tone=TONES.get(str(measured["verdict"][row]), "")),
            words(str(measured["detail"][row])),
        )
        for row in order
    )
    return Table(
        caption=f"{label}: measured beside predicted, the nearest to its limit first",
        headings=("Stage", "Part", "What", "Measured", "Predicted", "Low", "High", "Limit", "Verdict", "Detail"),
        rows=rows,
        left_out=left_out(len(rows), len(measured["stage"]), "measurement", "cluster_measurements"),
        is_sortable=False,
    )


def _margins(measured: Columns) -> FloatArray:
    """Return measured over limit, or limit over measured of times: below 1 is bad. Failed first, without limit last."""
    value, limit = measured["measured"].astype(float), measured["limit"].astype(float)
    ratio = np.where(measured["unit"] == "s", limit / np.maximum(value, 1e-12), value / np.maximum(limit, 1e-12))
    margin: FloatArray = np.where(measured["verdict"] == "failed", 0.0, np.where(limit > 0, ratio, np.inf))
    return margin


def _value(measured: Columns, name: str, row: int) -> Cell:
    value, unit = float(measured[name][row]), str(measured["unit"][row])
    if value < 0:
        return missing()
    if unit == "bit/s":
        return number(value, format_rate(value))
    return number(value, format_duration(value * PS_PER_S) if unit == "s" else f"{format_number(value)} {unit}")
