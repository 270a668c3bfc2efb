"""What ranks that others have started make sure of before the first step: one version, one recipe, data that fits.

Each rank states what it has found, in JSON; rank 0 compares. What one rank refuses, all refuse, in the same words.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import Mistake, RefusedError
from fabrictune.trainer_probe.driver.input_pipeline import Machine

MAX_NAMED = 16  # ranks that a mistake names one by one


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a rank has found, JSON values only."""

    host: str
    is_first_there: bool  # of its machine, for which it has prepared the data
    versions: dict[str, str]
    settings: dict[str, Any] | None  # of its recipe, None where that could not be read
    tokens: str = ""  # the machine's token file
    checksum: int | None = None  # of that
    mistakes: tuple[Mistake, ...] = ()

    def to_json(self) -> str:
        """Return it as text of one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Statement":
        """Return what `to_json` gave."""
        values = json.loads(text)
        return cls(**{**values, "mistakes": tuple(Mistake(**mistake) for mistake in values["mistakes"])})


def judge(texts: Sequence[str]) -> str:
    """Return the verdict on all ranks' statements, as JSON: what is refused, or which machines there are."""
    statements = [Statement.from_json(text) for text in texts]
    mistakes = [*_own_mistakes(statements), *_differences(statements)]
    verdict: dict[str, Any] = {"mistakes": [asdict(mistake) for mistake in mistakes]}
    if not mistakes:
        verdict |= {"job": uuid.uuid4().hex, "machines": _machines(statements)}
    return json.dumps(verdict)


def machine_of(rank: int, verdict: str) -> Machine:
    """Return the machine of a rank; raises RefusedError where the verdict is one."""
    found = json.loads(verdict)
    if found["mistakes"]:
        raise RefusedError(*(Mistake(**mistake) for mistake in found["mistakes"]))
    machine = next(machine for machine in found["machines"] if rank in machine["ranks"])
    return Machine(ranks=tuple(machine["ranks"]), tokens=Path(machine["tokens"]), job=found["job"])


def _machines(statements: Sequence[Statement]) -> list[dict[str, Any]]:
    machines: dict[str, dict[str, Any]] = {}
    for rank, statement in enumerate(statements):
        machine = machines.setdefault(statement.host, {"ranks": [], "tokens": ""})
        machine["ranks"].append(rank)
        machine["tokens"] = machine["tokens"] or statement.tokens
    return list(machines.values())


def _own_mistakes(statements: Sequence[Statement]) -> Iterable[Mistake]:
    """Yield what ranks refuse by themselves, naming them unless it is all who looked."""
    ranks_by_mistake: dict[Mistake, list[int]] = {}
    for rank, statement in enumerate(statements):
        for mistake in statement.mistakes:
            ranks_by_mistake.setdefault(mistake, []).append(rank)
    first_there = [rank for rank, statement in enumerate(statements) if statement.is_first_there]
    for mistake, ranks in ranks_by_mistake.items():
        is_everybodys = ranks in (list(range(len(statements))), first_there)
        yield mistake if is_everybodys else replace(mistake, where=f"{_named(ranks)}: {mistake.where}")


def _differences(statements: Sequence[Statement]) -> Iterable[Mistake]:
    """Yield where ranks have something else than rank 0."""
    same_recipe = "start every rank with the same recipe and the same --set"
    yield from _compare([statement.versions for statement in statements], "install the same version on every machine")
    yield from _compare([statement.settings for statement in statements], same_recipe)
    checksums = [None if one.checksum is None else {"checksum of the token file": one.checksum} for one in statements]
    yield from _compare(checksums, "copy the token file to every machine again")


def _compare(found: Sequence[Mapping[str, Any] | None], next_step: str) -> Iterable[Mistake]:
    if found[0] is None:
        return
    for name, expected in found[0].items():
        ranks_by_value: dict[str, list[int]] = {}
        for rank, values in enumerate(found):
            if values is not None and values.get(name) != expected:
                ranks_by_value.setdefault(json.dumps(values.get(name)), []).append(rank)
        for value, ranks in ranks_by_value.items():
            allowed = f"{json.dumps(expected)}, as rank 0 has it"
            yield Mistake(where=f"{_named(ranks)}: {name}", found=value, allowed=allowed, next_step=next_step)


def _named(ranks: Sequence[int]) -> str:
    more = f" and {len(ranks) - MAX_NAMED} more" if len(ranks) > MAX_NAMED else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks[:MAX_NAMED]))}{more}"
