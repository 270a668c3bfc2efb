"""Training on the page: losses, speeds and gains as the record has them."""

from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.blocks import MISSING, Figure, Table
from fabrictune.reports.page import build_page
from fabrictune.reports.record_view import open_run
from fabrictune.reports.training import training_section

EXPOSED = {f"exposed_{axis}_ns": np.array([1_000_000, 2_000_000, 4_000_000]) for axis in ("tp", "dp", "pp")}


def training(**changes: Any) -> dict[str, Any]:
    """Return three steps: the first slow, the last without a finite loss."""
    table = {
        "step": np.arange(3),
        "loss": np.array([5.0, 4.0, -1.0]),
        "is_skipped": np.array([0, 0, 1]),
        "tokens_per_s": np.array([10.0, 1000.0, 3000.0]),
        "mfu_fraction": np.full(3, -1.0),
        **EXPOSED,
    }
    return table | changes


def ablation_steps() -> dict[str, Any]:
    """Return a step and another that gains a quarter over it."""
    return {
        "technique": np.array(["serial block", "parallel block"], object),
        "base": np.array(["", "serial block"], object),
        "tokens_per_s": np.array([1000.0, 1250.0]),
        "mfu_fraction": np.array([0.4, 0.5]),
        "gain_fraction": np.array([0.0, 0.25]),
        "gain_fraction_low": np.array([0.0, 0.2]),
        "gain_fraction_high": np.array([0.0, 0.3]),
        **{name: values[:2] for name, values in EXPOSED.items()},
    }


def record(**tables: Any) -> RunRecord:
    return RunRecord(kind="train run", run={"name": "trial"}, tables=tables)


def test_speeds_are_medians_without_the_first_step() -> None:
    """1,000 and 3,000 tokens a second make 2,000; 2 and 4 ms exposed make 3; the last loss is none."""
    section = training_section([open_run(record(training=training()), "run")])
    assert section is not None
    figure, table = section.blocks
    assert isinstance(figure, Figure)
    assert isinstance(table, Table)
    (row,) = table.rows
    assert [cell.text for cell in row] == ["run", "3", "1", MISSING, "2,000", MISSING, "3 ms", "3 ms", "3 ms"]
    assert row[2].tone == "bad"
    assert figure.caption == ("Loss by step, mean over the step's tokens. run: 1 step without a finite loss not drawn.")


def test_a_curve_of_some_steps_says_so() -> None:
    """450 steps make 150 points."""
    long = {name: np.resize(values, 450) for name, values in training(loss=np.ones(3)).items()}
    section = training_section([open_run(record(training=long), "run")])
    assert section is not None
    assert section.blocks[0].caption.endswith(" run: one of every 3 steps drawn.")


def test_a_technique_is_shown_with_the_step_it_adds_to() -> None:
    """The first adds to nothing."""
    section = training_section([open_run(record(ablation_steps=ablation_steps()), "ablation")])
    assert section is not None
    (table,) = section.blocks
    assert isinstance(table, Table)
    first, second = ([cell.text for cell in row[:7]] for row in table.rows)
    assert first == ["serial block", "", "1,000", "40 %", MISSING, MISSING, MISSING]
    assert second == ["parallel block", "serial block", "1,250", "50 %", "+25.0%", "+20.0%", "+30.0%"]


def test_a_run_without_a_finite_loss_is_still_drawn() -> None:
    """Diverged from the first step on."""
    html = build_page([record(training=training(loss=np.full(3, -1.0)))], title="diverged")
    assert 'id="training"' in html


def test_a_page_without_training_has_no_such_section() -> None:
    """Neither table, or no rows."""
    empty = {name: values[:0] for name, values in training().items()}
    assert training_section([open_run(record(), "none"), open_run(record(training=empty), "empty")]) is None


def test_a_table_without_a_column_is_refused() -> None:
    """By its name."""
    table = training()
    del table["loss"]
    with pytest.raises(RecordError, match=r"run: training.loss: the column is missing"):
        training_section([open_run(record(training=table), "run")])
