"""Failure tables of one's own, from YAML or CSV.

A CSV file has a row a cause and the columns `cause`, `count` and `node_days` or `job_days`; optional are `loses`
(process, node, nodes), `detect` and `diagnose` (durations: `60 s`) and `planned` (yes, no). An empty count is a rate
that is known exactly: one in so many days. A YAML file has the same keys in a list `causes`; `name`, `source` and one
exposure for all of them may stand beside it.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import load_yaml, read_text
from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote
from fabrictune.foundation.units import PS_PER_S, parse_duration_ps
from fabrictune.trainer_probe.survival.failures import LOSSES, FailureCause, FailureTable
from fabrictune.trainer_probe.survival.published import PUBLISHED

MAX_FILE_BYTES = 4 * 2**20
MAX_CAUSES = 1000
EXPOSURES = {"node_days": "node", "job_days": "job"}
KEYS = ("cause", "count", *EXPOSURES, "loses", "detect", "diagnose", "planned")
SHARED = ("name", "source", *EXPOSURES, "causes")
_TRUTH = {"yes": True, "true": True, "no": False, "false": False, "": False}


def find_failures(text: str, *, where: str) -> FailureTable:
    """Return the published table of a name, or that of a file; raises InputError."""
    if text in PUBLISHED:
        return PUBLISHED[text]
    path = Path(text)
    if not path.is_file():
        nearest = nearest_name(text, PUBLISHED)
        allowed = f"{', '.join(PUBLISHED)}, or a .yaml or .csv file"
        raise InputError(Mistake(where=where, found=quote(text), allowed=allowed, nearest=nearest))
    return read_failures(path)


def read_failures(path: Path) -> FailureTable:
    """Return the failure table of a file; raises InputError with all its mistakes."""
    rows, places, shared = _csv_rows(path) if path.suffix.lower() == ".csv" else _yaml_rows(path)
    if not 0 < len(rows) <= MAX_CAUSES:
        raise InputError(Mistake(where=str(path), found=f"{len(rows)} causes", allowed=f"1 to {MAX_CAUSES}"))
    mistakes: list[Mistake] = []
    causes = [_Row(values, place, mistakes).cause() for values, place in zip(rows, places, strict=True)]
    names = [cause.name for cause in causes]
    twice = sorted({name for name in names if names.count(name) > 1})
    mistakes += [Mistake(where=str(path), found=f"cause {quote(name)} twice", allowed="once") for name in twice]
    if all(cause.is_planned for cause in causes):
        mistakes.append(Mistake(where=str(path), found="no cause that is not planned", allowed="one or more"))
    if mistakes:
        raise InputError(*mistakes)
    uncounted = [cause.name for cause in causes if cause.count is None]
    notes = (f"{len(uncounted)} rates have no count and are taken as exact",) if uncounted else ()
    return FailureTable(
        name=str(shared.get("name", path.stem)),
        source=str(shared.get("source", path.name)),
        causes=tuple(causes),
        notes=notes,
    )


def _csv_rows(path: Path) -> tuple[list[dict[str, Any]], list[str], dict[str, Any]]:
    lines = read_text(path, max_bytes=MAX_FILE_BYTES).splitlines()
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    try:
        reader = csv.DictReader((line for _, line in numbered), strict=True, restkey="", restval="")
        rows = [{key.strip(): _text(value) for key, value in row.items()} for row in reader]
    except csv.Error as error:
        raise InputError(Mistake(where=str(path), found=f"not CSV ({error})")) from error
    return rows, [f"{path}:{number}" for number, _ in numbered[1:]][: len(rows)], {}


def _text(value: Any) -> str:
    return " ".join(value) if isinstance(value, list) else str(value).strip()


def _yaml_rows(path: Path) -> tuple[list[dict[str, Any]], list[str], dict[str, Any]]:
    document = load_yaml(path, max_bytes=MAX_FILE_BYTES)
    tree = document.tree
    entries = tree.get("causes") if isinstance(tree, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(Mistake(where=str(path), found="no list of causes", allowed=f"keys {', '.join(SHARED)}"))
    unknown = [
        Mistake(
            where=document.where(key), found=quote(key), allowed=", ".join(SHARED), nearest=nearest_name(key, SHARED)
        )
        for key in tree
        if key not in SHARED
    ]
    if unknown:
        raise InputError(*unknown)
    exposure = {key: tree[key] for key in EXPOSURES if key in tree}
    rows = [entry if set(EXPOSURES) & set(entry) else {**entry, **exposure} for entry in entries]
    return rows, [document.where("causes", number) for number in range(len(rows))], tree


class _Row:
    """One cause as it was written, and what is wrong with it."""

    def __init__(self, values: Mapping[str, Any], place: str, mistakes: list[Mistake]) -> None:
        self._values, self._place, self._mistakes = values, place, mistakes

    def cause(self) -> FailureCause:
        """Return the cause; what is wrong is added to the mistakes."""
        for key in set(self._values) - set(KEYS):
            self._refuse(key, quote(str(key)), f"columns {', '.join(KEYS)}", nearest_name(str(key), KEYS))
        given = [key for key in EXPOSURES if self._get(key) != ""]
        if len(given) != 1:
            self._refuse("node_days", f"{len(given)} exposures", "node_days or job_days")
        exposure = given[0] if given else "node_days"
        name = str(self._get("cause"))
        if not name:
            self._refuse("cause", "no name", "a name")
        return FailureCause(
            name=name,
            count=None if self._get("count") == "" else self._number("count", least=0.0),
            exposure_days=self._number(exposure, least=1e-9),
            per="node" if EXPOSURES[exposure] == "node" else "job",
            loses=self._one_of("loses", LOSSES, "node"),
            detect_s=self._duration("detect"),
            diagnose_s=self._duration("diagnose"),
            is_planned=_TRUTH[self._one_of("planned", tuple(_TRUTH), "")],
        )

    def _get(self, key: str) -> Any:
        value = self._values.get(key, "")
        return "" if value is None else value

    def _number(self, key: str, *, least: float) -> float:
        try:
            value = float(self._get(key))
        except (TypeError, ValueError):
            value = math.nan
        if not least <= value < 1e15:
            self._refuse(key, quote(str(self._get(key))), f"a number, at least {least:g}")
            return 1.0
        return value

    def _duration(self, key: str) -> float | None:
        if (text := str(self._get(key))) == "":
            return None
        try:
            return parse_duration_ps(text, where=f"{self._place}: {key}") / PS_PER_S
        except InputError as error:
            self._mistakes.extend(error.mistakes)
            return None

    def _one_of(self, key: str, allowed: Sequence[Any], default: Any) -> Any:
        value = self._get(key)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if text == "":
            return default
        if text not in allowed:
            self._refuse(key, quote(text), ", ".join(filter(None, allowed)), nearest_name(text, allowed))
            return default
        return text

    def _refuse(self, key: str, found: str, allowed: str, nearest: str = "") -> None:
        where = f"{self._place}: {key}" if key else self._place
        self._mistakes.append(Mistake(where=where, found=found, allowed=allowed, nearest=nearest))
