"""Checks of all ranks of a launcher before the first step: one version, one recipe, data that fits.

Each rank reports in JSON; rank 0 compares. What one rank refuses, all refuse, with the same message.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import Mistake, RefusedError
from fabrictune.trainer_probe.training.input_pipeline import Machine

MAX_NAMED = 16  # ranks that a mistake lists by number


@dataclass(frozen=True, kw_only=True)
class RankReport:
    """Versions, recipe and data of one rank, JSON values only."""

    host: str
    is_first_there: bool  # of its machine, for which it has prepared the data
    versions: dict[str, str]
    settings: dict[str, Any] | None  # of its recipe, None where that could not be read
    tokens: str = ""  # the machine's token file
    checksum: int | None = None  # of that
    mistakes: tuple[Mistake, ...] = ()

    def to_json(self) -> str:
        """Return the report as one line of text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "RankReport":
        """Return the report that `to_json` wrote."""
        values = json.loads(text)
        return cls(**{**values, "mistakes": tuple(Mistake(**mistake) for mistake in values["mistakes"])})


def check_ranks(texts: Sequence[str]) -> str:
    """Return the result of checking all ranks' reports, as JSON: the mistakes, or which machines there are."""
    reports = [RankReport.from_json(text) for text in texts]
    mistakes = [*_own_mistakes(reports), *_differences(reports)]
    result: dict[str, Any] = {"mistakes": [asdict(mistake) for mistake in mistakes]}
    if not mistakes:
        result |= {"job": uuid.uuid4().hex, "machines": _machines(reports)}
    return json.dumps(result)


def machine_of(rank: int, result: str) -> Machine:
    """Return the machine of a rank from the result of `check_ranks`; raises RefusedError with its mistakes."""
    values = json.loads(result)
    if values["mistakes"]:
        raise RefusedError(*(Mistake(**mistake) for mistake in values["mistakes"]))
    machine = next(machine for machine in values["machines"] if rank in machine["ranks"])
    return Machine(ranks=tuple(machine["ranks"]), tokens=Path(machine["tokens"]), job=values["job"])


def _machines(reports: Sequence[RankReport]) -> list[dict[str, Any]]:
    machines: dict[str, dict[str, Any]] = {}
    for rank, report in enumerate(reports):
        machine = machines.setdefault(report.host, {"ranks": [], "tokens": ""})
        machine["ranks"].append(rank)
        machine["tokens"] = machine["tokens"] or report.tokens
    return list(machines.values())


def _own_mistakes(reports: Sequence[RankReport]) -> Iterable[Mistake]:
    """Yield the mistakes that ranks report, with the ranks unless all that checked report the same."""
    ranks_by_mistake: dict[Mistake, list[int]] = {}
    for rank, report in enumerate(reports):
        for mistake in report.mistakes:
            ranks_by_mistake.setdefault(mistake, []).append(rank)
    first_there = [rank for rank, report in enumerate(reports) if report.is_first_there]
    for mistake, ranks in ranks_by_mistake.items():
        is_of_all = ranks in (list(range(len(reports))), first_there)
        yield mistake if is_of_all else replace(mistake, where=f"{_list(ranks)}: {mistake.where}")


def _differences(reports: Sequence[RankReport]) -> Iterable[Mistake]:
    """Yield where ranks differ from rank 0."""
    same_recipe = "start every rank with the same recipe and the same --set"
    yield from _compare([report.versions for report in reports], "install the same version on every machine")
    yield from _compare([report.settings for report in reports], same_recipe)
    checksums = [
        None if report.checksum is None else {"checksum of the token file": report.checksum} for report in reports
    ]
    yield from _compare(checksums, "copy the token file to every machine again")


def _compare(values_by_rank: Sequence[Mapping[str, Any] | None], next_step: str) -> Iterable[Mistake]:
    if values_by_rank[0] is None:
        return
    for name, expected in values_by_rank[0].items():
        ranks_by_value: dict[str, list[int]] = {}
        for rank, values in enumerate(values_by_rank):
            if values is not None and values.get(name) != expected:
                ranks_by_value.setdefault(json.dumps(values.get(name)), []).append(rank)
        for value, ranks in ranks_by_value.items():
            allowed = f"{json.dumps(expected)}, as on rank 0"
            yield Mistake(where=f"{_list(ranks)}: {name}", found=value, allowed=allowed, next_step=next_step)


def _list(ranks: Sequence[int]) -> str:
    more = f" and {len(ranks) - MAX_NAMED} more" if len(ranks) > MAX_NAMED else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks[:MAX_NAMED]))}{more}"
