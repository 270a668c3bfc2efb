"""History of counters within bounds: the newest samples, seconds for an hour, minutes for weeks.

Each tier is a ring of rows; a second's row has the mean rate and the peak between two samples, a minute's the mean and
the peak of its seconds. All memory is taken at the start, so that a week needs no more than the first second.

Shapes: C counters, S rows of a ring, K samples.
"""

from collections.abc import Sequence

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray

SAMPLES, SECONDS, MINUTES = 2000, 3600, 4 * 7 * 24 * 60
_PER_MINUTE = 60


class Ring:
    """The last rows of a tier: the time of each, means and peaks."""

    def __init__(self, num_rows: int, num_counters: int) -> None:
        self._time_S = np.zeros(num_rows)
        self._mean_SC = np.zeros((num_rows, num_counters), np.float32)
        self._peak_SC = np.zeros((num_rows, num_counters), np.float32)
        self.num_written = 0

    def __len__(self) -> int:
        return min(self.num_written, len(self._time_S))

    @property
    def num_bytes(self) -> int:
        """Memory that it has taken."""
        return self._time_S.nbytes + self._mean_SC.nbytes + self._peak_SC.nbytes

    def append(self, time_s: float, mean_C: FloatArray, peak_C: FloatArray) -> None:
        """Add a row, in the place of the oldest where it is full."""
        place = self.num_written % len(self._time_S)
        self._time_S[place], self._mean_SC[place], self._peak_SC[place] = time_s, mean_C, peak_C
        self.num_written += 1

    def rows(self, most: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return times, means and peaks of the last rows, the oldest first."""
        count = min(most, len(self))
        places = np.arange(self.num_written - count, self.num_written) % len(self._time_S)
        return self._time_S[places], self._mean_SC[places].astype(float), self._peak_SC[places].astype(float)


class Samples:
    """The newest samples: the time of each, and all counters as they were read."""

    def __init__(self, num_rows: int, num_counters: int) -> None:
        self._time_S = np.zeros(num_rows)
        self._value_SC = np.zeros((num_rows, num_counters), np.int64)
        self._num_written = 0

    @property
    def num_bytes(self) -> int:
        """Memory that they have taken."""
        return self._time_S.nbytes + self._value_SC.nbytes

    def extend(self, time_K: FloatArray, value_KC: IntArray) -> None:
        """Add samples, in the place of the oldest where they are full."""
        time_K, value_KC = time_K[-len(self._time_S) :], value_KC[-len(self._time_S) :]
        places = (self._num_written + np.arange(len(time_K))) % len(self._time_S)
        self._time_S[places], self._value_SC[places] = time_K, value_KC
        self._num_written += len(time_K)

    def rows(self) -> tuple[FloatArray, IntArray]:
        """Return times and values, the oldest first."""
        count = min(self._num_written, len(self._time_S))
        places = np.arange(self._num_written - count, self._num_written) % len(self._time_S)
        return self._time_S[places], self._value_SC[places]


class History:
    """The tiers of a monitor."""

    def __init__(
        self, num_counters: int, *, samples: int = SAMPLES, seconds: int = SECONDS, minutes: int = MINUTES
    ) -> None:
        self.samples = Samples(samples, num_counters)
        self.seconds, self.minutes = Ring(seconds, num_counters), Ring(minutes, num_counters)

    @property
    def num_bytes(self) -> int:
        """Memory that all tiers have taken."""
        return self.samples.num_bytes + self.seconds.num_bytes + self.minutes.num_bytes

    def add_second(self, time_s: float, mean_C: FloatArray, peak_C: FloatArray) -> None:
        """Add a second, and a minute after each sixty."""
        self.seconds.append(time_s, mean_C, peak_C)
        if self.seconds.num_written % _PER_MINUTE == 0:
            _, mean_SC, peak_SC = self.seconds.rows(_PER_MINUTE)
            self.minutes.append(time_s, mean_SC.mean(axis=0), peak_SC.max(axis=0))


def rates(time_K: Sequence[float], value_KC: IntArray, factor_C: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return each counter's mean rate over samples and its peak between two; what fell or was not read counts as 0."""
    step_K1 = np.maximum(np.diff(np.asarray(time_K)), 1e-9)[:, None]
    rise_KC = rises(value_KC, factor_C)
    return np.asarray(rise_KC.sum(axis=0) / step_K1.sum()), np.asarray((rise_KC / step_K1).max(axis=0))


def rises(value_KC: IntArray, factor_C: IntArray) -> IntArray:
    """Return by how much each counter rose between two samples, in its unit; 0 where it fell or was not read."""
    rise_KC = np.diff(value_KC, axis=0) * factor_C
    is_known_KC = (value_KC[1:] >= 0) & (value_KC[:-1] >= 0) & (rise_KC >= 0)
    return np.where(is_known_KC, rise_KC, 0)
