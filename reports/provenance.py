"""Provenance of the numbers: notes, scenario, seed, versions, machine, wall time and command of each run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fabrictune.foundation.records import notes_of
from fabrictune.reports.record_view import Run

MAX_TEXT = 40_000  # characters of one value: a long scenario is cut, and says so

LONG = 160  # characters from which a text is folded

SCENARIO = "scenario"  # first among the texts
MAX_NOTES = 100  # of one run; the page counts the rest
SHOWN_APART = ("question", "notes")  # at the head of the page, and in a list


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The head of one run's record."""

    label: str
    kind: str
    notes: tuple[str, ...]  # what the run assumes, guesses or left out: the first MAX_NOTES
    num_more_notes: int
    facts: tuple[tuple[str, str], ...]  # (key, value), short ones
    texts: tuple[tuple[str, str], ...]  # (key, text), those of several lines: the scenario, the configuration


def read_provenance(runs: Sequence[Run]) -> tuple[Provenance, ...]:
    """Return everything `run.json` says of each run, as text; a long text that an earlier run has, by its label."""
    owners: dict[tuple[str, str], str] = {}
    return tuple(_without_repeats(_describe(run), owners) for run in runs)


def _without_repeats(own: Provenance, owners: dict[tuple[str, str], str]) -> Provenance:
    """Return a run's head without texts that `owners` has of other runs; adds its own to them."""
    facts, texts = list(own.facts), []
    for key, text in own.texts:
        owner = owners.setdefault((key, text), own.label)
        if owner == own.label:
            texts.append((key, text))
        else:
            facts.append((key, f"as of {owner}"))
    return replace(own, facts=tuple(facts), texts=tuple(texts))


def _describe(run: Run) -> Provenance:
    facts: list[tuple[str, str]] = []
    texts: list[tuple[str, str]] = []
    for key, value in sorted(run.record.run.items()):
        for name, text in _parts(key, value) if key not in SHOWN_APART else ():
            (texts if "\n" in text or len(text) > LONG else facts).append((name, _cut(text)))
    texts.sort(key=lambda part: part[0] != SCENARIO)
    notes = notes_of(run.record)
    return Provenance(
        label=run.label,
        kind=run.record.kind,
        notes=tuple(_cut(note) for note in notes[:MAX_NOTES]),
        num_more_notes=len(notes[MAX_NOTES:]),
        facts=tuple(facts),
        texts=tuple(texts),
    )


def _parts(key: str, value: Any) -> list[tuple[str, str]]:
    """Return a value as text; texts of several lines within a mapping stand apart, under a dotted name."""
    if isinstance(value, str):
        return [(key, _plain_lines(value))]
    if not isinstance(value, Mapping):
        return [(key, json.dumps(value, sort_keys=True, ensure_ascii=False, default=str))]
    prose = {name: part for name, part in value.items() if isinstance(part, str) and "\n" in part}
    rest = {name: part for name, part in value.items() if name not in prose}
    if any(isinstance(part, Mapping | list) for part in rest.values()):
        shown = json.dumps(rest, indent=2, sort_keys=True, ensure_ascii=False, default=str)
    else:
        shown = ", ".join(f"{name} {part}" for name, part in sorted(rest.items()))
    return [(key, shown), *((f"{key}.{name}", _plain_lines(part)) for name, part in sorted(prose.items()))]


def _plain_lines(text: str) -> str:
    """Return text with line ends of one kind and without tabs, which would be shown as escapes."""
    return text.replace("\r\n", "\n").expandtabs()


def _cut(text: str) -> str:
    rest = len(text) - MAX_TEXT
    return text if rest <= 0 else f"{text[:MAX_TEXT]}\n… {rest:,} more characters in run.json"
