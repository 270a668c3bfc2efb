"""What turns come to: speeds, gains within a round, and what stays exposed."""

import numpy as np

from fabrictune.trainer_probe.ablation.record import make_record
from fabrictune.trainer_probe.ablation.rounds import Turn
from fabrictune.trainer_probe.driver.reports import StepReport
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

TINY = load_recipe(find_recipe("tiny"))


def turn(number: int, rung: str, elapsed_s: float, *, tp_ns: int = 0) -> Turn:
    """Return a step of 1,000 tokens."""
    report = StepReport(
        step=1,
        loss=5.0,
        gradient_norm=1.0,
        learning_rate=0.1,
        is_skipped=False,
        elapsed_ns=round(elapsed_s * 1e9),
        tokens_per_s=1000 / elapsed_s,
        mfu_fraction=float("nan"),
        exposed_ns={"tp": tp_ns, "dp": 0, "pp": 0},
    )
    return Turn(round=number, rung=rung, report=report)


def test_gains_are_compared_within_a_round() -> None:
    """The machine is ten times slower in round 1, and the parallel block half again as fast in both: no spread."""
    turns = [
        turn(number, rung, slowness * elapsed_s)
        for number, slowness in ((0, 1.0), (1, 10.0))
        for rung, elapsed_s in (("serial block", 3.0), ("parallel block", 2.0))
    ]
    rungs = make_record(TINY, turns, num_rounds=2, started=0.0).tables["rungs"]
    assert rungs["rung"].tolist() == ["serial block", "parallel block"]
    for column in ("gain_fraction", "gain_fraction_low", "gain_fraction_high"):
        np.testing.assert_allclose(rungs[column], [0.0, 0.5])
    np.testing.assert_allclose(rungs["tokens_per_s"], [(1000 / 3 + 100 / 3) / 2, (500 + 50) / 2])


def test_a_turns_speed_is_of_all_its_steps() -> None:
    """1,000 tokens in 1 s and 1,000 in 3 s are 500 a second, and not the mean of 1,000 and 333."""
    turns = [turn(0, "serial block", 1.0, tp_ns=10), turn(0, "serial block", 3.0, tp_ns=30)]
    record = make_record(TINY, turns, num_rounds=1, started=0.0)
    assert record.tables["rungs"]["tokens_per_s"].tolist() == [500.0]
    assert record.tables["rungs"]["exposed_tp_ns"].tolist() == [20]
    assert record.tables["rungs"]["mfu_fraction"].tolist() == [-1.0]
    assert record.run["outcome"] == "interrupted", "rungs are missing"


def test_nothing_finished_is_a_record_too() -> None:
    """Stopped in the first turn."""
    record = make_record(TINY, [], num_rounds=1, started=0.0)
    assert record.run["outcome"] == "interrupted"
    assert record.tables == {}
