"""What the processes of a job wait for, by each source's numbers of a group's requests.

A process that has issued request i of a group, and does not have it complete, waits for the members that have not
issued i. Where a source says what a process waits for, only that counts. A member of whom a source that covers the
whole group says nothing counts as one that has not issued, unless another member is seen to be behind, or another
source has its requests; one that is known to have ended always does.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from fabrictune.foundation.waits import Wait
from fabrictune.observability.hangs.evidence import Progress, SignKind
from fabrictune.observability.hangs.job import Job, Table


@dataclass(frozen=True, kw_only=True)
class GroupWait:
    """A process's wait for a request of a group, by one source."""

    process: int
    table: Table
    number: int
    blockers: tuple[int, ...]  # members that have not issued it; none: all have
    is_silent: bool  # the blockers are those of whom the source says nothing


def find_group_waits(job: Job) -> tuple[GroupWait, ...]:
    """Return all waits of all processes."""
    issuers: defaultdict[int, set[int]] = defaultdict(set)
    for table in job.tables:
        issuers[table.group].update(process for process, row in table.rows.items() if row.issued is not None)
    return tuple(wait for table in job.tables for wait in _waits_of(table, job, issuers[table.group]))


def merge_waits(waits: tuple[GroupWait, ...], *, without: frozenset[int] = frozenset()) -> Mapping[int, Wait]:
    """Return one wait for each process, for the members that keep any of its requests; `without` wait for nothing."""
    of_process: dict[int, list[GroupWait]] = {}
    for wait in waits:
        if wait.process not in without:
            of_process.setdefault(wait.process, []).append(wait)
    return {process: _merged(process, found) for process, found in of_process.items()}


def _merged(process: int, waits: list[GroupWait]) -> Wait:
    first = next((wait for wait in waits if wait.blockers), waits[0])
    return Wait(
        rank=process,
        group=first.table.group,
        number=first.number,
        members=tuple(first.table.rows),
        blockers=tuple(dict.fromkeys(blocker for wait in waits for blocker in wait.blockers)),
    )


def _waits_of(table: Table, job: Job, issuers: Set[int]) -> Iterator[GroupWait]:
    """Yield the waits of a table; `issuers` are members of its group whose requests any source has."""
    issued = {process: row.issued for process, row in table.rows.items() if row.issued is not None}
    if not issued:
        return
    most = max(issued.values())
    group = job.groups[table.group]
    unseen = tuple(process for process in group.members.values() if process not in table.rows)
    is_anyone_behind = any(number < most for number in issued.values())
    silent = tuple(process for process in unseen if process not in issuers)
    silent = silent if table.tells_all and not is_anyone_behind else ()
    ended = tuple(process for process in unseen if job.has(process, SignKind.GONE, SignKind.STOPPED))
    behind_of: dict[int, tuple[int, ...]] = {}
    for process, row in table.rows.items():
        number = _awaited(row, most, table)
        if number is None:
            continue
        if number not in behind_of:
            behind_of[number] = (*(other for other, last in issued.items() if last < number), *ended)
        behind = behind_of[number]
        blockers = behind or silent
        if blockers or row.completed is not None:
            yield GroupWait(
                process=process,
                table=table,
                number=number,
                blockers=tuple(blocker for blocker in blockers if blocker != process),
                is_silent=not behind and bool(silent),
            )


def _awaited(row: Progress, most: int, table: Table) -> int | None:
    """Return the first request of a process that is not complete, None where it waits for none."""
    if table.knows_waits:
        return row.waits_for
    if row.issued is None:
        return None
    if row.completed is None:
        return row.issued
    return row.completed + 1 if row.completed < row.issued else None
