"""Records of ablations: speeds, gains within a round, and exposed communication."""

import numpy as np

from fabrictune.trainer_probe.ablation.record import make_record
from fabrictune.trainer_probe.ablation.trials import TrialStep
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.training.progress import StepReport

TINY = load_recipe(find_recipe("tiny"))


def trial_step(number: int, technique: str, elapsed_s: float, *, tp_ns: int = 0) -> TrialStep:
    """Return a step of 1,000 tokens."""
    report = StepReport(
        step=1,
        loss=5.0,
        gradient_norm=1.0,
        loss_scale=1.0,
        learning_rate=0.1,
        is_skipped=False,
        elapsed_ns=round(elapsed_s * 1e9),
        tokens_per_s=1000 / elapsed_s,
        mfu_fraction=float("nan"),
        exposed_ns={"tp": tp_ns, "dp": 0, "pp": 0},
    )
    return TrialStep(round=number, technique=technique, report=report)


def test_gains_are_compared_within_a_round() -> None:
    """The machine is ten times slower in round 1, and the parallel block half again as fast in both: no spread."""
    steps = [
        trial_step(number, technique, slowness * elapsed_s)
        for number, slowness in ((0, 1.0), (1, 10.0))
        for technique, elapsed_s in (("serial block", 3.0), ("parallel block", 2.0))
    ]
    table = make_record(TINY, steps, num_rounds=2, started=0.0).tables["ablation_steps"]
    assert table["technique"].tolist() == ["serial block", "parallel block"]
    for column in ("gain_fraction", "gain_fraction_low", "gain_fraction_high"):
        np.testing.assert_allclose(table[column], [0.0, 0.5])
    np.testing.assert_allclose(table["tokens_per_s"], [(1000 / 3 + 100 / 3) / 2, (500 + 50) / 2])


def test_a_trials_speed_is_of_all_its_steps() -> None:
    """1,000 tokens in 1 s and 1,000 in 3 s are 500 a second, and not the mean of 1,000 and 333."""
    steps = [trial_step(0, "serial block", 1.0, tp_ns=10), trial_step(0, "serial block", 3.0, tp_ns=30)]
    record = make_record(TINY, steps, num_rounds=1, started=0.0)
    assert record.tables["ablation_steps"]["tokens_per_s"].tolist() == [500.0]
    assert record.tables["ablation_steps"]["exposed_tp_ns"].tolist() == [20]
    assert record.tables["ablation_steps"]["mfu_fraction"].tolist() == [-1.0]
    assert record.run["outcome"] == "interrupted", "techniques are missing"


def test_nothing_finished_is_a_record_too() -> None:
    """Stopped in the first trial."""
    record = make_record(TINY, [], num_rounds=1, started=0.0)
    assert record.run["outcome"] == "interrupted"
    assert record.tables == {}
