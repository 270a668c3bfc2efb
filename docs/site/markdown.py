"""Text as Markdown shows it, and contents of a section."""

import re
from collections.abc import Iterable

SPECIAL = re.compile(r"([\\*_\[\]#])")
CODE = re.compile(r"(`[^`]+`)")


def plain(text: str) -> str:
    """Return text that is shown as it is, what stands between backticks as code."""
    parts = CODE.split(text)
    parts[::2] = [SPECIAL.sub(r"\\\1", part).replace("<", "&lt;").replace(">", "&gt;") for part in parts[::2]]
    return "".join(parts)


def cell(text: str) -> str:
    """Return Markdown as the cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def contents(places: Iterable[str], *, caption: str = "", is_hidden: bool = True) -> str:
    """Return a list of pages as Sphinx has it: of what a page contains, beside all pages and, not hidden, on it."""
    options = [f":caption: {caption}"] if caption else []
    options += [":hidden:"] if is_hidden else [":maxdepth: 1"]
    return "\n".join(("```{toctree}", *options, "", *(f"/{place}" for place in places), "```", ""))
