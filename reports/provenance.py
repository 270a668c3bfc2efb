"""Where the numbers come from: scenario, seed, versions, machine, wall time and command of each run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.runs import Run

MAX_TEXT = 40_000  # characters of one value: a long scenario is cut, and says so

SCENARIO = "scenario"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The head of one run's record."""

    label: str
    kind: str
    facts: tuple[tuple[str, str], ...]  # (key, value), short ones
    texts: tuple[tuple[str, str], ...]  # (key, text), those of several lines: the scenario, the configuration


def describe(runs: Sequence[Run]) -> tuple[Provenance, ...]:
    """Return everything `run.json` says of each run, as text."""
    return tuple(_describe(run) for run in runs)


def _describe(run: Run) -> Provenance:
    flat = {key: _text(value) for key, value in sorted(run.record.run.items())}
    is_long = {key: "\n" in value or len(value) > 160 for key, value in flat.items()}
    texts = [(key, _cut(value)) for key, value in flat.items() if is_long[key]]
    return Provenance(
        label=run.label,
        kind=run.record.kind,
        facts=tuple((key, value) for key, value in flat.items() if not is_long[key]),
        texts=tuple(sorted(texts, key=lambda pair: (pair[0] != SCENARIO, pair[0]))),
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and all(not isinstance(part, Mapping | list) for part in value.values()):
        return ", ".join(f"{key} {part}" for key, part in value.items())
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str)


def _cut(text: str) -> str:
    rest = len(text) - MAX_TEXT
    return text if rest <= 0 else f"{text[:MAX_TEXT]}\n… {rest:,} characters more in run.json"
