"""Plots of the same curves below one another, on one axis across."""

from collections.abc import Sequence

from markupsafe import Markup

from fabrictune.reports import axes, svg
from fabrictune.reports.charts import LineChart
from fabrictune.reports.curves import LEFT, RIGHT, TIME, line_style

HEIGHT, GAP = 96.0, 34.0  # of a lane, and of the space above it
KEY_LINE, KEY_GAP, KEY_HEIGHT = 22.0, 28.0, 18.0


def draw_lanes(charts: Sequence[LineChart], caption: str) -> Markup:
    """Return the drawing of charts that have their scale across, their bands and the names of their curves in common.

    Over time they are one plot of the page's: one crosshair, one stretch of time.
    """
    names = list(charts[0].curves)
    assert all(list(chart.curves) == names for chart in charts), "one key names the curves of all"
    key, key_foot = _draw_key(names)
    top = key_foot + GAP
    foot = top + len(charts) * HEIGHT + (len(charts) - 1) * GAP
    across = axes.axis_of(charts[0].across, start=LEFT, end=RIGHT)
    parts = [key, axes.draw_bottom(across, foot, top, charts[0].across.name)]
    drawn = [axes.draw_bands(charts[0].bands, across, top, foot)]
    for place, chart in enumerate(charts):
        lane_foot = top + place * (HEIGHT + GAP) + HEIGHT
        up = axes.axis_of(chart.up, start=lane_foot, end=lane_foot - HEIGHT)
        parts.append(axes.draw_left(up, LEFT, RIGHT, chart.up.name))
        for index, (name, points) in enumerate(chart.curves.items()):
            places = [(across.at(at), up.at(height)) for at, height in points]
            drawn.append(svg.polyline(places, line_style(index), svg.hint(name)))
    parts.append(axes.draw_over_time(across, top, foot, TIME, *drawn))
    return svg.figure(foot + 40, caption, *parts)


def _draw_key(names: Sequence[str]) -> tuple[Markup, float]:
    """Return the lines with their names in rows, and the height of the last row."""
    parts: list[Markup] = []
    x, y = LEFT, KEY_HEIGHT
    for index, name in enumerate(names):
        width = KEY_LINE + 6 + svg.LETTER_WIDTH * len(name)
        if x > LEFT and x + width > svg.WIDTH:
            x, y = LEFT, y + KEY_HEIGHT
        parts.append(svg.line(x, y - 4, x + KEY_LINE, y - 4, line_style(index)))
        parts.append(svg.text(x + KEY_LINE + 6, y, name, class_="tick"))
        x += width + KEY_GAP
    return Markup("").join(parts), y
