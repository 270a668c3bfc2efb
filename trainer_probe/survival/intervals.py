"""Interval between saves: effective time over it, the best one, and what Young and Daly say.

Source: Young, A first order approximation to the optimum checkpoint interval (CACM 1974); Daly (FGCS 2006), eq. 37.

Shapes: G intervals, D draws.
"""

import math
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.trainer_probe.survival.draws import ends_90
from fabrictune.trainer_probe.survival.failures import FailureTable
from fabrictune.trainer_probe.survival.job import SurvivalJob
from fabrictune.trainer_probe.survival.model import make_model, with_interval
from fabrictune.trainer_probe.survival.renewal import time_shares

NUM_POINTS = 61
REACH = 30.0  # times Young's interval, to either side
NEAR_FRACTION = 0.001  # of all time: intervals that lose no more than this are as good as the best
_NUM_REFINED = 41


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalSweep:
    """Effective time over the interval between saves."""

    interval_s_G: FloatArray
    effective_G: FloatArray  # at the expected rates
    low_G: FloatArray  # 90 % of the rates' draws
    high_G: FloatArray
    best_s: float
    best_low_s: float  # of the draws' own best intervals
    best_high_s: float
    near_low_s: float  # between these, within NEAR_FRACTION of the best
    near_high_s: float
    young_s: float
    daly_s: float


def young_s(stall_s: float, mttf_s: float) -> float:
    """Return the work between saves by Young's formula."""
    return math.sqrt(2 * stall_s * mttf_s)


def daly_s(stall_s: float, mttf_s: float) -> float:
    """Return the work between saves by Daly's formula of higher order."""
    if stall_s >= 2 * mttf_s:
        return mttf_s
    ratio = stall_s / (2 * mttf_s)
    return young_s(stall_s, mttf_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - stall_s


def sweep_intervals(job: SurvivalJob, table: FailureTable, rates_CD: FloatArray) -> IntervalSweep:
    """Return the effective time over intervals about the best; the first column of the rates are the expected ones."""
    mttf_s = float(time_shares(make_model(job, table, rates_CD[:, :1])).mttf_s_D[0])
    least_s = max(job.step_s, job.write_s if job.memory is None else job.copy_s)  # a save ends before the next begins
    first_s = max(young_s(job.save_stall_s, mttf_s), least_s)
    grid_G = np.geomspace(max(least_s, first_s / REACH), max(first_s * REACH, 2 * least_s), NUM_POINTS)
    effective_GD = _effective(job, table, rates_CD, grid_G)
    low_G, high_G = np.array([ends_90(effective_D) for effective_D in effective_GD]).T
    best_D = grid_G[effective_GD.argmax(axis=0)]
    best_low_s, best_high_s = ends_90(best_D)
    best_s, most = _refine(job, table, rates_CD[:, :1], grid_G, int(effective_GD[:, 0].argmax()))
    near_G = grid_G[effective_GD[:, 0] >= most - NEAR_FRACTION]
    return IntervalSweep(
        interval_s_G=grid_G,
        effective_G=effective_GD[:, 0],
        low_G=low_G,
        high_G=high_G,
        best_s=best_s,
        best_low_s=min(float(best_low_s), best_s),
        best_high_s=max(float(best_high_s), best_s),
        near_low_s=min(float(near_G.min(initial=best_s)), best_s),
        near_high_s=max(float(near_G.max(initial=best_s)), best_s),
        young_s=young_s(job.save_stall_s, mttf_s),
        daly_s=daly_s(job.save_stall_s, mttf_s),
    )


def best_interval_s(job: SurvivalJob, table: FailureTable, rates_C1: FloatArray) -> float:
    """Return the interval of the most effective time at these rates, at least a step and the writing of a save."""
    return sweep_intervals(job, table, rates_C1).best_s


def _refine(
    job: SurvivalJob, table: FailureTable, rates_C1: FloatArray, grid_G: FloatArray, at: int
) -> tuple[float, float]:
    """Return the best interval between the neighbours of the best point, and its effective time."""
    low, high = grid_G[max(0, at - 1)], grid_G[min(len(grid_G) - 1, at + 1)]
    finer = np.unique(np.append(np.geomspace(low, high, _NUM_REFINED), grid_G[at]))
    effective = _effective(job, table, rates_C1, finer)[:, 0]
    return float(finer[effective.argmax()]), float(effective.max())


def _effective(job: SurvivalJob, table: FailureTable, rates_CD: FloatArray, grid_G: FloatArray) -> FloatArray:
    rows = [
        time_shares(make_model(with_interval(job, float(every_s)), table, rates_CD)).effective_D for every_s in grid_G
    ]
    return np.stack(rows)
