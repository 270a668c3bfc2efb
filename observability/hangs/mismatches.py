"""Members of a group that ask for different requests under one number.

Kinds are compared, and sizes where a request has one size on all members. RAS counts requests by kind only: as many in
all, and other counts of single kinds, is a mismatch.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from fabrictune.foundation.wording import count
from fabrictune.observability.hangs.blame import MAX_PROCESSES
from fabrictune.observability.hangs.diagnosis import Cause, Certainty, Diagnosis
from fabrictune.observability.hangs.evidence import UNKNOWN, Request
from fabrictune.observability.hangs.job import Job, Table

_SAME_SIZE = ("reduce", "broadcast", "gather", "barrier")  # parts of names: all-reduce, reduce-scatter, all-gather


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """Members that ask for something else than the others."""

    table: Table
    number: int
    processes: tuple[int, ...]
    others: tuple[int, ...]
    theirs: str
    ours: str  # what the others ask for
    is_minority: bool


def diagnose_mismatch(job: Job, *, num_waiting: int) -> Diagnosis | None:
    """Return the diagnosis of members that ask for another request under the number of the others' one."""
    found = find_mismatch(job)
    if found is None:
        return None
    return Diagnosis(
        cause=Cause.MISMATCH,
        certainty=Certainty.LIKELY if found.is_minority else Certainty.POSSIBLE,
        processes=found.processes[:MAX_PROCESSES],
        group=found.table.group,
        number=found.number,
        request=found.theirs,
        source=found.table.source,
        num_waiting=num_waiting,
        evidence=(
            *(f"{job.processes[process]} asks for {found.theirs}" for process in found.processes[:8]),
            f"{count(len(found.others), 'other member')} for {found.ours} "
            f"({found.table.source}, number {found.number})",
            *(found.table.rows[process].where for process in found.processes[:8]),
        ),
        alternatives=() if found.is_minority else ("the other members ask for the wrong one; neither is a majority",),
    )


def find_mismatch(job: Job) -> Mismatch | None:
    """Return the mismatch of the lowest number, None where there is none."""
    usual = _usual(job)
    found = [mismatch for table in job.tables if (mismatch := _by_request(table, usual) or _by_counts(table, usual))]
    return min(found, key=lambda one: (one.number, one.table.group), default=None)


def _usual(job: Job) -> Counter[Any]:
    """Return how often a kind, and a pattern of counts, is seen in all groups: of two members it says who is odd."""
    seen = Counter[Any]()
    for table in job.tables:
        for row in table.rows.values():
            seen.update({_key(request) for request in row.requests.values()})
            if row.counts:
                seen[tuple(sorted(row.counts.items()))] += 1
    return seen


def _by_request(table: Table, usual: Counter[Any]) -> Mismatch | None:
    numbers = sorted({number for row in table.rows.values() for number in row.requests})
    for number in numbers:
        members = {process: row.requests[number] for process, row in table.rows.items() if number in row.requests}
        of_key: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for process, request in members.items():
            of_key[_key(request)].append(process)
        if len(of_key) > 1:
            texts = {key: str(members[processes[0]]) for key, processes in of_key.items()}
            return _mismatch(table, number, dict(of_key), texts, usual)
    return None


def _key(request: Request) -> tuple[str, int]:
    kind = request.kind.lower().replace("_", "")
    has_one_size = any(part in kind for part in _SAME_SIZE) and not kind.endswith(("v", "coalesced"))
    return kind, request.size if has_one_size else UNKNOWN


def _by_counts(table: Table, usual: Counter[Any]) -> Mismatch | None:
    """Return a mismatch by counts of kinds, where all members have launched as many requests in all."""
    rows = {process: row for process, row in table.rows.items() if row.counts}
    if len({row.issued for row in rows.values()}) != 1:
        return None
    of_key: defaultdict[tuple[tuple[str, int], ...], list[int]] = defaultdict(list)
    for process, row in rows.items():
        of_key[tuple(sorted(row.counts.items()))].append(process)
    if len(of_key) < 2:
        return None
    most = max(of_key, key=lambda key: (len(of_key[key]), usual[key]))
    texts = {key: _counted(key, most) for key in of_key}
    number = next(row.issued for row in rows.values() if row.issued is not None)
    return _mismatch(table, number, dict(of_key), texts, usual)


def _counted(key: tuple[tuple[str, int], ...], most: tuple[tuple[str, int], ...]) -> str:
    ours = dict(most)
    changed = [f"{kind} {number:,}" for kind, number in key if key == most or ours.get(kind) != number]
    return ", ".join(changed)


def _mismatch(
    table: Table, number: int, of_key: dict[Any, list[int]], texts: dict[Any, str], usual: Counter[Any]
) -> Mismatch:
    weight = {key: (len(processes), usual[key]) for key, processes in of_key.items()}
    ours = max(of_key, key=lambda key: weight[key])
    others = [key for key in of_key if key != ours]
    is_tie = all(weight[key] == weight[ours] for key in others)
    processes = tuple(process for key in of_key if is_tie or key != ours for process in of_key[key])
    return Mismatch(
        table=table,
        number=number,
        processes=processes,
        others=tuple(of_key[ours]),
        theirs=texts[others[0]],
        ours=texts[ours],
        is_minority=not is_tie,
    )
