"""Planned effective time against Daly's closed form, a simulation, and what Meta and ByteDance publish of their jobs.

Phases that a paper does not state are ByteRobust's (Tables 6 to 8); docs/decisions/0101 has the inputs and what was
expected of each before it ran.
"""

import math
from functools import partial

import numpy as np

from fabrictune.foundation.cases import Case, around
from fabrictune.trainer_probe.survival.failures import S_PER_DAY, FailureCause, FailureTable
from fabrictune.trainer_probe.survival.intervals import young_s
from fabrictune.trainer_probe.survival.job import MemoryTier, SurvivalJob
from fabrictune.trainer_probe.survival.model import FailureModel, make_model
from fabrictune.trainer_probe.survival.published import PUBLISHED
from fabrictune.trainer_probe.survival.renewal import time_shares
from fabrictune.trainer_probe.survival.simulation import simulate

_LLAMA3_GPUS = 16384
_S_PER_HOUR = 3600.0
_SIGMAS = 3.5  # of a simulation's own error


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        Case(
            name="trainer_probe.survive-daly",
            source="Daly (FGCS 2006), section 3: work over (exp(lambda (tau + delta)) - 1) exp(lambda R) / lambda",
            unit="of the time",
            **around(_daly(), 1e-9),
            run=lambda: _effective(_ALONE, _one_cause(_ALONE_PER_DAY)),
        ),
        Case(
            name="trainer_probe.survive-simulated",
            source="a simulation event by event of two tiers and eight spares, in its own standard errors",
            unit="errors",
            expected=0.0,
            low=-_SIGMAS,
            high=_SIGMAS,
            run=_simulated,
        ),
        _mttf(16384, 1.8, "projected"),
        _mttf(1024, 7.9, "measured, of jobs that fail for other reasons than their nodes"),
        *(_llama3(name, start_s) for name, start_s in (("requeued", 768.0), ("in-place", 65.0))),
        *(_megascale(weeks) for weeks in (3, 5)),
        Case(
            name="trainer_probe.survive-byterobust",
            source="ByteRobust (SOSP'25), section 8: up to 97 % on 9,600 GPUs over three months",
            unit="of the time",
            **around(0.97, 0.01),
            trust="C",
            run=_byterobust,
        ),
    )


_ALONE = SurvivalJob(
    num_gpus=8,
    save_every_s=1000.0,
    stall_s=20.0,
    write_s=0.0,
    detect_s=100.0,
    diagnose_s=0.0,
    down_s=0.0,
    start_s=0.0,
    restore_s=0.0,
)
_ALONE_PER_DAY = 43.2  # one in 2,000 s


def _daly() -> float:
    rate = _ALONE_PER_DAY / S_PER_DAY
    return 1000 * rate / (math.expm1(rate * 1020) * math.exp(rate * 100))


def _one_cause(per_day: float) -> FailureTable:
    cause = FailureCause(name="failure", count=None, exposure_days=1 / per_day, per="job", loses="process")
    return FailureTable(name="one", source="made up", causes=(cause,))


def _model(job: SurvivalJob, table: FailureTable, num_draws: int = 1) -> FailureModel:
    rates_CD = np.repeat(table.rates_per_s(job.num_nodes)[:, None], num_draws, axis=1)
    return make_model(job, table, rates_CD)


def _effective(job: SurvivalJob, table: FailureTable) -> float:
    return float(time_shares(_model(job, table)).effective_D[0])


def _simulated() -> float:
    memory = MemoryTier(every_s=120.0)
    job = SurvivalJob(num_gpus=_LLAMA3_GPUS, memory=memory, spares=8)
    model = _model(job, PUBLISHED["llama3"], 20)
    runs = simulate(model, duration_s=200 * S_PER_DAY, seed=1)
    return (runs.mean - float(time_shares(model).effective_D[0])) / runs.error


def _mttf(num_gpus: int, hours: float, how: str) -> Case:
    job = SurvivalJob(num_gpus=num_gpus)
    return Case(
        name=f"trainer_probe.survive-meta-mttf-{num_gpus}",
        source=f"Kokolis et al. (HPCA'25): {hours} h at {num_gpus:,} GPUs ({how}), 6.50 failures per 1000 node-days",
        unit="h",
        **around(hours, 0.03),
        trust="C",
        run=lambda: float(time_shares(_model(job, PUBLISHED["meta"])).mttf_s_D[0]) / _S_PER_HOUR,
    )


def _llama3(name: str, start_s: float) -> Case:
    mttf_s = 54 * S_PER_DAY / 419
    job = SurvivalJob(
        num_gpus=_LLAMA3_GPUS,
        save_every_s=young_s(5.0, mttf_s),
        stall_s=5.0,
        write_s=30.0,
        detect_s=0.0,
        diagnose_s=93.0,
        down_s=0.0,
        start_s=start_s,
        restore_s=60.0,
        node_s=0.0,
    )
    return Case(
        name=f"trainer_probe.survive-llama3-{name}",
        source=f"Llama 3 (2024), section 3.3.4: over 90 % with 466 interruptions in 54 days; start {start_s:.0f} s",
        unit="of the time",
        expected=0.9,
        low=0.9,
        high=1.0,
        trust="C",
        run=partial(_effective, job, PUBLISHED["llama3"]),
    )


def _megascale(weeks: int) -> Case:
    job = SurvivalJob(
        num_gpus=12288,
        save_every_s=1080.0,
        write_s=0.0,
        detect_s=600.0,
        diagnose_s=0.0,
        down_s=0.0,
        start_s=300.0,
        restore_s=60.0,
    )
    return Case(
        name=f"trainer_probe.survive-megascale-{weeks}-weeks",
        source=f"MegaScale (NSDI'24), section 6.3: over 90 % with 100 restarts, here in {weeks} weeks",
        unit="of the time",
        expected=0.9,
        low=0.9,
        high=1.0,
        trust="C",
        run=partial(_effective, job, _one_cause(100 / (7 * weeks))),
    )


def _byterobust() -> float:
    job = SurvivalJob(
        num_gpus=9600,
        slowdown_fraction=0.009,
        memory=MemoryTier(every_s=10.0, stall_s=0.02, copy_s=10.0),
        detect_s=60.0,
        diagnose_s=33.0,
        down_s=0.0,
        start_s=54.0,
        spares=64,
        spare_s=4.0,  # 58 s with the start
    )
    return _effective(job, PUBLISHED["byterobust"])
