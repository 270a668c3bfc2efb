"""Answer of a sweep: the best point in the first objective, what it costs in the others, and its settings."""

from collections.abc import Iterator, Mapping
from typing import Any

from fabrictune.foundation.metrics.units import format_metric
from fabrictune.foundation.records import Columns
from fabrictune.reports.answers.answer import Answer, Settings, spread
from fabrictune.reports.blocks import plural
from fabrictune.reports.record_view import Run
from fabrictune.reports.sweeps import OBJECTIVES, POINTS, check_points, rows_best_first


def sweep_answer(run: Run) -> Answer | None:
    """Return the best point in the first objective."""
    points, objectives = run.rows(POINTS), run.rows(OBJECTIVES)
    if points is None or objectives is None:
        return None
    check_points(run.label, points, objectives)
    first, *others = dict.fromkeys(objectives["metric"].tolist())
    order: list[int] = rows_best_first(objectives, first).tolist()
    best, worst = order[0], order[-1]
    settings, num_points = str(points["settings"][objectives["point"][best]]), len(order)
    sentences = [
        f"Best in {first} of {plural(num_points, 'point')}: {settings}, with {_shown(objectives, best)}.",
        f"The worst has {_shown(objectives, worst)}." if num_points > 1 else "",
        *_costs(objectives, int(objectives["point"][best]), others),
        _doubt(objectives, order) if int(points["num_seeds"].max()) > 1 else "One seed: no interval, unfounded.",
    ]
    lines = settings.replace(" = ", ": ").split("; ")
    return Answer(
        sentence=" ".join(filter(None, sentences)),
        settings=(Settings.of("To apply in the scenario", lines), *_devices(run, settings)),
    )


def _shown(objectives: Columns, row: int) -> str:
    unit = str(objectives["unit"][row])
    ends = (float(objectives[end][row]) for end in ("value", "low", "high"))
    return spread(ends, lambda value: format_metric(value, unit))


def _costs(objectives: Columns, point: int, metrics: list[str]) -> Iterator[str]:
    """Yield what the point has in each other objective, and the best that any point has there."""
    for metric in metrics:
        order: list[int] = rows_best_first(objectives, metric).tolist()
        own = next(row for row in order if objectives["point"][row] == point)
        is_best = objectives["value"][own] == objectives["value"][order[0]]
        best = "which is also the best" if is_best else f"the best has {_shown(objectives, order[0])}"
        yield f"Its {metric}: {_shown(objectives, own)}; {best}."


def _doubt(objectives: Columns, order: list[int]) -> str:
    """Return how many points are not surely behind the best."""
    ends = ("low", "high") if objectives["is_maximised"][order[0]] else ("high", "low")
    own, sign = float(objectives[ends[0]][order[0]]), 1 if ends[0] == "low" else -1
    near = sum(sign * (own - float(objectives[ends[1]][row])) <= 0 for row in order[1:])
    return f"Not surely behind it: {plural(near, 'point')}." if near else ""


def _devices(run: Run, settings: str) -> Iterator[Settings]:
    """Yield the lines for NICs and switches that the record has of the point."""
    for row in _rows(run.record.run.get("nic_settings"), settings):
        lines = [str(line) for line in row.get("lines") or ()] or ["# nothing changes"]
        needs = [f"# needs {row['needs']}"] if row.get("needs") else []
        yield Settings.of(f"To apply on a NIC, changed from {row.get('since', '')}", (*lines, *needs))
    for row in _rows(run.record.run.get("switch_settings"), settings):
        groups = [group for group in row.get("groups") or () if isinstance(group, Mapping)]
        lines = [line for group in groups for line in _group_lines(group)]
        remarks = [f"# {remark}" for remark in row.get("remarks") or ()]
        yield Settings.of(f"To apply on the switches, changed from {row.get('since', '')}", (*lines, *remarks))


def _group_lines(group: Mapping[str, Any]) -> Iterator[str]:
    yield f"# on {', '.join(map(str, group.get('switches') or ()))}"
    yield from (str(command) for command in group.get("commands") or ())
    yield from (f"# {need}" for need in group.get("needs") or ())


def _rows(rows: object, settings: str) -> list[Mapping[str, Any]]:
    """Return the rows of a list in the record's head that are of these settings."""
    every = rows if isinstance(rows, list) else []
    return [row for row in every if isinstance(row, Mapping) and row.get("settings") == settings]
