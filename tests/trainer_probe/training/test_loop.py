"""The training loop, one rank in this process."""

import math
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.model.spec import flops_per_token
from fabrictune.trainer_probe.planning.dry_run import join_alone
from fabrictune.trainer_probe.training.hardware import device_of
from fabrictune.trainer_probe.training.input_pipeline import Feed
from fabrictune.trainer_probe.training.loop import train
from fabrictune.trainer_probe.training.outcome import training_table
from fabrictune.trainer_probe.training.progress import Monitor, StepReport
from tests.trainer_probe.optimizers.flat_models import comm_of_one
from tests.trainer_probe.training.alone import machine_of_one, small, take_samples, train_alone


def test_text_is_learned(tmp_path: Path) -> None:
    """Bytes of one sentence again and again: the loss falls from about ln 258 = 5.55 to less than half in 30 steps."""
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog\n" * 200)
    data = {"source": "text", "paths": [str(text)]}
    reports, was_stopped = train_alone(small({"data": data, "num_steps": 30, "schedule.peak": 0.02}), tmp_path)
    assert not was_stopped
    assert reports[0].loss == pytest.approx(math.log(258), abs=0.3)
    assert reports[-1].loss < reports[0].loss / 2
    assert [report.step for report in reports] == list(range(30))
    assert all(report.tokens_per_s > 0 and report.gradient_norm > 0 for report in reports)


def test_a_recipe_trains_the_same_every_time(tmp_path: Path) -> None:
    """Same seed, same losses to the last bit, with a loader for the machine or for each worker."""
    losses = []
    for loader in ("machine", "worker", "machine"):
        reports, _ = train_alone(small({"loader": loader}), tmp_path)
        losses.append([(report.loss, report.gradient_norm) for report in reports])
    assert losses[0] == losses[1] == losses[2]


def test_a_run_begins_at_any_sample(tmp_path: Path) -> None:
    """Four samples a step: a run that begins at sample 4 has what another has from its second step on."""
    whole = take_samples(small(), tmp_path, 3)
    later = take_samples(small({"first_sample": 4}), tmp_path, 2)
    assert torch.equal(later, whole[4:])


def test_a_step_whose_gradients_are_not_finite_is_left_out(tmp_path: Path) -> None:
    """Weights of 1e30 after the first step overflow in single precision; the run goes on and says so."""
    reports, _ = train_alone(small({"schedule": {"peak": 1e30}}), tmp_path)
    assert [report.is_skipped for report in reports] == [False, True, True, True]
    table = training_table(reports)
    assert table["is_skipped"].tolist() == [0, 1, 1, 1]
    assert table["loss"][1:].tolist() == table["gradient_norm"][1:].tolist() == [-1.0] * 3


def test_a_run_ends_after_the_step_in_which_it_is_asked_to(tmp_path: Path) -> None:
    """Asked in the second step, the third never runs; asked in the last, the run has just finished."""
    reports, was_stopped = train_alone(small(), tmp_path, stop_after=1)
    assert (len(reports), was_stopped) == (2, True)
    reports, was_stopped = train_alone(small(), tmp_path, stop_after=3)
    assert (len(reports), was_stopped) == (4, False)


def test_a_known_peak_gives_a_utilisation(tmp_path: Path) -> None:
    """Operations of the step over those the device could have done in its time; -1 in the table where not known."""
    recipe = small({"num_steps": 1})
    reports: list[StepReport] = []
    watch = Monitor(on_step=reports.append, is_stopped=lambda: False, peak_flops_per_s=1e12)
    train(recipe, comm_of_one(), machine_of_one(recipe, tmp_path), watch, device_of(recipe))
    (report,) = reports
    assert report.mfu_fraction == pytest.approx(report.tokens_per_s * flops_per_token(recipe.model) / 1e12)
    unknown, _ = train_alone(recipe, tmp_path)
    assert math.isnan(unknown[0].mfu_fraction)
    assert training_table(unknown)["mfu_fraction"].tolist() == [-1.0]


def test_the_first_gather_is_under_way_when_data_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a feed which makes a step wait hides it: in each step the gather is the last request before the data."""
    recipe = small({"degrees": {"layout": {"dp": 2}, "num_batches": 2, "batch_size": 2}, "loader": "worker"})
    before_data: list[str] = []
    take = Feed.take
    with join_alone(recipe.degrees.layout, 0) as member:
        comm = Comm(recipe.degrees.layout, member)

        def note_and_take(feed: Feed) -> list[MicroBatch]:
            before_data.append(comm.trace().tag_N[-1])
            return take(feed)

        monkeypatch.setattr(Feed, "take", note_and_take)
        watch = Monitor(on_step=lambda report: None, is_stopped=lambda: False)
        train(recipe, comm, machine_of_one(recipe, tmp_path), watch, device_of(recipe))
    assert before_data == ["stage0.values"] * recipe.num_steps


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
def test_a_gpu_trains_as_a_cpu_does(tmp_path: Path) -> None:
    """bfloat16 has 8 bits of precision: losses agree to a percent in the first steps."""
    here, _ = train_alone(small(), tmp_path)
    there, _ = train_alone(small({"device": "cuda"}), tmp_path)
    assert [report.loss for report in there] == pytest.approx([report.loss for report in here], rel=0.01)
