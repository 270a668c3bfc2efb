"""Laws of a sweep: which form of its algorithm each is, and whose numbers its parameters had.

A table that compares laws is fair only as far as their parameters are: one at a paper's numbers beside one whose
defaults follow the link says little of either.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fabrictune.foundation.settings.quantities import format_setting, key_of
from fabrictune.scenario.laws import PAPER
from fabrictune.sweeps.results import Measured

UNCONTROLLED = "none"


def laws_of(measured: Sequence[Measured]) -> list[dict[str, str]]:
    """Return law, form and parameters of each law that the points ran with, each once; none of one without control."""
    rows = [row for result in measured if not result.failure for row in _rows(result)]
    return list({tuple(row.values()): row for row in rows}.values())


def _rows(result: Measured) -> Iterator[dict[str, str]]:
    chosen = result.point.scenario_tree.get("law", UNCONTROLLED)
    settings = chosen if isinstance(chosen, Mapping) else {}
    for run in result.runs[:1]:
        law = run.run.get("law")
        if law and law["name"] != UNCONTROLLED:
            yield {"law": law["name"], "form": law.get("variant", ""), "parameters": _parameters(law, settings)}


def _parameters(law: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Return in words where the parameters' values are from, with those that follow the link."""
    values, derived = law["parameters"], law["derived"]
    parts = []
    if given := settings.get("parameters"):
        parts.append(f"set: {', '.join(given)}")
    if derived:
        shown = ", ".join(f"{key_of(name)} {format_setting(name, values[name])}" for name in derived)
        parts.append(f"fitted to the link: {shown}")
    whose = "the paper's own" if settings.get("defaults") == PAPER else "the law's own"
    parts.append(f"{'others' if parts else 'all'} at {whose} defaults")
    return "; ".join(parts)
