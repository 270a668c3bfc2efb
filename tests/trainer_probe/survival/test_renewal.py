"""The closed form of effective time: against hand-worked cases, other formulas, and a simulation of single events."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrictune.trainer_probe.survival.failures import FailureCause, FailureTable, Loss
from fabrictune.trainer_probe.survival.job import Flaps, MemoryTier, SurvivalJob
from fabrictune.trainer_probe.survival.model import FailureModel, make_model
from fabrictune.trainer_probe.survival.renewal import PARTS, time_shares
from fabrictune.trainer_probe.survival.simulation import simulate

DAY = 86400.0
ALONE = SurvivalJob(
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


def table_of(per_day: float, *, planned_per_day: float = 0.0, **shares: float) -> FailureTable:
    """Return a table with a cause for each share of the failures of a node, by what it loses."""
    losses: dict[str, Loss] = {"process": "process", "node": "node", "nodes": "nodes"}
    causes = [
        FailureCause(name=name, count=None, exposure_days=1 / (share * per_day), loses=losses[name])
        for name, share in (shares or {"process": 1.0}).items()
    ]
    if planned_per_day:
        causes.append(
            FailureCause(name="stop", count=None, exposure_days=1 / planned_per_day, per="job", is_planned=True)
        )
    return FailureTable(name="made up", source="made up", causes=tuple(causes))


def model_of(job: SurvivalJob, table: FailureTable, num_draws: int = 1) -> FailureModel:
    """Return the model at the expected rates."""
    return make_model(job, table, np.repeat(table.rates_per_s(job.num_nodes)[:, None], num_draws, axis=1))


def effective(job: SurvivalJob, table: FailureTable) -> float:
    """Return the effective time at the expected rates."""
    return float(time_shares(model_of(job, table)).effective_D[0])


def test_one_tier_is_dalys_exact_expression() -> None:
    """One failure in 2,000 s, recovery 100 s: 1000 / 2000 / ((exp(0.51) - 1) exp(0.05))."""
    assert effective(ALONE, table_of(43.2)) == pytest.approx(0.5 / (math.expm1(0.51) * math.exp(0.05)), rel=1e-12)


def test_a_save_that_is_written_in_the_background_counts_from_when_it_is_there() -> None:
    """Each of the saves must outlive 30 s more: exp(-30 / 2000) of the durable work."""
    later = replace(ALONE, write_s=30.0)
    ratio = effective(later, table_of(43.2)) / effective(ALONE, table_of(43.2))
    assert ratio == pytest.approx(math.exp(-0.015), rel=1e-12)


def test_without_failures_only_stalls_are_lost() -> None:
    """1000 s of work in 1020."""
    assert effective(ALONE, table_of(1e-9)) == pytest.approx(1000 / 1020, rel=1e-6)


def test_memory_that_all_failures_survive_is_its_own_chain() -> None:
    """Storage has no part in it: the time for a segment is (exp(a L) - 1) (1/a + M) with the lag at restarts."""
    memory = MemoryTier(every_s=100.0, stall_s=1.0, copy_s=10.0, restore_s=100.0)
    job = replace(ALONE, memory=memory, detect_s=0.0)
    rate, up = 1 / 2000, 101.0
    down = math.expm1(rate * 100) / rate
    fresh = math.expm1(rate * (up + 10)) * (1 / rate + down)
    running = -math.expm1(-rate * up) * (1 / rate + down + fresh)
    assert effective(job, table_of(43.2)) == pytest.approx(100 / running, rel=1e-4)


def test_a_memory_that_nothing_survives_is_as_good_as_storage() -> None:
    """Every failure loses several nodes: an upload each 10 saves is the only thing to go back to."""
    memory = MemoryTier(every_s=100.0, stall_s=2.0, copy_s=0.0)
    both = effective(replace(ALONE, memory=memory), table_of(43.2, nodes=1.0))
    assert both == pytest.approx(effective(replace(ALONE, node_s=600.0), table_of(43.2, nodes=1.0)), rel=1e-12)


def test_spares_are_lost_as_erlang_says() -> None:
    """Two nodes in repair on average and two spares: 2 / (1 + 2 + 2) of the failures find none."""
    job = replace(ALONE, spares=2, repair_s=4000.0)
    assert model_of(job, table_of(43.2, node=1.0)).no_spare_D[0] == pytest.approx(0.4, rel=1e-12)


@settings(max_examples=200, deadline=None)
@given(
    st.floats(0.01, 400),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(10, 5000),
    st.floats(0, 100),
    st.floats(0, 3000),
    st.booleans(),
    st.booleans(),
    st.integers(0, 20),
)
def test_parts_are_shares_of_one(
    per_day: float,
    node: float,
    nodes: float,
    every_s: float,
    stall_s: float,
    write_s: float,
    has_memory: bool,
    is_copied: bool,
    spares: int,
) -> None:
    """Any job: nothing is negative, and all parts are one."""
    memory = MemoryTier(every_s=every_s / 3, is_copied=is_copied) if has_memory else None
    job = replace(ALONE, save_every_s=every_s, stall_s=stall_s, write_s=write_s, memory=memory, spares=spares)
    table = table_of(per_day, process=1 + 1e-3, node=node + 1e-3, nodes=nodes + 1e-3, planned_per_day=1.0)
    shares = time_shares(model_of(job, table))
    values = [float(values_D[0]) for values_D in shares.parts.values()]
    assert tuple(shares.parts) == PARTS
    assert sum(values) == pytest.approx(1.0, abs=1e-12)
    assert min(values) >= -1e-9


SPLIT = table_of(40 / 2048, process=0.3, node=0.6, nodes=0.1)
LARGE = SurvivalJob(num_gpus=2048 * 8, diagnose_s=300.0)
JOBS = {
    "storage": LARGE,
    "memory": replace(LARGE, memory=MemoryTier(every_s=60.0)),
    "memory of one node": replace(LARGE, memory=MemoryTier(every_s=60.0, is_copied=False)),
    "uploads that overlap": replace(LARGE, memory=MemoryTier(every_s=30.0, copy_s=70.0), save_every_s=90, write_s=400),
    "few spares": replace(LARGE, spares=100, repair_s=8000.0),
    "all that stretches steps": replace(
        LARGE,
        slowdown_fraction=0.05,
        flaps=Flaps(per_link_day=0.01, mean_s=5.0, longest_s=8.0, mean_stall_s=6.0, basis=""),
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_simulation_of_single_events_agrees_within_its_own_error(name: str) -> None:
    """40 failures a day in 12 runs of 60 days; 3.5 standard errors, each a small part of what is lost."""
    model = model_of(JOBS[name], SPLIT, 12)
    runs = simulate(model, duration_s=60 * DAY, seed=3)
    expected = float(time_shares(model).effective_D[0])
    assert runs.error < 0.02 * (1 - expected)
    assert abs(runs.mean - expected) < 3.5 * runs.error
    assert runs.failures_R.mean() == pytest.approx(model.rates_CD[:, 0].sum() * 60 * DAY, rel=0.03)
