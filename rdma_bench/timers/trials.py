"""Trials of a real adapter whose path was cut, from a record, and their result for given settings.

A record of `rdma timers measure` has them in its table `trials`.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.errors import Mistake, RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec

COLUMNS = ("timeout", "retries", "cut_ns", "status", "after_ns")
FOR_GOOD = -1
NONE = -1
SUCCESS, RETRIES_EXCEEDED = 0, 12
_SAME_CUT = 0.05  # cuts that differ by less count as one


@dataclass(frozen=True, kw_only=True)
class TimerTrial:
    """One cut of a path and what came of it."""

    spec: RetransmissionSpec
    cut_ns: int  # FOR_GOOD where the path did not come back
    status: int  # NONE where the trial's limit came first
    after_ns: int
    num_retransmissions: int = NONE  # as the sender's hardware counters have it; NONE where its driver counts none


def read_trials(directory: Path) -> tuple[TimerTrial, ...]:
    """Return the trials of a record; raises RecordError where it has none."""
    table = RunRecord.read(directory, tables=("trials",)).tables.get("trials")
    missing = [name for name in COLUMNS if name not in (table or {})]
    if table is None or missing:
        found = "no trials" if table is None else f"trials without {', '.join(missing)}"
        next_step = "give the folder that `fabrictune rdma timers measure` wrote"
        raise RecordError(Mistake(where=str(directory), found=found, next_step=next_step))
    return tuple(
        TimerTrial(
            spec=RetransmissionSpec(timeout_exponent=timeout, retries=retries),
            cut_ns=cut_ns,
            status=status,
            after_ns=after_ns,
        )
        for timeout, retries, cut_ns, status, after_ns in zip(*(table[name].tolist() for name in COLUMNS), strict=True)
    )


def median_gives_up_ns(trials: Sequence[TimerTrial], spec: RetransmissionSpec) -> float:
    """Return how long queue pairs with these settings took to give up; NaN where it was not tried."""
    return _median(
        trial.after_ns
        for trial in trials
        if trial.spec == spec and trial.cut_ns == FOR_GOOD and trial.status == RETRIES_EXCEEDED
    )


def median_stall_ns(trials: Sequence[TimerTrial], spec: RetransmissionSpec, flap_ns: float) -> float:
    """Return how long traffic stalled for a flap of that length; NaN where it was not tried or did not resume."""
    return _median(
        trial.after_ns
        for trial in trials
        if trial.spec == spec
        and trial.status == SUCCESS
        and trial.cut_ns != FOR_GOOD
        and math.isclose(trial.cut_ns, flap_ns, rel_tol=_SAME_CUT)
    )


def _median(times_ns: Iterable[int]) -> float:
    known = list(times_ns)
    return float(statistics.median(known)) if known else math.nan
