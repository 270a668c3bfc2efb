"""Checks of a run of nccl-tests against itself: its list of ranks, its columns of bandwidth, and its average.

The ratio of busbw to algbw follows from the operation and the number of ranks, so that a list of ranks that was cut
shows. Columns are rounded to hundredths of a GB/s, and every comparison leaves room for that.

Source: nccl-tests, src/common.cu (average over all rows and places, empty sizes included); doc/PERFORMANCE.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from fabrictune.collectives.bounds import bus_factor
from fabrictune.collectives.nccl.tests_output import BPS_PER_GB_PER_S, TestOutput, TestRow, Timing
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.finding_rules.collectives import (
    AVERAGE_CONTRADICTION,
    BANDWIDTH_CONTRADICTION,
    MISSING_RANKS,
)
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.foundation.traces import Operation
from fabrictune.foundation.units import BITS_PER_BYTE, NS_PER_S

MAX_SHOWN = 5
_ROUNDING_FRACTION = 0.005  # of times, which are printed with four digits or more
_ROUNDING_BPS = 0.006 * BPS_PER_GB_PER_S  # half of a hundredth, and a little
_LEAST_BPS = BPS_PER_GB_PER_S  # below it a hundredth is too much to tell a number of ranks by
_TWICE = (Operation.ALL_REDUCE,)
_ONCE = (Operation.REDUCE_SCATTER, Operation.ALL_GATHER, Operation.ALL_TO_ALL)


@dataclass(frozen=True, kw_only=True)
class RankRange:
    """The numbers of ranks that a run's columns allow; empty where they allow none."""

    least: int
    most: float  # infinite where they set no bound

    def __contains__(self, num_ranks: int) -> bool:
        return self.least <= num_ranks <= self.most

    @property
    def only(self) -> int:
        """The one number, 0 where there are several or none."""
        return self.least if self.least == self.most else 0

    def __str__(self) -> str:
        if self.least > self.most:
            return "no number of ranks"
        if self.only:
            return f"{self.only} ranks"
        return f"{self.least} ranks or more" if math.isinf(self.most) else f"{self.least} to {self.most:.0f} ranks"


def allowed_ranks(run: TestOutput, operation: Operation) -> RankRange:
    """Return the numbers of ranks with which the busbw of every row is its algbw times the bus factor."""
    least, most = 2, math.inf
    full = 2.0 if operation in _TWICE else 1.0
    for _, timing in _timings(run):
        algorithm_bps, bus_bps = timing.algorithm_bandwidth_bps, timing.bus_bandwidth_bps
        if operation not in (*_TWICE, *_ONCE) or algorithm_bps < _LEAST_BPS:
            continue
        low = (bus_bps - _ROUNDING_BPS) / (algorithm_bps + _ROUNDING_BPS) / full
        high = (bus_bps + _ROUNDING_BPS) / (algorithm_bps - _ROUNDING_BPS) / full
        least = max(least, math.ceil(1 / (1 - low))) if low < 1 else least
        most = min(most, math.floor(1 / (1 - high))) if high < 1 else most
    return RankRange(least=least, most=most)


def rank_count(run: TestOutput, operation: Operation) -> tuple[int, Finding | None]:
    """Return the number of ranks, and a finding where the list lacks some; raises InputError where it cannot be told.

    The list counts where it has no gap and the columns agree; else the one number that they allow; else, for a list
    with gaps, its highest number.
    """
    allowed, listed, missing = allowed_ranks(run, operation), run.num_ranks, run.missing_ranks
    if not missing and listed in allowed:
        return listed, None
    by_numbers = listed + len(missing)
    if allowed.only and allowed.only >= by_numbers:
        return allowed.only, _missing(run, allowed.only, f"busbw over algbw is that of {allowed}")
    if missing and listed and by_numbers in allowed:
        return by_numbers, _missing(run, by_numbers, f"busbw over algbw is that of {allowed}")
    if not missing and allowed.least > allowed.most:
        return listed, None  # rows that contradict one another say nothing of the list
    found = f"{listed} ranks listed{_without(run)}, where busbw over algbw is that of {allowed}"
    raise InputError(Mistake(where=run.rows[0].where, found=found, next_step="say it with --num-ranks"))


def bandwidth_contradictions(run: TestOutput, operation: Operation, num_ranks: int) -> Iterator[Finding]:
    """Yield a finding where busbw is not what size, time and ranks of its row give."""
    factor = bus_factor(operation, num_ranks)
    wrong: list[tuple[TestRow, Timing, float]] = []
    num_timings = 0
    for row, timing in _timings(run):
        num_timings += 1
        bus_bps = row.size_bytes * BITS_PER_BYTE / (timing.duration_ns / NS_PER_S) * factor
        if abs(bus_bps - timing.bus_bandwidth_bps) > _ROUNDING_FRACTION * bus_bps + _ROUNDING_BPS:
            wrong.append((row, timing, bus_bps))
    if not wrong:
        return
    row, timing, bus_bps = max(wrong, key=lambda one: abs(one[2] - one[1].bus_bandwidth_bps))
    yield BANDWIDTH_CONTRADICTION.finding(
        entity=f"{len(wrong)} of {num_timings} timings of {operation.name.lower()} by {num_ranks} ranks",
        actual=f"busbw {timing.bus_bandwidth_bps / BPS_PER_GB_PER_S:.2f} GB/s for {row.size_bytes} B",
        expected=f"{bus_bps / BPS_PER_GB_PER_S:.2f} GB/s by size, time and ranks",
        confidence=Confidence.MEASURED,
        evidence=tuple(row.where for row, _, _ in wrong[:MAX_SHOWN]),
    )


def average_contradictions(run: TestOutput) -> Iterator[Finding]:
    """Yield a finding where the printed average is not the mean of the rows."""
    bus_bps = [timing.bus_bandwidth_bps for _, timing in _timings(run, with_empty=True)]
    average_bps = run.average_bus_bandwidth_bps
    if average_bps is None or not bus_bps:
        return
    mean_bps = sum(bus_bps) / len(bus_bps)
    if abs(mean_bps - average_bps) <= _ROUNDING_BPS + 1e-4 * average_bps:
        return
    yield AVERAGE_CONTRADICTION.finding(
        entity=f"average of {len(bus_bps)} timings",
        actual=f"average {average_bps / BPS_PER_GB_PER_S:.4f} GB/s printed",
        expected=f"{mean_bps / BPS_PER_GB_PER_S:.4f} GB/s, the mean of the rows in the file",
        confidence=Confidence.MEASURED,
        evidence=(run.rows[0].where,),
    )


def notes_on(run: TestOutput) -> Iterator[str]:
    """Yield what of a run is left out, with its count."""
    num_empty = sum(row.size_bytes == 0 for row in run.rows)
    if num_empty:
        yield f"rows of 0 B, which have no bandwidth, left out: {num_empty} of {len(run.rows)}"
    num_timeless = sum(row.size_bytes > 0 and not any(_usable(timing) for timing in _places(row)) for row in run.rows)
    if num_timeless:
        yield f"rows without a time, left out: {num_timeless} of {len(run.rows)}"
    if run.num_unread_rows:
        yield f"lines that begin like a row and are not read: {run.num_unread_rows}"
    if run.average_bus_bandwidth_bps is None:
        yield "no average at the end: the run did not end, or the file is cut"


def _missing(run: TestOutput, num_ranks: int, why: str) -> Finding:
    return MISSING_RANKS.finding(
        entity=f"run of {num_ranks} ranks",
        actual=f"{run.num_ranks} listed{_without(run)}",
        expected=f"all {num_ranks}; {why}",
        confidence=Confidence.MEASURED,
        evidence=(run.rows[0].where,),
    )


def _without(run: TestOutput) -> str:
    if not run.missing_ranks:
        return ""
    shown = ", ".join(map(str, run.missing_ranks[:MAX_SHOWN]))
    more = f" and {len(run.missing_ranks) - MAX_SHOWN} more" if len(run.missing_ranks) > MAX_SHOWN else ""
    return f", without {shown}{more}"


def _places(row: TestRow) -> tuple[Timing | None, Timing | None]:
    return row.out_of_place, row.in_place


def _usable(timing: Timing | None) -> bool:
    return timing is not None and timing.duration_ns > 0


def _timings(run: TestOutput, *, with_empty: bool = False) -> Iterator[tuple[TestRow, Timing]]:
    """Yield every timing with its row; without those of empty sizes unless they are asked for."""
    for row in run.rows:
        for timing in _places(row):
            if timing is not None and (with_empty or (_usable(timing) and row.size_bytes > 0)):
                yield row, timing
