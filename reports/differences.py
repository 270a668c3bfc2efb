"""What differs between the runs of a page: the keys of their scenarios that do not have the same value in all.

A comparison answers for these keys together: where several differ, no single one is the cause.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import key_path, parse_yaml
from fabrictune.foundation.errors import InputError
from fabrictune.reports.blocks import MISSING, Section, Table, listed, plural, shortened, words
from fabrictune.reports.record_view import Run

SEED = "seed"
NAMES = ("name", "question")  # what a scenario is called and asks: they differ wherever anything does
MAX_ROWS = 40
MAX_TEXT = 120  # characters of a value
MAX_SCENARIO = 1_000_000  # characters of a text that is read; generated ones are longer

Values = Mapping[str, str]


def differences_section(runs: Sequence[Run]) -> Section | None:
    """Return a row for each key that differs, or None for one run and where no two have a scenario."""
    values = {run.label: found for run in runs if (found := scenario_values(run))}
    if len(values) < 2:
        return None
    keys = list(dict.fromkeys(key for found in values.values() for key in found))
    differing = [key for key in keys if len({found.get(key) for found in values.values()}) > 1]
    rows = tuple(
        (words(key), *(words(_shown(found.get(key))) for found in values.values())) for key in differing[:MAX_ROWS]
    )
    num_more = len(differing) - len(rows)
    table = Table(
        caption=f"{plural(len(differing), 'key')} of {len(keys):,} that the scenarios set; {MISSING} is the default",
        headings=("Key", *values),
        rows=rows,
        left_out=f"{plural(num_more, 'key')} more in the scenarios under Provenance." if num_more else "",
        is_sortable=False,
    )
    questions = {run.record.run.get("question") for run in runs if run.label in values}
    lead = _lead(differing) + (" The scenarios do not ask the same question." if len(questions) > 1 else "")
    if unread := [run.label for run in runs if run.label not in values]:
        lead += f" Not compared, without a scenario that could be read: {listed(unread)}."
    return Section(anchor="differences", title="What differs", lead=lead, blocks=(table,) if rows else ())


def _lead(differing: Sequence[str]) -> str:
    """Return what the results are the effect of; seeds are chance."""
    if not differing:
        return "The scenarios set the same; what differs in the results is due to the version or the machine."
    keys = [key for key in differing if key != SEED]
    chance = " and that of the seeds" if len(keys) < len(differing) else ""
    if not keys:
        return "Only the seeds of the scenarios differ, and what follows is chance."
    if len(keys) == 1:
        return f"One key of the scenarios differs, and what follows is its effect{chance}."
    return f"Several keys differ; what follows is the effect of all of them together{chance}."


def scenario_values(run: Run) -> Values:
    """Return what a run's scenario sets, by key; nothing without a scenario that can be read.

    Names are left out, and the seed is the one that the run had.
    """
    return run.keep("scenario", lambda: _values(run))


def _values(run: Run) -> Values:
    text = run.record.run.get("scenario")
    if not isinstance(text, str) or len(text) > MAX_SCENARIO:
        return {}
    try:
        tree = parse_yaml(text, Path("scenario")).tree
    except InputError:
        return {}
    seed = run.record.run.get(SEED)
    found = dict(_leaves(tree, ()))
    return {**found, SEED: str(seed)} if seed is not None else found


def _leaves(tree: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str, str]]:
    """Yield the values of a document by their paths; a list is one value."""
    if isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            if path or key not in NAMES:
                yield from _leaves(value, (*path, str(key)))
    elif path:
        yield key_path(path), tree if isinstance(tree, str) else json.dumps(tree, ensure_ascii=False, default=str)


def _shown(value: str | None) -> str:
    if value is None:
        return MISSING
    return shortened(value, MAX_TEXT)
