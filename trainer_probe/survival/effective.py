"""Effective time of a job that ran: over all of it, by part, by outage, and in windows.

Two figures, since two papers count differently: time of kept steps over all time (ByteRobust, cumulative and sliding),
and kept steps times their median over all time (MegaScale), which leaves out what a step takes longer than that.

Source: MegaScale (NSDI'24), section 4; ByteRobust (SOSP'25), section 8.

Shapes: W windows.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.units import NS_PER_S
from fabrictune.trainer_probe.survival.job_time import KEPT, PARTS, RECOMPUTED, JobTime, Outage, Period

NUM_WINDOWS = 48
WINDOW_NS = 3600 * NS_PER_S
WINDOWS_A_JOB = 20  # of a job that is shorter than so many hours


@dataclass(frozen=True, kw_only=True)
class OutageTime:
    """What an outage cost, in time by part; of steps that were done again, their first time."""

    outage: Outage
    parts_ns: Mapping[str, int]
    lost_steps: int

    @property
    def total_ns(self) -> int:
        """Return all of it."""
        return sum(self.parts_ns.values())


@dataclass(frozen=True, kw_only=True, eq=False)
class Windows:
    """The job's time in equal windows, the last of them shorter."""

    end_ns_W: IntArray
    parts_ns: Mapping[str, IntArray]  # by part, [W]
    cumulative_W: FloatArray  # of the time up to the end of the window
    sliding_W: FloatArray  # of `width_ns` up to it
    width_ns: int


@dataclass(frozen=True, kw_only=True)
class EffectiveTime:
    """A job's effective time."""

    total_ns: int
    parts_ns: Mapping[str, int]  # by name of PARTS; they sum to the total
    num_steps: int  # kept
    num_recomputed: int
    median_step_ns: float  # of kept steps; 0 without one
    outages: tuple[OutageTime, ...]
    windows: Windows

    @property
    def effective_fraction(self) -> float:
        """Return the time of kept steps over all time."""
        return self.parts_ns[KEPT] / self.total_ns if self.total_ns else 0.0

    @property
    def by_iterations_fraction(self) -> float:
        """Return kept steps times their median over all time."""
        return self.num_steps * self.median_step_ns / self.total_ns if self.total_ns else 0.0


def effective_time(time: JobTime, *, window_ns: int | None = None) -> EffectiveTime:
    """Return a job's effective time; the sliding window is an hour, or a twentieth of a shorter job."""
    parts = dict.fromkeys(PARTS, 0)
    for period in time.periods:
        parts[period.part] += period.duration_ns
    assert sum(parts.values()) == time.total_ns, "a job's parts are its whole"
    kept = [period for period in time.periods if period.part == KEPT and period.num_steps]
    width_ns = window_ns or max(1, min(WINDOW_NS, time.total_ns // WINDOWS_A_JOB))
    return EffectiveTime(
        total_ns=time.total_ns,
        parts_ns=parts,
        num_steps=sum(period.num_steps for period in kept),
        num_recomputed=sum(period.num_steps for period in time.periods if period.part == RECOMPUTED),
        median_step_ns=_median_step_ns(time.periods),
        outages=_outages(time),
        windows=_windows(time, width_ns),
    )


def _median_step_ns(periods: Sequence[Period]) -> float:
    """Return the median time of kept steps, with what was taken back for each."""
    lasted: defaultdict[tuple[int, int], int] = defaultdict(int)
    counts: dict[tuple[int, int], int] = {}
    for period in periods:
        if period.part == KEPT:
            key = (period.generation, period.step)
            lasted[key] += period.duration_ns
            counts[key] = counts.get(key, 0) + period.num_steps
    each = [lasted[key] / count for key, count in counts.items() if count for _ in range(min(count, 1000))]
    return float(np.median(each)) if each else 0.0


def _outages(time: JobTime) -> tuple[OutageTime, ...]:
    parts: list[defaultdict[str, int]] = [defaultdict(int) for _ in time.outages]
    steps = [0] * len(time.outages)
    for period in time.periods:
        if period.outage >= 0:
            parts[period.outage][period.part] += period.duration_ns
            steps[period.outage] += period.num_steps if period.part == RECOMPUTED else 0
    return tuple(
        OutageTime(outage=outage, parts_ns=dict(own), lost_steps=lost)
        for outage, own, lost in zip(time.outages, parts, steps, strict=True)
    )


def _windows(time: JobTime, width_ns: int) -> Windows:
    """Return the parts in at most NUM_WINDOWS windows: cumulative times at their ends, and their differences."""
    begin_ns = time.periods[0].begin_ns if time.periods else 0
    count = min(NUM_WINDOWS, time.total_ns)
    ends = [begin_ns + time.total_ns * (number + 1) // count for number in range(count)]
    end_ns_W = np.array(ends, np.int64)
    sums = {part: _sums(time.periods, part, end_ns_W) for part in PARTS}
    before_W = _sums(time.periods, KEPT, np.maximum(end_ns_W - width_ns, begin_ns))
    elapsed_W = (end_ns_W - begin_ns).astype(np.float64)
    return Windows(
        end_ns_W=end_ns_W - begin_ns,
        parts_ns={part: np.diff(sums_W, prepend=0) for part, sums_W in sums.items()},
        cumulative_W=sums[KEPT] / np.maximum(elapsed_W, 1),
        sliding_W=(sums[KEPT] - before_W) / np.maximum(np.minimum(elapsed_W, width_ns), 1),
        width_ns=width_ns,
    )


def _sums(periods: Sequence[Period], part: str, until_W: IntArray) -> IntArray:
    """Return the time of a part up to each moment."""
    own = [period for period in periods if period.part == part]
    begins = np.array([period.begin_ns for period in own], np.int64)
    lengths = np.array([period.duration_ns for period in own], np.int64)
    before = np.concatenate([[0], np.cumsum(lengths)])
    index_W = np.searchsorted(begins, until_W, side="left")
    last_W = np.maximum(index_W - 1, 0)
    over_W = (
        np.where(index_W > 0, np.maximum(begins[last_W] + lengths[last_W] - until_W, 0), 0)
        if own
        else np.zeros(len(until_W), np.int64)
    )
    return np.asarray(before[index_W] - over_W)
