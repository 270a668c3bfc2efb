"""The waits-for graph of a job, and where its waits end.

A wait ends at a process that waits for nobody, or at a request that all members have issued. Processes whose stack is
in a loader, a checkpoint or a garbage collection wait for nobody, whatever requests they have open.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fabrictune.foundation.waits import Wait, find_roots
from fabrictune.observability.hangs.job import Job
from fabrictune.observability.hangs.own_causes import own_cause
from fabrictune.observability.hangs.waits import GroupWait, find_group_waits, merge_waits


@dataclass(frozen=True, kw_only=True)
class WaitGraph:
    """Who waits for whom in a job."""

    job: Job
    waits: tuple[GroupWait, ...]
    merged: Mapping[int, Wait]  # one for each process that waits
    ends: tuple[int, ...]  # processes that others wait for, and that wait for nobody
    stuck: tuple[int, ...]  # processes that wait only for requests that all members have issued

    def reaching(self, guilty: set[int]) -> set[int]:
        """Return the processes whose waits end at some processes."""
        waiters: dict[int, list[int]] = {}
        for process, wait in self.merged.items():
            for blocker in wait.blockers:
                waiters.setdefault(blocker, []).append(process)
        found: set[int] = set()
        open_processes = list(guilty)
        while open_processes:
            new = [one for one in waiters.get(open_processes.pop(), ()) if one not in found and one not in guilty]
            found.update(new)
            open_processes += new
        return found


def make_graph(job: Job) -> WaitGraph:
    """Return the graph of all that wait in a job."""
    busy = frozenset(process for process in job.signs if own_cause(process, job) is not None)
    waits = find_group_waits(job)
    merged = merge_waits(waits, without=busy)
    roots = find_roots(merged, merged)
    return WaitGraph(
        job=job,
        waits=waits,
        merged=merged,
        ends=tuple(root for root in roots if root not in merged),
        stuck=tuple(root for root in roots if root in merged),
    )
