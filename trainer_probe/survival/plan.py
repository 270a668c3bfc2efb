"""A job's survival: effective time with its interval, what it is lost to, the best interval, and which knob first.

Two errors are kept apart: what the counts of failures leave open (draws of the posterior), and what the number of
simulated runs leaves open.

Shapes: as in model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.trainer_probe.survival.draws import ends_90
from fabrictune.trainer_probe.survival.failures import FailureTable
from fabrictune.trainer_probe.survival.intervals import IntervalSweep, sweep_intervals
from fabrictune.trainer_probe.survival.job import SurvivalJob
from fabrictune.trainer_probe.survival.knobs import Knob, KnobGain, knob_gains
from fabrictune.trainer_probe.survival.model import FailureModel, make_model
from fabrictune.trainer_probe.survival.renewal import RECOMPUTED, Shares, time_shares
from fabrictune.trainer_probe.survival.simulation import SimulatedRuns, simulate

NUM_DRAWS = 400
MAX_EVENTS = 200_000  # failures that are simulated
MIN_RUNS = 20


@dataclass(frozen=True, kw_only=True)
class CauseShare:
    """What one cause of failures costs."""

    name: str
    failures: float  # expected in the job's duration
    failures_low: float
    failures_high: float
    recovery_fraction: float  # of all time, from the failure to the first new step
    recomputed_fraction: float


@dataclass(frozen=True, kw_only=True, eq=False)
class SurvivalPlan:
    """The planner's answer; the first draw of the rates are the expected ones."""

    job: SurvivalJob
    table: FailureTable
    spread: float
    shares: Shares
    model: FailureModel
    causes: tuple[CauseShare, ...]
    sweep: IntervalSweep
    gains: tuple[KnobGain, ...]
    runs: SimulatedRuns | None
    closed_R: FloatArray  # effective time of each run by the closed form
    asked_runs: int

    def interval(self, values_D: FloatArray) -> tuple[float, float, float]:
        """Return the value at the expected rates, and the ends of 90 % of the draws."""
        low, high = ends_90(values_D[1:])
        return float(values_D[0]), min(float(low), float(values_D[0])), max(float(high), float(values_D[0]))


def plan_survival(
    job: SurvivalJob,
    table: FailureTable,
    *,
    spread: float = 1.0,
    num_runs: int = 100,
    seed: int = 0,
    others: Sequence[Knob] = (),
) -> SurvivalPlan:
    """Return the effective time of a job; without `num_runs` nothing is simulated."""
    expected_C1 = table.rates_per_s(job.num_nodes)[:, None]
    drawn_CD = table.draw_rates_per_s(job.num_nodes, NUM_DRAWS, spread=spread, seed=seed)
    rates_CD = np.hstack([expected_C1, drawn_CD])
    model = make_model(job, table, rates_CD)
    shares = time_shares(model)
    sweep = sweep_intervals(job, table, rates_CD)
    runs, closed_R = _simulate(job, table, rates_CD, num_runs, seed, float(shares.mttf_s_D[0]))
    return SurvivalPlan(
        job=job,
        table=table,
        spread=spread,
        shares=shares,
        model=model,
        causes=tuple(_causes(model, shares)),
        sweep=sweep,
        gains=tuple(knob_gains(job, table, rates_CD, sweep.best_s, others)),
        runs=runs,
        closed_R=closed_R,
        asked_runs=num_runs,
    )


def _simulate(
    job: SurvivalJob, table: FailureTable, rates_CD: FloatArray, num_runs: int, seed: int, mttf_s: float
) -> tuple[SimulatedRuns | None, FloatArray]:
    """Return a run for each of the first draws, and what the closed form says of it."""
    failures = job.duration_s / mttf_s
    count = min(num_runs, rates_CD.shape[1] - 1, max(MIN_RUNS, int(MAX_EVENTS / max(failures, 1))))
    if count < 2 or failures * MIN_RUNS > MAX_EVENTS:
        return None, np.zeros(0)
    model = make_model(job, table, rates_CD[:, 1 : count + 1])
    return simulate(model, duration_s=job.duration_s, seed=seed), time_shares(model).effective_D


def _causes(model: FailureModel, shares: Shares) -> list[CauseShare]:
    failures_CD = model.rates_CD * model.job.duration_s
    low_C, high_C = np.array([ends_90(failures_D[1:]) for failures_D in failures_CD]).T
    lost_C = _recomputed(model, float(shares.parts[RECOMPUTED][0]))
    rows = zip(model.names, failures_CD[:, 0], low_C, high_C, shares.recovery_CD[:, 0], lost_C, strict=True)
    causes = [
        CauseShare(
            name=name,
            failures=float(failures),
            failures_low=float(low),
            failures_high=float(high),
            recovery_fraction=float(recovery),
            recomputed_fraction=float(lost),
        )
        for name, failures, low, high, recovery, lost in rows
    ]
    return sorted(causes, key=lambda cause: -cause.recovery_fraction - cause.recomputed_fraction)


def _recomputed(model: FailureModel, recomputed: float) -> FloatArray:
    """Return the recomputed work of each cause: by its rate, among causes that go back to the same tier.

    Causes that memory survives have what would be recomputed if there were no others.
    """
    rates_C = model.rates_CD[:, 0]
    share_C = np.zeros(len(rates_C))
    remaining = recomputed
    if model.in_memory_C.any():
        alone = replace(
            model,
            rates_CD=np.where(model.in_memory_C[:, None], model.rates_CD, 0.0)[:, :1],
            no_spare_D=model.no_spare_D[:1],
            planned_D=model.planned_D[:1],
        )
        kept = min(recomputed, float(time_shares(alone).parts[RECOMPUTED][0]))
        if model.in_memory_C.all():
            kept = recomputed
        share_C[model.in_memory_C] = kept * rates_C[model.in_memory_C] / rates_C[model.in_memory_C].sum()
        remaining -= kept
    if not model.in_memory_C.all():
        lost_C = ~model.in_memory_C
        share_C[lost_C] = remaining * rates_C[lost_C] / rates_C[lost_C].sum()
    return share_C
