"""Failures of a job as arrays: rates by cause, and the phases of each recovery.

A cause is recovered from memory or from storage; a lost node is replaced by a spare where one is free. Whether one is,
follows from Erlang's loss formula: nodes in repair are servers in use, and failures arrive as Poisson.

Source: Erlang (1917); Sevastyanov (1957): the loss probability depends on the mean repair time alone.

Shapes: C causes that are failures, D draws of the rates, T tiers (memory, storage), V variants (a spare is free, none
is), P phases of job.PHASES.
"""

from dataclasses import dataclass, replace

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray
from fabrictune.trainer_probe.survival.failures import S_PER_DAY, FailureCause, FailureTable
from fabrictune.trainer_probe.survival.job import SurvivalJob

MEMORY, STORAGE = 0, 1
FLAP = "Link flap"
_LEAST_RATE = 1e-12  # a second: one in 30,000 years


@dataclass(frozen=True, kw_only=True, eq=False)
class FailureModel:
    """A job with its failures."""

    job: SurvivalJob
    names: tuple[str, ...]
    rates_CD: FloatArray  # a second
    in_memory_C: BoolArray  # whether a checkpoint in memory survives it
    loses_node_C: BoolArray
    durations_CTVP: FloatArray
    no_spare_D: FloatArray  # probability
    planned_D: FloatArray  # share of working time that planned stops add to it
    flaps_fraction: float  # that flaps which are survived add to it

    @property
    def stretch_D(self) -> FloatArray:
        """Return the time that a second of work takes, without saves and failures."""
        return 1.0 + self.planned_D + self.flaps_fraction + self.job.slowdown_fraction

    @property
    def variants_VD(self) -> FloatArray:
        """Return the probability that a spare is free, and that none is."""
        return np.stack([1 - self.no_spare_D, self.no_spare_D])


def make_model(job: SurvivalJob, table: FailureTable, rates_CD: FloatArray) -> FailureModel:
    """Return the model of a job with these rates of all causes of the table, planned ones too."""
    is_planned = np.array([cause.is_planned for cause in table.causes])
    causes = [cause for cause in table.causes if not cause.is_planned]
    failures_CD = np.maximum(rates_CD[~is_planned], _LEAST_RATE)
    flaps_fraction = 0.0
    if job.flaps is not None:
        rate = job.flaps.per_link_day * job.num_gpus / S_PER_DAY
        killed = job.flaps.killed_fraction
        causes.append(FailureCause(name=FLAP, count=None, exposure_days=1.0, loses="process"))
        failures_CD = np.vstack([failures_CD, np.full((1, rates_CD.shape[1]), max(rate * killed, _LEAST_RATE))])
        flaps_fraction = rate * (1 - killed) * job.flaps.mean_stall_s
    loses_node_C = np.array([cause.loses != "process" for cause in causes], bool)
    return FailureModel(
        job=job,
        names=tuple(cause.name for cause in causes),
        rates_CD=failures_CD,
        in_memory_C=np.array([job.survives_in_memory(cause.loses) for cause in causes], bool),
        loses_node_C=loses_node_C,
        durations_CTVP=np.array([_durations(job, cause) for cause in causes]).reshape(len(causes), 2, 2, 6),
        no_spare_D=_loss_probability(job.spares, job.repair_s * failures_CD[loses_node_C].sum(axis=0)),
        planned_D=rates_CD[is_planned].sum(axis=0) * _planned_s(job),
        flaps_fraction=flaps_fraction,
    )


def with_interval(job: SurvivalJob, interval_s: float) -> SurvivalJob:
    """Return the job with another interval between saves: to memory where it has that, else to storage."""
    if job.memory is None:
        return replace(job, save_every_s=interval_s)
    return replace(job, memory=replace(job.memory, every_s=interval_s))


def _durations(job: SurvivalJob, cause: FailureCause) -> list[list[list[float]]]:
    restores_T = (job.memory.restore_s if job.memory else job.restore_s, job.restore_s)
    nodes_V = (job.spare_s, job.node_s) if cause.loses != "process" else (0.0, 0.0)
    detect = job.detect_s if cause.detect_s is None else cause.detect_s
    diagnose = job.diagnose_s if cause.diagnose_s is None else cause.diagnose_s
    return [[[detect, diagnose, job.down_s, node, job.start_s, restore] for node in nodes_V] for restore in restores_T]


def _planned_s(job: SurvivalJob) -> float:
    """Return the time of a planned stop: a save, then down, start and restore."""
    restore = job.restore_s if job.memory is None else job.memory.restore_s
    return job.save_stall_s + job.down_s + job.start_s + restore


def _loss_probability(spares: int, load_D: FloatArray) -> FloatArray:
    """Return the probability that all spares are in use, by Erlang's recursion."""
    loss = np.ones_like(load_D)
    for count in range(1, spares + 1):
        loss = load_D * loss / (count + load_D * loss)
    return loss
