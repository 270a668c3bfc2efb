"""Outcomes over hash seeds: variants, designs and plan steps side by side, and effects of a factorial experiment."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_rate
from fabrictune.reports import svg
from fabrictune.reports.blocks import (
    Block,
    Cell,
    Figure,
    Section,
    Table,
    left_out,
    missing,
    number,
    percent,
    shortened,
    shown_of,
    words,
)
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

OUTCOMES = (
    "num_seeds",
    *(
        f"{share}{end}"
        for share in ("overload_probability", "throughput_fraction", "slowest_fraction")
        for end in ("", "_low", "_high")
    ),
    "worst_load_fraction",
    "worst_load_fraction_p99",
    "slowest_connection_bps",
)
STEP = "step"  # the steps of a plan are in their own order
STUDIES = {  # tables of outcomes by the column that names their rows
    "variant": select("variants", "variant", *OUTCOMES),
    "design": select("designs", "design", *OUTCOMES),
    STEP: select("steps", "step", "knows_seeds", "is_taken", *OUTCOMES),
}
EFFECTS = select("effects", "effect", "metric", "value", "low", "high")
LEFT, ROW_HEIGHT, BAR_HEIGHT, TOP = 300.0, 34.0, 10.0, 26.0
MAX_NAME = 46  # characters of a row's name in the figure
MAX_ROWS = 64
MEASURES: Mapping[str, tuple[str, str]] = {  # column -> what it is, style of its bar
    "throughput_fraction": ("flow throughput", "fill-2"),
    "slowest_fraction": ("min flow throughput", "fill-4"),
}
EFFECT_METRICS = ("overload_probability", "throughput_fraction", "slowest_fraction", "worst_load_fraction")
EFFECT_HEADINGS = ("Effect on", "P(overload)", "Flow throughput", "Min flow throughput", "Peak load")


def outcomes_section(runs: Sequence[Run]) -> Section | None:
    """Return a figure and a table for each run that measured outcomes over seeds, or None."""
    blocks: list[Block] = []
    for run in runs:
        for what, selection in STUDIES.items():
            if (outcomes := run.rows(selection)) is not None:
                blocks.append(draw_outcomes(run.label, what, outcomes if what == STEP else best_first(outcomes)))
        if (effects := run.rows(EFFECTS)) is not None:
            blocks.append(effects_table(run.label, effects))
    if not blocks:
        return None
    lead = "Max-min fair throughput over offered rate. Hash seeds are rarely known: figures are means over those tried."
    return Section(anchor="outcomes", title="Outcomes over hash seeds", lead=lead, blocks=tuple(blocks))


def best_first(outcomes: Columns) -> Columns:
    """Return rows by flow throughput, the highest first, then by that of the slowest flow."""
    order = np.lexsort((-outcomes["slowest_fraction"], -outcomes["throughput_fraction"]))
    return {name: column[order] for name, column in outcomes.items()}


def draw_outcomes(label: str, what: str, outcomes: Columns) -> Figure:
    """Return two bars a row, all traffic and the slowest flow, each with its interval, and the table of all figures."""
    names = [str(name) for name in outcomes[what][:MAX_ROWS]]
    width = svg.WIDTH - LEFT - 60
    parts: list[Markup] = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = LEFT + tick * width
        parts.append(svg.line(x, TOP - 6, x, TOP + ROW_HEIGHT * len(names), "grid"))
        parts.append(svg.text(x, TOP - 10, percent(tick), class_="tick", anchor="middle"))
    for row, name in enumerate(names):
        y = TOP + ROW_HEIGHT * row
        shown = shortened(name, MAX_NAME)
        parts.append(svg.text(0, y + 16, shown, class_="tier"))
        parts += [
            _bar(outcomes, column, row, y + 3 + BAR_HEIGHT * place, width) for place, column in enumerate(MEASURES)
        ]
    shown = shown_of(len(names), len(outcomes[what]), what)
    caption = f"{label}: {shown}. Upper bar: mean flow throughput; lower bar: min; lines: 95 % intervals."
    drawing = svg.figure(TOP + ROW_HEIGHT * len(names) + 6, caption, *parts)
    return Figure(drawing=drawing, caption=caption, table=_outcomes_table(what, names, outcomes))


def effects_table(label: str, effects: Columns) -> Table:
    """Return a row for each set of factors: by how much it raises each share, and the worst link's load."""
    names = list(dict.fromkeys(effects["effect"].tolist()))
    rows = tuple((words(name), *(_effect(effects, name, metric) for metric in EFFECT_METRICS)) for name in names)
    return Table(caption=f"{label}: main effects and interactions of the factors", headings=EFFECT_HEADINGS, rows=rows)


def _effect(effects: Columns, name: str, metric: str) -> Cell:
    rows = np.nonzero((effects["effect"] == name) & (effects["metric"] == metric))[0]
    if not len(rows):
        return missing()
    row = rows[0]
    value, half = float(effects["value"][row]), float(effects["high"][row] - effects["low"][row]) / 2
    if metric == "worst_load_fraction":
        return number(value, f"{value:+.2f} ± {half:.2f}")
    return number(value, f"{100 * value:+.1f} ± {100 * half:.1f} points")


def _bar(outcomes: Columns, column: str, row: int, y: float, width: float) -> Markup:
    name, style = MEASURES[column]
    value, low, high = (float(outcomes[f"{column}{end}"][row]) for end in ("", "_low", "_high"))
    middle = y + BAR_HEIGHT / 2
    hint = svg.hint(f"{name}: {percent(value)}, {percent(low)} to {percent(high)}")
    bar = svg.rectangle(LEFT, y, value * width, BAR_HEIGHT - 1, style, hint)
    return bar + svg.line(LEFT + low * width, middle, LEFT + high * width, middle, "baseline")


def _outcomes_table(what: str, names: Sequence[str], outcomes: Columns) -> Table:
    headings = (
        what.capitalize(),
        *(("In the plan",) if "is_taken" in outcomes else ()),
        "Hash seeds",
        "P(overload)",
        "Peak load",
        "p99",
        "Flow throughput",
        "Min flow throughput",
        "Min connection throughput",
    )
    rows = tuple(
        _row(name, {column: values[row] for column, values in outcomes.items()}) for row, name in enumerate(names)
    )
    left = left_out(len(rows), len(outcomes[what]), what, f"{what}s")
    return Table(headings=headings, rows=rows, left_out=left)


def _row(name: str, outcome: Mapping[str, Any]) -> tuple[Cell, ...]:
    loads = (float(outcome[column]) for column in ("worst_load_fraction", "worst_load_fraction_p99"))
    slowest_bps = float(outcome["slowest_connection_bps"])
    return (
        words(name),
        *((words("yes" if outcome["is_taken"] else "no"),) if "is_taken" in outcome else ()),
        _seeds(outcome),
        _share(outcome, "overload_probability"),
        *(number(load, f"{load:.2f}") for load in loads),
        _share(outcome, "throughput_fraction"),
        _share(outcome, "slowest_fraction"),
        number(slowest_bps, format_rate(slowest_bps)),
    )


def _seeds(outcome: Mapping[str, Any]) -> Cell:
    """Return how many hash seeds the figures are of."""
    if outcome.get("knows_seeds"):
        return words("the scenario's own")
    num_seeds = int(outcome["num_seeds"])
    return number(num_seeds, f"{num_seeds:,}" if num_seeds else "exact")


def _share(outcome: Mapping[str, Any], column: str) -> Cell:
    value, low, high = (100 * float(outcome[f"{column}{end}"]) for end in ("", "_low", "_high"))
    return number(value, f"{value:.1f} % ({low:.1f} to {high:.1f})")
