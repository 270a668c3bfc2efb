"""Charts drawn with matplotlib: line charts, points with intervals, sorted bars and heat maps.

Figures have the width of a column of two-column papers and fonts of its size. The same chart gives the same bytes.

Shapes: P points, L links, S senders, R receivers.
"""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import InputError, require_one_of
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.output_files import replaced_file
from fabrictune.reports.axes import PlotAxis, axis_of
from fabrictune.reports.charts import LineChart, PointChart, Scale, StackChart, with_room

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEY_ROW_INCHES = 0.14
COLUMN_INCHES = 3.5
ROW_INCHES = 2.4
FONT_POINTS = 8
MARK_POINTS = 8  # square
DOTS_PER_INCH = 300
LINE_STYLES = ("-", "--", "-.", ":")
STACK_COLOURS = ("C2", "C3", "C8", "C1", "C4", "C0", "C7")
NUM_TICKS = 5  # about, of a linear scale
MAX_KEY = 6  # curves named in a key within the plot; the key of more stands below it
# Dates and versions are left out of the file, so that the same figure is the same file.
METADATA = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}


def new_figure(num_rows: int = 1, *, row_inches: float = ROW_INCHES) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure of one column and its axes; raises UnavailableError without matplotlib."""
    require_extra("matplotlib", extra="plot", where="fabrictune.plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(COLUMN_INCHES, row_inches * num_rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(num_rows, 1, squeeze=False)[:, 0])
    for each in axes:
        each.tick_params(labelsize=FONT_POINTS)
        each.grid(visible=True, linewidth=0.3)
    return figure, axes


def draw_lines(axes: "Axes", chart: LineChart) -> None:
    """Draw a line chart with a key of its curves."""
    chart = with_room(chart)
    across, up = _set_scales(axes, chart.across, chart.up)
    for index, (label, points) in enumerate(chart.curves.items()):
        x, y = np.array(points, np.float64).reshape(-1, 2).T
        style = LINE_STYLES[index // 10 % len(LINE_STYLES)]
        axes.plot(x / across.per_unit, y / up.per_unit, style, color=f"C{index % 10}", linewidth=1, label=label)
        if marks := chart.marks.get(label):
            x, y = (np.array([getattr(mark, way) for mark in marks]) for way in ("across", "up"))
            axes.scatter(
                x / across.per_unit, y / up.per_unit, s=MARK_POINTS, facecolor="w", edgecolor=f"C{index % 10}", zorder=3
            )
    if 1 < len(chart.curves) <= MAX_KEY:
        axes.legend(fontsize=FONT_POINTS - 1)
    elif len(chart.curves) > MAX_KEY:
        from matplotlib.figure import Figure

        figure = axes.get_figure()
        assert isinstance(figure, Figure), "axes of new_figure"
        figure.set_figheight(figure.get_figheight() + KEY_ROW_INCHES * -(-len(chart.curves) // 2))
        axes.legend(fontsize=FONT_POINTS - 2, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.3), frameon=False)


def draw_points(axes: "Axes", chart: PointChart) -> None:
    """Draw points with their intervals and numbers, the highlighted ones in colour."""
    across, up = _set_scales(axes, chart.across, chart.up)
    x_3P, y_3P = chart.x_3P / across.per_unit, chart.y_3P / up.per_unit
    for is_chosen_P, style in ((~chart.is_highlighted_P, "C7o"), (chart.is_highlighted_P, "C0o")):
        errors = [np.abs(ends[1:, is_chosen_P] - ends[0, is_chosen_P]) for ends in (x_3P, y_3P)]
        axes.errorbar(
            x_3P[0, is_chosen_P],
            y_3P[0, is_chosen_P],
            xerr=errors[0],
            yerr=errors[1],
            fmt=style,
            markersize=3,
            elinewidth=0.6,
        )
    for x, y, numbers in zip(x_3P[0].tolist(), y_3P[0].tolist(), chart.numbers, strict=True):
        axes.annotate(numbers, (x, y), xytext=(4, -2), textcoords="offset points", fontsize=FONT_POINTS - 2)


def draw_stack(axes: "Axes", chart: StackChart) -> None:
    """Draw stacked bars with the lines over them, and a key of both below."""
    from matplotlib.figure import Figure

    across, up = _set_scales(axes, chart.across, chart.up)
    ends = np.array(chart.ends) / across.per_unit
    begins = np.concatenate([[chart.across.low / across.per_unit], ends[:-1]])
    base = np.zeros(len(ends))
    for index, (name, shares) in enumerate(chart.shares.items()):
        heights = np.array(shares) / up.per_unit
        axes.bar(begins, heights, ends - begins, base, align="edge", color=STACK_COLOURS[index], label=name)
        base += heights
    for index, (name, points) in enumerate(chart.lines.items()):
        x, y = np.array(points, np.float64).reshape(-1, 2).T
        axes.plot(x / across.per_unit, y / up.per_unit, LINE_STYLES[index], color="k", linewidth=0.8, label=name)
    figure = axes.get_figure()
    assert isinstance(figure, Figure), "axes of new_figure"
    names = len(chart.shares) + len(chart.lines)
    figure.set_figheight(figure.get_figheight() + KEY_ROW_INCHES * names)
    axes.legend(fontsize=FONT_POINTS - 2, loc="upper center", bbox_to_anchor=(0.5, -0.25), frameon=False)


def draw_number_key(axes: "Axes", chart: PointChart) -> None:
    """Write below the plot what each number beside a point is."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = axes.get_figure()
    assert isinstance(figure, Figure), "axes of new_figure"
    figure.set_figheight(figure.get_figheight() + KEY_ROW_INCHES * -(-len(chart.key) // 2))
    axes.legend(
        [Line2D([], [], linestyle="") for _ in chart.key],
        [f"{number} {name}" for number, name in enumerate(chart.key, 1)],
        fontsize=FONT_POINTS - 2,
        ncols=2,
        handlelength=0,
        handletextpad=0,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.3),
        frameon=False,
    )


def draw_sorted_bars(axes: "Axes", load_L: FloatArray, *, title: str, top: float) -> None:
    """Draw loads from high to low as bars, with the mean and a rule at 100 %."""
    axes.bar(np.arange(len(load_L)), 100 * np.sort(load_L)[::-1], width=0.9, color="C0")
    axes.axhline(100, color="C3", linewidth=0.6)
    axes.axhline(100 * float(load_L.mean()), color="C7", linewidth=0.6, linestyle="--")
    axes.set_ylim(0, 105 * top)
    axes.set_title(title, fontsize=FONT_POINTS)
    axes.set_ylabel("load, %", fontsize=FONT_POINTS)


def draw_heat_map(figure: "Figure", axes: "Axes", value_SR: FloatArray, names: list[str], *, unit: str) -> None:
    """Draw a matrix of senders (rows) and receivers (columns); nan stays empty."""
    image = axes.imshow(value_SR, cmap="Blues", vmin=0)
    axes.set_xticks(range(len(names)), labels=[str(index) for index in range(len(names))])
    axes.set_yticks(range(len(names)), labels=[f"{index} {name}" for index, name in enumerate(names)])
    axes.set_xlabel("receiver", fontsize=FONT_POINTS)
    axes.set_ylabel("sender", fontsize=FONT_POINTS)
    axes.grid(visible=False)
    figure.colorbar(image, ax=axes, label=unit).ax.tick_params(labelsize=FONT_POINTS)


def save(figure: "Figure", path: str | PathLike[str]) -> Path:
    """Write a figure as .svg, .pdf or .png and return the path; the same figure gives the same bytes.

    Raises InputError.
    """
    import matplotlib as mpl

    target = Path(path)
    require_one_of(target.suffix, tuple(METADATA), where=str(target), what="file ending", error=InputError)
    settings = {"svg.hashsalt": "fabrictune", "pdf.fonttype": 42}
    with replaced_file(target) as half, mpl.rc_context(settings):
        figure.savefig(half, dpi=DOTS_PER_INCH, metadata=METADATA[target.suffix], format=target.suffix[1:])
    return target


def _set_scales(axes: "Axes", across: Scale, up: Scale) -> tuple[PlotAxis, PlotAxis]:
    """Set limits, names and units of both directions; returns the axes of the page, for their units."""
    x, y = (axis_of(scale, start=0, end=1) for scale in (across, up))
    for axis, scale, drawn, set_scale, set_limits in (
        (x, across, axes.xaxis, axes.set_xscale, axes.set_xlim),
        (y, up, axes.yaxis, axes.set_yscale, axes.set_ylim),
    ):
        set_scale("log" if axis.is_logarithmic else "linear")
        if scale.high > scale.low:
            set_limits(scale.low / axis.per_unit, scale.high / axis.per_unit)
            ticks = axis.ticks(NUM_TICKS)
            drawn.set_ticks([tick / axis.per_unit for tick in ticks], labels=[axis.label(tick) for tick in ticks])
            drawn.set_ticks([], minor=True)
        drawn.set_label_text(f"{scale.name}, {axis.unit}" if axis.unit else scale.name, fontsize=FONT_POINTS)
    return x, y
