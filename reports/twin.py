"""A training beside its twin: each step's time with its predicted interval, and its links."""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS, format_bytes, format_duration
from fabrictune.reports.blocks import Block, Figure, Section, Table, left_out, number, percent, words
from fabrictune.reports.charts import LineChart, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

STEPS = select("twin_steps", "step", "measured_ns", "predicted_ns", "half_width_ns", "is_alarm")
LINKS = select("twin_links", "link", "sent_bytes", "planned_bytes", "busy_ns", "planned_ns")
MAX_LINKS = 40


def twin_section(runs: Sequence[Run]) -> Section | None:
    """Return the curves and links of each training that has a twin, or None."""
    blocks: list[Block] = []
    for run in runs:
        if (steps := run.rows(STEPS)) is not None and len(steps["step"]) > 1:
            chart = steps_chart(run.label, steps)
            blocks.append(Figure(drawing=draw_curves(chart), caption=chart.caption))
        if (links := run.rows(LINKS)) is not None:
            blocks.append(_links(run.label, links))
    if not blocks:
        return None
    lead = (
        "Each step was predicted while the training ran. The alarm is raised by a median of steps, not by an outlier."
    )
    return Section(anchor="twin", title="Steps beside their prediction", lead=lead, blocks=tuple(blocks))


def steps_chart(label: str, steps: Columns) -> LineChart:
    """Return measured and predicted steps, and the ends of the interval."""
    is_predicted = steps["predicted_ns"] >= 0
    number_S, half_S = steps["step"].astype(float), np.where(is_predicted, steps["half_width_ns"], 0)
    times_ns = {
        "measured": (steps["measured_ns"], np.full(len(number_S), True)),
        "predicted": (steps["predicted_ns"], is_predicted),
        "upper end": (steps["predicted_ns"] + half_S, is_predicted),
        "lower end": (steps["predicted_ns"] - half_S, is_predicted),
    }
    curves = {
        name: list(zip(number_S[shown].tolist(), (values[shown] * float(PS_PER_NS)).tolist(), strict=True))
        for name, (values, shown) in times_ns.items()
        if shown.any()
    }
    alarms = steps["step"][steps["is_alarm"] == 1].tolist()
    alarm = f"alarm from step {alarms[0]} on" if alarms else "no alarm"
    return LineChart(
        across=Scale(name="step", low=float(number_S.min()), high=float(number_S.max())),
        up=Scale(
            name="step time", low=0.0, high=max(time for points in curves.values() for _, time in points), unit="ps"
        ),
        curves=curves,
        caption=f"{label}: each step measured and predicted; {alarm}.",
    )


def _links(label: str, links: Columns) -> Table:
    factor_L = links["busy_ns"] / np.maximum(links["planned_ns"], 1)
    shown = np.argsort(-factor_L, kind="stable")[:MAX_LINKS].tolist()
    rows = tuple(
        (
            words(str(links["link"][row])),
            *(number(size := int(links[name][row]), format_bytes(size)) for name in ("sent_bytes", "planned_bytes")),
            number(share := float(links["sent_bytes"][row] / max(links["planned_bytes"][row], 1)), percent(share)),
            *(
                number(time_ps := float(links[name][row]) * PS_PER_NS, format_duration(time_ps))
                for name in ("busy_ns", "planned_ns")
            ),
            number(float(factor_L[row]), f"{factor_L[row]:.2f}"),
        )
        for row in shown
    )
    return Table(
        caption=f"{label}: links in the last steps, those that were busy longest for their bytes first",
        headings=("Link", "Bytes of a step", "Planned", "Of planned", "Busy", "Planned time", "Factor"),
        rows=rows,
        left_out=left_out(len(rows), len(factor_L), "link", "twin_links"),
    )
