"""The reference of the Python interface, from its signatures and docstrings."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import fabrictune as ft

MAX_WIDTH = 88  # of a signature on one line
HEAD = """# Python interface

`import fabrictune as ft`: the names below, and no others, are the interface
([how to use it](../how-to/use-from-python.md)).
"""
MODULES = re.compile(r"\b(?:\w+\.)+(?=[A-Z])")  # in a signature a class is its name


def python_reference() -> str:
    """Return the page: classes with their members, functions, and those of `ft.plot`."""
    named = {name: getattr(ft, name) for name in ft.__all__}
    plots = {f"plot.{name}": getattr(ft.plot, name) for name in ft.plot.__all__}
    functions = {name: value for name, value in {**named, **plots}.items() if inspect.isfunction(value)}
    classes = {name: value for name, value in named.items() if inspect.isclass(value)}
    parts = [HEAD, "## Functions\n"]
    parts += [_function(name, value, level=3) for name, value in functions.items()]
    parts += ["## Classes\n", *(part for name, value in classes.items() for part in _class(name, value))]
    return "\n".join(parts)


def _class(name: str, value: type) -> Iterator[str]:
    yield f"### {name}\n\n{inspect.getdoc(value)}\n"
    for member, attribute in vars(value).items():
        if member.startswith("_") or not (inspect.getdoc(attribute) and _is_own(attribute)):
            continue
        if isinstance(attribute, property):
            yield f"#### {name}.{member}\n\n{inspect.getdoc(attribute)}\n"
        else:
            yield _function(f"{name}.{member}", getattr(value, member), level=4)


def _is_own(attribute: Any) -> bool:
    return isinstance(attribute, property | classmethod | staticmethod) or inspect.isfunction(attribute)


def _function(name: str, function: Any, level: int) -> str:
    code = _wrapped(MODULES.sub("", f"{name}{inspect.signature(function)}"))
    return f"{'#' * level} {name}\n\n```python\n{code}\n```\n\n{inspect.getdoc(function)}\n"


def _wrapped(signature: str) -> str:
    """Return a long signature with a line for each argument: after each comma that is in no bracket but the first."""
    if len(signature) <= MAX_WIDTH:
        return signature
    depth, lines = 0, [""]
    for letter in signature:
        depth += (letter in "([") - (letter in ")]")
        if letter == ")" and depth == 0:
            lines.append("")
        lines[-1] += letter
        if (letter == "(" and depth == 1) or (letter == "," and depth == 1):
            lines.append("    ")
    return "\n".join(line if at in (0, len(lines) - 1) else f"    {line.strip()}" for at, line in enumerate(lines))
