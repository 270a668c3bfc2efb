"""Curves on one pair of axes, each with its name at its end; of many, or of long names, in a key above them."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from fabrictune.reports import axes, svg
from fabrictune.reports.axes import PlotAxis
from fabrictune.reports.blocks import plural
from fabrictune.reports.charts import LineChart, Scale, with_room

LEFT, TOP, HEIGHT = 56.0, 44.0, 220.0
RIGHT = svg.WIDTH - 8
TIME = "time"  # name of the scale of plots that share a stretch of time
MAX_ENDS, MAX_END_NAME, END_GAP = 8, 40, 8.0  # curves with their names behind their ends, letters, and space before
KEY_LINE, KEY_GAP, KEY_HEIGHT = 26.0, 60.0, 16.0
MIN_NAME_WIDTH = 150.0  # of the name of the axis, beside which the key begins
MARK_RADIUS = 3.2
NUM_COLOURS, NUM_DASHES = 8, 4
NUM_STYLES = NUM_COLOURS * NUM_DASHES  # of lines, no two alike


def plot_axes(across: Scale, up: Scale, *, right: float = RIGHT) -> tuple[PlotAxis, PlotAxis, Markup]:
    """Return the axes of a plot of the page's width, `across` and `up`, and their drawing."""
    bottom = axes.axis_of(across, start=LEFT, end=right)
    left = axes.axis_of(up, start=TOP + HEIGHT, end=TOP)
    parts = (
        axes.draw_bottom(bottom, TOP + HEIGHT, TOP, across.name),
        axes.draw_left(left, LEFT, right, up.name),
    )
    return bottom, left, Markup("").join(parts)


def line_style(index: int) -> str:
    """Return the style classes of a curve: neighbours differ in colour and dashes."""
    return f"series series-{index % NUM_COLOURS} dash-{(index // NUM_COLOURS + index) % NUM_DASHES}"


def mark_style(index: int) -> str:
    """Return the style classes of a marked point of a curve."""
    return f"series-{index % NUM_COLOURS} mark"


def draw_curves(chart: LineChart) -> Markup:
    """Return the drawing of a line chart, with a key of its curves; beyond NUM_STYLES they are counted."""
    chart = with_room(chart)
    right = _right_of_plot(chart)
    across, up, drawn_axes = plot_axes(chart.across, chart.up, right=right)
    drawn = [axes.draw_bands(chart.bands, across, TOP, TOP + HEIGHT)]
    parts: list[Markup] = []
    curves = list(chart.curves.items())[:NUM_STYLES]
    if right < RIGHT:
        places = _end_places([points[-1][1] if points else chart.up.low for _, points in curves], up, right)
    else:
        name_width = svg.LETTER_WIDTH * len(axes.full_name(up, chart.up.name))
        places = list(_key_places([label for label, _ in curves], LEFT + max(MIN_NAME_WIDTH, name_width + 12)))
    for index, ((label, points), (x, y)) in enumerate(zip(curves, places, strict=True)):
        style = line_style(index)
        drawn.append(svg.polyline([(across.at(at), up.at(height)) for at, height in points], style, svg.hint(label)))
        for mark in chart.marks.get(label, ()):
            place = {"cx": across.at(mark.across), "cy": up.at(mark.up), "r": MARK_RADIUS}
            drawn.append(svg.tag("circle", svg.hint(mark.hint), class_=mark_style(index), **place))
        parts.append(svg.line(x, y - 4, x + KEY_LINE, y - 4, style))
        parts.append(svg.text(x + KEY_LINE + 6, y, label, class_="tick"))
    if left_over := len(chart.curves) - len(curves):
        verb = "is" if left_over == 1 else "are"
        parts.append(svg.text(0, 14, f"{plural(left_over, 'more curve')} {verb} not drawn", class_="tick"))
    plot = Markup("").join(drawn)
    if (chart.across.name, chart.across.unit) == (TIME, "ps") and not across.is_logarithmic:
        plot = axes.draw_over_time(across, TOP, TOP + HEIGHT, TIME, plot)
    below = max(0.0, max(y for _, y in places) - TOP - HEIGHT)
    return svg.figure(TOP + HEIGHT + 40 + below, chart.caption, drawn_axes, plot, *parts)


def _right_of_plot(chart: LineChart) -> float:
    """Return where the plot ends, so that the names of its curves have room behind it; RIGHT where they have not."""
    longest = max(map(len, chart.curves), default=0)
    if not 1 < len(chart.curves) <= MAX_ENDS or longest > MAX_END_NAME:
        return RIGHT
    return svg.WIDTH - END_GAP - KEY_LINE - 10 - svg.LETTER_WIDTH * longest


def _end_places(heights: Sequence[float], up: PlotAxis, right: float) -> list[tuple[float, float]]:
    """Return the position of each curve's name behind its end, apart from one another."""
    wanted = [up.at(height) + 4 for height in heights]
    places, free = dict[int, float](), TOP
    for index in sorted(range(len(wanted)), key=lambda index: wanted[index]):
        places[index] = max(wanted[index], free)
        free = places[index] + KEY_HEIGHT
    beyond = max(0.0, free - KEY_HEIGHT - TOP - HEIGHT)  # the lowest is below the plot: all that touch move up
    ceiling = TOP + HEIGHT
    for index in sorted(places, key=lambda index: -places[index]) if beyond else ():
        places[index] = min(places[index], ceiling)
        ceiling = places[index] - KEY_HEIGHT
    return [(right + END_GAP, places[index]) for index in range(len(wanted))]


def _key_places(labels: Sequence[str], left: float) -> Iterator[tuple[float, float]]:
    """Yield the position of each label's key: in a row above the plot, and below it where there is no room."""
    x, y = left, TOP - 8
    for label in labels:
        width = KEY_GAP + svg.LETTER_WIDTH * len(label)
        if x > left and x + width > svg.WIDTH + KEY_GAP:
            x, y = LEFT, max(y, TOP + HEIGHT + 40) + KEY_HEIGHT
        yield x, y
        x += width
