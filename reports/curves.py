"""Curves on one pair of axes, each with its name in a key above them."""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from fabrictune.reports import axes, svg
from fabrictune.reports.axes import Axis

LEFT, TOP, HEIGHT = 56.0, 44.0, 220.0
KEY_LEFT, KEY_LINE, KEY_GAP, KEY_HEIGHT = LEFT + 150, 26.0, 60.0, 16.0
LETTER_WIDTH = 6.6
NUM_STYLES = 4  # of lines, told apart by colour and dashes

Points = Sequence[tuple[float, float]]  # in the axes' quantities


def draw_curves(
    curves: Mapping[str, Points], across: Axis, up: Axis, *, names: tuple[str, str], caption: str
) -> Markup:
    """Return a drawing of curves by their labels; `names` are those of the axes, `across` and `up`.

    `across` runs from LEFT to the page's width, `up` from TOP + HEIGHT to TOP.
    """
    parts: list[Markup] = [
        axes.draw_bottom(across, TOP + HEIGHT, TOP, names[0]),
        axes.draw_left(up, LEFT, svg.WIDTH - 8, names[1]),
    ]
    places = list(_key_places(list(curves)))
    for index, ((label, points), (x, y)) in enumerate(zip(curves.items(), places, strict=True)):
        style = f"series series-{index % NUM_STYLES}"
        parts.append(svg.polyline([(across.at(max(at, across.low)), up.at(height)) for at, height in points], style))
        parts.append(svg.line(x, y - 4, x + KEY_LINE, y - 4, style))
        parts.append(svg.text(x + KEY_LINE + 6, y, label, class_="tick"))
    return svg.figure(TOP + HEIGHT + 40 + max(0.0, max(y for _, y in places) - TOP - HEIGHT), caption, *parts)


def _key_places(labels: Sequence[str]) -> Iterator[tuple[float, float]]:
    """Yield where each label's key stands: in a row above the plot, and what finds no room there below it."""
    x, y = KEY_LEFT, TOP - 8
    for label in labels:
        width = KEY_GAP + LETTER_WIDTH * len(label)
        if x > KEY_LEFT and x + width > svg.WIDTH + KEY_GAP:
            x, y = LEFT, max(y, TOP + HEIGHT + 40) + KEY_HEIGHT
        yield x, y
        x += width
