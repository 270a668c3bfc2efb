"""Figures from the begin and end of each rank: time, spread, and stragglers.

The *time* of a case is nccl-tests': from a rank's first begin to its last end, over the number of iterations, averaged
over ranks. An *iteration* lasts from the last rank's begin to the last rank's end; before it lies the *skew*, in which
the first rank waits for the last. Both together are about the time.

Shapes: R ranks, C cases, K iterations.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.measurement.spec import BenchCase
from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.finding_rules.collectives import STRAGGLER
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.traces import Operation

# No rank can end these before all have begun, so a late rank is a straggler; elsewhere a root may just run ahead.
NEEDS_ALL_RANKS = (Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.REDUCE_SCATTER, Operation.ALL_TO_ALL)


@dataclass(frozen=True, kw_only=True)
class TimingSamples:
    """Samples of all ranks: begin and end of every iteration, on rank 0's clock, and wrong results."""

    began_ns_RCK: IntArray
    ended_ns_RCK: IntArray
    num_wrong_RC: IntArray  # elements
    host_R: IntArray  # numbered from 0 on
    clock_error_ns_R: IntArray  # how far a rank's times may be off

    @property
    def mean_ns_C(self) -> FloatArray:
        """Return nccl-tests' time of each case."""
        whole_ns_RC = self.ended_ns_RCK[..., -1] - self.began_ns_RCK[..., 0]
        return np.asarray(whole_ns_RC.mean(axis=0) / self.began_ns_RCK.shape[2])

    @property
    def iteration_ns_CK(self) -> IntArray:
        """Return how long each iteration took once all ranks had come."""
        return np.asarray(self.ended_ns_RCK.max(axis=0) - self.began_ns_RCK.max(axis=0))

    @property
    def skew_ns_CK(self) -> IntArray:
        """Return how long the first rank waited for the last."""
        return np.asarray(self.late_ns_RCK.max(axis=0))

    @property
    def late_ns_RCK(self) -> IntArray:
        """Return how long after the first each rank came."""
        return np.asarray(self.began_ns_RCK - self.began_ns_RCK.min(axis=0))

    @property
    def last_rank_CK(self) -> IntArray:
        """Return who came last."""
        return np.asarray(self.began_ns_RCK.argmax(axis=0))


@dataclass(frozen=True, kw_only=True)
class Straggler:
    """A rank that keeps the others waiting."""

    rank: int
    last_fraction: float  # of the iterations it came last in
    late_fraction: float  # how late it came on average, of the time


def find_straggler(
    samples: TimingSamples, cases: Sequence[BenchCase], rules: RuleSettings = CATALOG_SETTINGS
) -> Straggler | None:
    """Return the rank that comes last far more often than its share and costs the others time, if there is one.

    Only operations are counted in which no rank can end before all have begun.
    """
    chosen = [number for number, case in enumerate(cases) if case.operation in NEEDS_ALL_RANKS]
    num_ranks = len(samples.began_ns_RCK)
    if not chosen or num_ranks < 2:
        return None
    counts_R = np.bincount(samples.last_rank_CK[chosen].ravel(), minlength=num_ranks)
    rank = int(counts_R.argmax())
    last_fraction = float(counts_R[rank] / counts_R.sum())
    late_ns_C = samples.late_ns_RCK[rank, chosen].mean(axis=1)
    late_fraction = float(np.median(late_ns_C / samples.mean_ns_C[chosen]))
    fair_fraction, excess = 1 / num_ranks, rules.threshold(STRAGGLER, "excess")
    is_often_last = last_fraction > fair_fraction + excess * (1 - fair_fraction)
    is_straggler = is_often_last and late_fraction > rules.threshold(STRAGGLER, "late")
    return Straggler(rank=rank, last_fraction=last_fraction, late_fraction=late_fraction) if is_straggler else None
