"""A job's runs event by event: what single runs vary, and a check of the closed form.

Each failure, recovery, save, upload and spare is one event; nothing is averaged. What differs from the closed form:
spares are taken and repaired one by one, a run begins at its first step and ends at its last moment, and rates may be
others in each run.
"""

from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.quantiles import student_t_90
from fabrictune.foundation.seeds import stream
from fabrictune.trainer_probe.survival.model import MEMORY, STORAGE, FailureModel

_BLOCK = 4096  # random numbers at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedRuns:
    """Effective time of each run, and its failures."""

    effective_R: FloatArray
    failures_R: FloatArray

    @property
    def mean(self) -> float:
        """Return the mean over the runs."""
        return float(self.effective_R.mean())

    @property
    def error(self) -> float:
        """Return the standard error of the mean."""
        return float(self.effective_R.std(ddof=1) / np.sqrt(len(self.effective_R)))

    @property
    def half_width(self) -> float:
        """Return half the 90 % interval of the mean: the simulation's own error."""
        return student_t_90(len(self.effective_R) - 1) * self.error


def simulate(model: FailureModel, *, duration_s: float, seed: int) -> SimulatedRuns:
    """Return one run for each draw of the model's rates."""
    num_runs = model.rates_CD.shape[1]
    runs = [_Run(model, number, stream(seed, "run", number)) for number in range(num_runs)]
    effective = [run.work_until(duration_s) / duration_s for run in runs]
    return SimulatedRuns(
        effective_R=np.array(effective), failures_R=np.array([run.num_failures for run in runs], np.float64)
    )


@dataclass(kw_only=True)
class _Uploads:
    """Saves that are on their way to storage, and the last that is there, by number of the save."""

    pending: list[tuple[float, int]] = field(default_factory=list)
    durable: int = 0

    def at(self, time_s: float) -> int:
        """Return the last save that storage has at a time."""
        self.durable = max([self.durable, *(save for done_s, save in self.pending if done_s <= time_s)])
        self.pending = [(done_s, save) for done_s, save in self.pending if done_s > time_s]
        return self.durable


class _Run:
    """One run: from the first step to its end."""

    def __init__(self, model: FailureModel, number: int, generator: np.random.Generator) -> None:
        job = model.job
        rates_C = model.rates_CD[:, number]
        self._model, self._job, self._generator = model, job, generator
        self._mean_s, self._shares_C = 1 / rates_C.sum(), np.cumsum(rates_C / rates_C.sum())
        self._stretch = float(model.stretch_D[number])
        self._segment_s = job.segment_s * self._stretch + job.save_stall_s
        self._count = job.saves_per_upload
        self._in_repair: list[float] = []
        self._uploads = _Uploads()
        self._gaps: list[float] = []
        self._causes: list[int] = []
        self.num_failures = 0

    def work_until(self, end_s: float) -> float:
        """Return the work that is done, and not lost, at the end."""
        time_s, save = 0.0, 0
        while True:
            fails_s = time_s + self._next_gap_s()
            if fails_s >= end_s:
                return self._work_at(save, end_s - time_s)
            saved = save + self._saves_within(fails_s - time_s)
            self._upload(save, saved, time_s, fails_s)
            time_s, save = self._recover(fails_s, saved, end_s)
            if time_s >= end_s:
                return save * self._job.segment_s

    def _work_at(self, save: int, elapsed_s: float) -> float:
        full, rest_s = divmod(elapsed_s, self._segment_s)
        return (save + full) * self._job.segment_s + min(rest_s / self._stretch, self._job.segment_s)

    def _saves_within(self, elapsed_s: float) -> int:
        """Return how many saves memory has after working for so long from a restart on; storage, without memory."""
        return max(0, int((elapsed_s - self._job.copy_s) // self._segment_s))

    def _upload(self, first: int, last: int, time_s: float, fails_s: float) -> None:
        """Start the uploads that follow the saves after `first` up to `last`."""
        upload = last - last % self._count
        while upload > first:
            done_s = time_s + (upload - first) * self._segment_s + self._job.copy_s + self._job.write_s
            self._uploads.pending.append((done_s, upload))
            if done_s <= fails_s:
                break  # earlier ones are done as well
            upload -= self._count
        self._uploads.at(fails_s)

    def _recover(self, time_s: float, saved: int, end_s: float) -> tuple[float, int]:
        """Return when a recovery from a failure at `time_s` ends, and the save that it ends with."""
        save, tier = saved, MEMORY
        while True:
            self.num_failures += 1
            cause = self._next_cause()
            if tier == MEMORY and not self._model.in_memory_C[cause]:
                tier, save = STORAGE, self._uploads.at(time_s)
                self._uploads.pending.clear()
            lasts_s = self._recovery_s(cause, tier, time_s)
            gap_s = self._next_gap_s()
            if gap_s >= lasts_s or time_s + gap_s >= end_s:
                return time_s + lasts_s, save
            time_s += gap_s

    def _recovery_s(self, cause: int, tier: int, time_s: float) -> float:
        durations_VP = self._model.durations_CTVP[cause, tier]
        has_spare = True
        if self._model.loses_node_C[cause]:
            while self._in_repair and self._in_repair[0] <= time_s:
                heappop(self._in_repair)
            has_spare = len(self._in_repair) < self._job.spares
            if has_spare:
                heappush(self._in_repair, time_s + self._job.repair_s)
        return float(durations_VP[0 if has_spare else 1].sum())

    def _next_gap_s(self) -> float:
        if not self._gaps:
            self._gaps = self._generator.exponential(self._mean_s, _BLOCK).tolist()
        return self._gaps.pop()

    def _next_cause(self) -> int:
        if not self._causes:
            drawn = np.searchsorted(self._shares_C, self._generator.random(_BLOCK), side="right")
            self._causes = np.minimum(drawn, len(self._shares_C) - 1).tolist()
        return self._causes.pop()
