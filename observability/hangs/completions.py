"""What completions alone say, where no source knows which requests are open."""

from fabrictune.observability.hangs.blame import MAX_PROCESSES
from fabrictune.observability.hangs.diagnosis import Cause, Certainty, Diagnosis
from fabrictune.observability.hangs.incomplete import blame_request
from fabrictune.observability.hangs.job import Job
from fabrictune.observability.hangs.waits import GroupWait


def diagnose_lacking(job: Job) -> Diagnosis | None:
    """Return the diagnosis of members that lack a completion which others of their group have."""
    for table in job.tables:
        done = {process: row.completed for process, row in table.rows.items() if row.completed is not None}
        if any(row.issued is not None for row in table.rows.values()) or len(done) < 2:
            continue
        most = max(done.values())
        behind = [process for process, number in done.items() if number < most]
        if behind:
            wait = GroupWait(process=behind[0], table=table, number=most, blockers=(), is_silent=False)
            return blame_request(Cause.TRANSPORT, Certainty.POSSIBLE, behind, wait, job)
    return None


def diagnose_earliest(job: Job) -> Diagnosis | None:
    """Return the diagnosis of those that completed their last request before all others.

    None where a source that knows which requests are open says that none is.
    """
    if any(row.issued is not None for table in job.tables for row in table.rows.values()):
        return None
    latest: dict[int, tuple[int, str]] = {}
    for table in job.tables:
        for process, row in table.rows.items():
            if row.time_us is not None:
                latest[process] = max(latest.get(process, (row.time_us, row.where)), (row.time_us, row.where))
    if len(latest) < 2 or len({time for time, _ in latest.values()}) < 2:
        return None
    first = min(time for time, _ in latest.values())
    guilty = [process for process, (time, _) in latest.items() if time == first]
    return Diagnosis(
        cause=Cause.EARLIEST,
        certainty=Certainty.POSSIBLE,
        processes=tuple(guilty[:MAX_PROCESSES]),
        evidence=tuple(latest[process][1] for process in guilty[:8]),
        alternatives=("completions alone do not say who waits; clocks of hosts may differ",),
    )
