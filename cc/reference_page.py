"""The page docs/reference/laws.md, generated from the laws: `make reference` writes it."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from fabrictune.cc.interface import Parameter
from fabrictune.cc.laws import LAWS

PATH = Path(__file__).resolve().parents[1] / "docs" / "reference" / "laws.md"
HEAD = """# Laws

The congestion-control algorithms that a scenario names under `law:`, and the parameters of each. A value outside its
range is refused. Numbers are in the unit that the parameter's name ends in; a scenario leaves that ending away and
gives a rate, a time or a size with its unit: `additive_increase: 40 Mbps`. `fabrictune law show NAME` prints a law's
description and sources.

This page is generated from `cc` by `make reference`.
"""
TABLE_HEAD = "| parameter | default | least | greatest | meaning |\n| --- | --- | --- | --- | --- |"


def reference_page() -> str:
    """Return the page's text."""
    return "\n".join([HEAD, *("\n\n".join(_paragraphs(name, law)) + "\n" for name, law in LAWS.items())])


def _paragraphs(name: str, law: ModuleType) -> Iterator[str]:
    yield f"## {name}"
    yield (law.__doc__ or "").partition("\n")[0]
    if law.PARAMETERS:
        yield f"{TABLE_HEAD}\n" + "\n".join(map(_row, law.PARAMETERS))
    else:
        yield "No parameters."


def _row(parameter: Parameter) -> str:
    ends = (parameter.default, parameter.low, parameter.high)
    return f"| `{parameter.name}` | {' | '.join(map(_number, ends))} | {parameter.meaning} |"


def _number(value: float) -> str:
    """Return a number to its last digit."""
    return f"{int(value):,}" if value == int(value) else repr(value)


if __name__ == "__main__":
    PATH.write_text(reference_page())
