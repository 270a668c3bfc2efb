"""A job's plan: best interval, knobs, causes and sentences."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.trainer_probe.survival.intervals import best_interval_s, daly_s, sweep_intervals, young_s
from fabrictune.trainer_probe.survival.job import MemoryTier, SurvivalJob
from fabrictune.trainer_probe.survival.model import make_model, with_interval
from fabrictune.trainer_probe.survival.plan import SurvivalPlan, plan_survival
from fabrictune.trainer_probe.survival.plan_record import advice, assumptions, make_plan_record, outcome
from fabrictune.trainer_probe.survival.published import PUBLISHED
from fabrictune.trainer_probe.survival.renewal import RECOMPUTED, time_shares

TABLE = PUBLISHED["llama3"]
JOB = SurvivalJob(num_gpus=16384)
TIERED = replace(JOB, memory=MemoryTier(every_s=60.0), spares=8)


@pytest.fixture(scope="module")
def plan() -> SurvivalPlan:
    """The plan of a job that saves to storage alone."""
    return plan_survival(JOB, TABLE, num_runs=20)


def effective(job: SurvivalJob) -> float:
    """Return the effective time at the expected rates."""
    return float(time_shares(make_model(job, TABLE, TABLE.rates_per_s(job.num_nodes)[:, None])).effective_D[0])


def test_the_best_interval_is_the_best_of_a_dense_grid() -> None:
    """No interval of 4,000 is better by more than a hundred-thousandth; Young and Daly are near."""
    rates = TABLE.rates_per_s(JOB.num_nodes)[:, None]
    best_s = best_interval_s(JOB, TABLE, rates)
    most = max(effective(with_interval(JOB, every_s)) for every_s in np.geomspace(60, 7200, 400))
    assert effective(with_interval(JOB, best_s)) >= most - 1e-5
    sweep = sweep_intervals(JOB, TABLE, rates)
    assert sweep.young_s == pytest.approx(best_s, rel=0.1)
    assert sweep.near_low_s < best_s < sweep.near_high_s


def test_young_and_daly_by_hand() -> None:
    """sqrt(2 * 5 * 18000) = 424.3 s; Daly's series at delta / 2M = 1/7200."""
    assert young_s(5.0, 18000.0) == pytest.approx(424.264, abs=1e-3)
    assert daly_s(5.0, 18000.0) == pytest.approx(424.264 * (1 + 7200**-0.5 / 3 + 1 / 64800) - 5, abs=1e-2)
    assert daly_s(50.0, 20.0) == 20.0


def test_an_interval_is_at_least_a_step_and_the_writing_of_a_save() -> None:
    """Saves that cost nothing: as often as they can be written."""
    rates = TABLE.rates_per_s(JOB.num_nodes)[:, None]
    assert best_interval_s(replace(JOB, stall_s=0.0), TABLE, rates) == pytest.approx(60.0)
    assert best_interval_s(replace(TIERED, step_s=45.0), TABLE, rates) == pytest.approx(45.0)


def test_knobs_are_sorted_and_each_gains_what_a_plan_with_it_says(plan: SurvivalPlan) -> None:
    """The gain of the interval is that of the same job with it; a tenth less repair hurts nobody."""
    gains = [gain.gain for gain in plan.gains]
    assert gains == sorted(gains, reverse=True)
    by_name = {gain.knob.name: gain for gain in plan.gains}
    interval = by_name["interval between saves"]
    assert interval.gain == pytest.approx(effective(with_interval(JOB, plan.sweep.best_s)) - effective(JOB), abs=1e-12)
    assert all(gain.low <= gain.gain <= gain.high for gain in plan.gains)
    halved = by_name["failures: Faulty GPU"]
    assert halved.gain > (halved.tenth_gain or 1.0) > 0
    assert by_name["detection"].gain == pytest.approx(
        effective(replace(JOB, detect_s=30.0)) - effective(JOB), abs=1e-12
    )
    assert "checkpoints in memory" in by_name
    assert "warm spares" in by_name


def test_what_causes_cost_is_what_recoveries_and_lost_work_take(plan: SurvivalPlan) -> None:
    """Summed over the causes, with one tier and with two."""
    for each in (plan, plan_survival(TIERED, TABLE, num_runs=0)):
        parts = {name: float(values[0]) for name, values in each.shares.parts.items()}
        phases = sum(parts[name] for name in ("detection", "diagnosis", "ranks down", "nodes", "start", "restore"))
        assert sum(cause.recovery_fraction for cause in each.causes) == pytest.approx(phases, rel=1e-9)
        assert sum(cause.recomputed_fraction for cause in each.causes) == pytest.approx(parts[RECOMPUTED], rel=1e-9)
        assert all(cause.recomputed_fraction >= 0 for cause in each.causes)


def test_the_answer_says_which_knob_first(plan: SurvivalPlan) -> None:
    """In plain words, with the gain and its interval."""
    lines = advice(plan)
    assert lines[0].startswith("first: checkpoints in memory, none to every 60 s, copied to another node: +8.0")
    assert len(lines) == 3
    perfect = replace(TIERED, detect_s=0, diagnose_s=0, down_s=0, start_s=0, node_s=0, spare_s=0)
    perfect = with_interval(replace(perfect, num_gpus=8), 1350.0)
    quiet = plan_survival(perfect, TABLE, num_runs=0)
    assert advice(quiet) == ["no knob gains as much as 0.05 points by itself"]


def test_the_interval_of_the_rates_and_the_simulations_own_error_stand_apart(plan: SurvivalPlan) -> None:
    """A run varies more than the mean; the closed form at the same rates is within the simulation's error."""
    figures = outcome(plan)
    assert figures["effective_fraction_low"] < figures["effective_fraction"] < figures["effective_fraction_high"]
    assert abs(figures["simulated_change_fraction"]) < 2.5 * figures["simulated_change_error_fraction"]
    assert figures["single_run_fraction_low"] < figures["simulated_fraction"] < figures["single_run_fraction_high"]
    wide = plan_survival(JOB, TABLE, spread=2.0, num_runs=0)
    _, low, high = wide.interval(wide.shares.effective_D)
    assert high - low > 3 * (figures["effective_fraction_high"] - figures["effective_fraction_low"])
    assert any("up to 2 times" in line for line in assumptions(wide))


def test_what_is_too_much_to_simulate_is_said() -> None:
    """Ten million GPUs fail too often for single events."""
    huge = plan_survival(replace(JOB, num_gpus=8_000_000), TABLE)
    assert huge.runs is None
    assert any(line.startswith("not simulated") for line in assumptions(huge))
    record = make_plan_record(huge, name="huge", seed=0, started=0.0)
    assert record.run["outcome"]["num_runs"] == 0
    assert [check.result.value for check in record.checks or ()][-1] == "not run"


def test_a_poor_interval_is_a_finding(plan: SurvivalPlan) -> None:
    """Saving each half hour costs almost five points; the same answer for the same seed."""
    record = make_plan_record(plan, name="job", seed=0, started=0.0)
    assert [finding.id for finding in record.findings] == ["survive.save-interval"]
    again = plan_survival(JOB, TABLE, num_runs=20)
    assert outcome(again) == outcome(plan)
