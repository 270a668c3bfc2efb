"""Curves on one pair of axes, each with its name in a key above them."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from fabrictune.reports import axes, svg
from fabrictune.reports.axes import PlotAxis
from fabrictune.reports.charts import LineChart, Scale

LEFT, TOP, HEIGHT = 56.0, 44.0, 220.0
KEY_LEFT, KEY_LINE, KEY_GAP, KEY_HEIGHT = LEFT + 150, 26.0, 60.0, 16.0
LETTER_WIDTH = 6.6
NUM_STYLES = 4  # of lines, distinguished by colour and dashes


def plot_axes(across: Scale, up: Scale) -> tuple[PlotAxis, PlotAxis, Markup]:
    """Return the axes of a plot of the page's width, `across` and `up`, and their drawing."""
    bottom = axes.axis_of(across, start=LEFT, end=svg.WIDTH - 8)
    left = axes.axis_of(up, start=TOP + HEIGHT, end=TOP)
    parts = (
        axes.draw_bottom(bottom, TOP + HEIGHT, TOP, across.name),
        axes.draw_left(left, LEFT, svg.WIDTH - 8, up.name),
    )
    return bottom, left, Markup("").join(parts)


def draw_curves(chart: LineChart) -> Markup:
    """Return the drawing of a line chart, with a key of its curves."""
    across, up, drawn_axes = plot_axes(chart.across, chart.up)
    parts: list[Markup] = [drawn_axes]
    places = list(_key_places(list(chart.curves)))
    for index, ((label, points), (x, y)) in enumerate(zip(chart.curves.items(), places, strict=True)):
        style = f"series series-{index % NUM_STYLES}"
        parts.append(svg.polyline([(across.at(max(at, across.low)), up.at(height)) for at, height in points], style))
        parts.append(svg.line(x, y - 4, x + KEY_LINE, y - 4, style))
        parts.append(svg.text(x + KEY_LINE + 6, y, label, class_="tick"))
    return svg.figure(TOP + HEIGHT + 40 + max(0.0, max(y for _, y in places) - TOP - HEIGHT), chart.caption, *parts)


def _key_places(labels: Sequence[str]) -> Iterator[tuple[float, float]]:
    """Yield the position of each label's key: in a row above the plot, and below it where there is no room."""
    x, y = KEY_LEFT, TOP - 8
    for label in labels:
        width = KEY_GAP + LETTER_WIDTH * len(label)
        if x > KEY_LEFT and x + width > svg.WIDTH + KEY_GAP:
            x, y = LEFT, max(y, TOP + HEIGHT + 40) + KEY_HEIGHT
        yield x, y
        x += width
