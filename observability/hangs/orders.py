"""Processes that have come further than their fellow members along one axis, and less far along another.

Members of a group run one program. Of two of them the one that has come further has issued at least as many requests to
each of its groups; one that left out a request has not. It is out of order with many, each of these with it alone.

Left out: messages, and groups whose sources have no name for their axis.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from fabrictune.observability.hangs.job import Job

MAX_MEMBERS = 64  # of a group that are compared with a process


def find_out_of_order(processes: Iterable[int], job: Job) -> int | None:
    """Return the one process that is out of order with the most of its fellows, None where two share that."""
    issued = _issued_by_label(job)
    scores = {process: _num_conflicts(process, issued, job) for process in processes}
    most = max(scores.values(), default=0)
    first = [process for process, score in scores.items() if score == most]
    return first[0] if most and len(first) == 1 else None


def _issued_by_label(job: Job) -> Mapping[int, Mapping[tuple[str, str], int]]:
    """Return how many requests each process has issued, by source and axis; only for groups of several members."""
    issued: defaultdict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    for table in job.tables:
        label = job.groups[table.group].label
        if not label or len(job.groups[table.group].members) < 2 or " to " in job.groups[table.group].names[0]:
            continue
        for process, row in table.rows.items():
            if row.issued is not None:
                issued[process][table.source, label] = row.issued
    return issued


def _num_conflicts(process: int, issued: Mapping[int, Mapping[tuple[str, str], int]], job: Job) -> int:
    own = issued.get(process, {})
    fellows = {
        member
        for table in job.tables
        if process in table.rows and job.groups[table.group].label
        for member in list(table.rows)[:MAX_MEMBERS]
    }
    return sum(_is_out_of_order(own, issued.get(fellow, {})) for fellow in fellows if fellow != process)


def _is_out_of_order(first: Mapping[tuple[str, str], int], second: Mapping[tuple[str, str], int]) -> bool:
    signs = {first[axis] > second[axis] for axis in first if axis in second and first[axis] != second[axis]}
    return len(signs) == 2
