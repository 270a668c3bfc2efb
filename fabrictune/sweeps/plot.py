"""A sweep's first two objectives as a PNG: every point with its intervals, and the front as a line of steps."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.expectations import metric_of

SIZE_INCHES = (7.0, 5.0)
DOTS_PER_INCH = 120


def draw_front(record: RunRecord, path: Path) -> None:
    """Draw a sweep's record; with one objective, its value at each point. Raises InputError, UnavailableError."""
    require_extra("matplotlib", extra="sweep", where="--png")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    metrics = list(record.run["objectives"])[:2]
    x_P, y_P = (_column(record, metric) for metric in (metrics if len(metrics) > 1 else ("point", *metrics)))
    point_P = record.tables["objectives"]["point"][record.tables["objectives"]["metric"] == metrics[0]]
    is_on_front_P = record.tables["points"]["is_on_front"][point_P] == 1
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for chosen, style in ((~is_on_front_P, "C7o"), (is_on_front_P, "C0o")):
        errors = [np.abs(ends[1:, chosen] - ends[0, chosen]) for ends in (x_P, y_P)]
        axes.errorbar(x_P[0, chosen], y_P[0, chosen], xerr=errors[0], yerr=errors[1], fmt=style, elinewidth=0.8)
    if len(metrics) > 1:
        axes.xaxis.set_major_formatter(_show(metrics[0]))
    axes.yaxis.set_major_formatter(_show(metrics[-1]))
    axes.set_xlabel(_name(record, metrics[0]) if len(metrics) > 1 else "point")
    axes.set_ylabel(_name(record, metrics[-1]))
    axes.set_title(f"{record.run['name']}: blue, no point is better in every objective")
    try:
        figure.savefig(path, dpi=DOTS_PER_INCH, format="png", metadata={"Software": None})
    except OSError as error:
        raise InputError(Mistake(where=str(path), found=f"cannot be written ({error.strerror})")) from error


def _column(record: RunRecord, metric: str) -> np.ndarray:
    """Return value, low and high of each point's objective, shape (3, P); of `point`, its number thrice."""
    objectives = record.tables["objectives"]
    if metric == "point":
        return np.array([np.unique(objectives["point"])] * 3, np.float64)
    rows = objectives["metric"] == metric
    return np.array([objectives[end][rows] for end in ("value", "low", "high")])


def _show(metric: str) -> Callable[[float, float], str]:
    """Return what writes a tick: the value with its unit."""
    return lambda value, _place: metric_of(metric).show(value)


def _name(record: RunRecord, metric: str) -> str:
    return f"{metric} ({record.run['objectives'][metric]})"
