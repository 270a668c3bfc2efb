"""SVG, element by element: names and attributes in, escaped markup out.

Drawings are written by hand rather than plotted, so that they take their colours from the page's style sheet (light,
dark, print), hold no dates or random ids, and stay a few kilobytes.
"""

from markupsafe import Markup, escape

from fabrictune.foundation.visible_text import printable

Child = str | Markup
Attribute = str | int | float | None

WIDTH = 1040.0  # of every figure, in user units: the width of the page's text
LETTER_WIDTH = 6.6  # of a label beside a tick


def tag(name: str, *children: Child, **attributes: Attribute) -> Markup:
    """Return one element; plain strings are escaped, an attribute such as `text_anchor` is written `text-anchor`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(child if isinstance(child, Markup) else escape(printable(child)) for child in children)
    written = f"<{name}{written}>{inside}</{name}>" if children else f"<{name}{written}/>"
    return Markup(written)  # noqa: S704 -- every value in it was escaped above


def figure(height: float, title: str, *children: Child) -> Markup:
    """Return a whole drawing of the page's width; `title` is its text for readers who cannot see it."""
    return tag(
        "svg",
        *children,
        viewBox=f"0 0 {_number(WIDTH)} {_number(height)}",
        role="img",
        aria_label=title,
        class_="figure",
    )


def text(x: float, y: float, content: str, *, class_: str = "", anchor: str | None = None) -> Markup:
    """Return text at a baseline."""
    return tag("text", content, x=x, y=y, class_=class_ or None, text_anchor=anchor)


def centred_text(x: float, y: float, content: str, class_: str) -> Markup:
    """Return text centred on a position, or ending where the drawing does."""
    if x + LETTER_WIDTH * len(content) / 2 > WIDTH:
        return text(WIDTH, y, content, class_=class_, anchor="end")
    return text(x, y, content, class_=class_, anchor="middle")


def line(x1: float, y1: float, x2: float, y2: float, class_: str, *children: Child) -> Markup:
    """Return a straight line."""
    return tag("line", *children, x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def rectangle(x: float, y: float, width: float, height: float, class_: str, *children: Child) -> Markup:
    """Return a rectangle."""
    return tag("rect", *children, x=x, y=y, width=width, height=height, class_=class_)


def polyline(points: list[tuple[float, float]], class_: str, *children: Child) -> Markup:
    """Return an open path through points."""
    return tag("path", *children, d=_path(points), class_=class_)


def area(points: list[tuple[float, float]], class_: str) -> Markup:
    """Return a closed path through points."""
    return tag("path", d=f"{_path(points)}Z", class_=class_)


def hint(content: str) -> Markup:
    """Return the text shown when the pointer rests on the parent."""
    return tag("title", content)


def _path(points: list[tuple[float, float]]) -> str:
    """Return a path through points; a step of a staircase is half as long as a slope, and none where nothing moves."""
    written: list[str] = []
    last_x = last_y = ""
    for x, y in ((_number(x), _number(y)) for x, y in points):
        if not written:
            written.append(f"M{x} {y}")
        elif x != last_x:
            written.append(f"H{x}" if y == last_y else f"L{x} {y}")
        elif y != last_y:
            written.append(f"V{y}")
        last_x, last_y = x, y
    return "".join(written)


def _value(value: str | int | float) -> str:
    return str(escape(printable(value))) if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
