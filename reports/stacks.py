"""Stacked bars with lines over them, and a key of both above."""

from markupsafe import Markup

from fabrictune.reports import axes, svg
from fabrictune.reports.blocks import percent
from fabrictune.reports.charts import StackChart
from fabrictune.reports.curves import HEIGHT, LEFT, TOP, line_style, plot_axes

NUM_FILLS = 7
KEY_HEIGHT, KEY_GAP, KEY_BOX = 18.0, 34.0, 12.0


def draw_stack(chart: StackChart) -> Markup:
    """Return the drawing of stacked bars; each part says its share when the pointer rests on it."""
    assert len(chart.shares) <= NUM_FILLS, "a part without a colour of its own"
    across, up, drawn_axes = plot_axes(chart.across, chart.up)
    parts: list[Markup] = []
    begin = chart.across.low
    for bar, end in enumerate(chart.ends):
        base = chart.up.low
        for fill, (name, shares) in enumerate(chart.shares.items()):
            top = base + shares[bar]
            if shares[bar] > 0:
                box = (across.at(begin), up.at(top), across.at(end) - across.at(begin), up.at(base) - up.at(top))
                parts.append(svg.rectangle(*box, f"stack-{fill}", svg.hint(f"{name}: {percent(shares[bar] / 100)}")))
            base = top
        begin = end
    for index, points in enumerate(chart.lines.values()):
        parts.append(svg.polyline([(across.at(at), up.at(height)) for at, height in points], line_style(4 + 4 * index)))
    key, rows = _key(chart)
    plot = axes.draw_over_time(across, TOP, TOP + HEIGHT, chart.across.name, *parts)
    return svg.figure(TOP + HEIGHT + 40 + rows * KEY_HEIGHT, chart.caption, drawn_axes, plot, *key)


def _key(chart: StackChart) -> tuple[list[Markup], int]:
    """Return the key below the plot, and its number of rows."""
    parts: list[Markup] = []
    x, row = LEFT, 1
    names = [*chart.shares, *chart.lines]
    for place, name in enumerate(names):
        width = KEY_GAP + svg.LETTER_WIDTH * len(name)
        if x > LEFT and x + width > svg.WIDTH:
            x, row = LEFT, row + 1
        y = TOP + HEIGHT + 36 + row * KEY_HEIGHT
        if place < len(chart.shares):
            parts.append(svg.rectangle(x, y - KEY_BOX + 2, KEY_BOX, KEY_BOX, f"stack-{place}"))
        else:
            parts.append(svg.line(x, y - 4, x + KEY_BOX, y - 4, line_style(4 + 4 * (place - len(chart.shares)))))
        parts.append(svg.text(x + KEY_BOX + 6, y, name, class_="tick"))
        x += width
    return parts, row
