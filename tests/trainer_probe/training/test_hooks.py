"""Hooks: who is called when, in which order, and what a run without them is."""

from pathlib import Path

import pytest

from fabrictune.trainer_probe.training.hooks import Hook, Hooks, Run

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.parallel.passes import Passes
from fabrictune.trainer_probe.training.hardware import device_of
from fabrictune.trainer_probe.training.loop import train
from fabrictune.trainer_probe.training.progress import Monitor, StepReport
from tests.trainer_probe.optimizers.flat_models import comm_of_one
from tests.trainer_probe.training.alone import machine_of_one, small


class NotedPasses:
    """A stage's passes that note when a forward pass runs."""

    def __init__(self, passes: Passes, name: str, notes: list[str]) -> None:
        self._passes, self._name, self._notes = passes, name, notes

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        self._notes.append(f"{self._name} forward {tag}")
        return self._passes.forward(batch, x_PBD, tag)

    def backward(
        self, x_PBD: torch.Tensor | None, output: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        return self._passes.backward(x_PBD, output, gradient_PBD)

    def weight_gradients(self) -> None:
        self._passes.weight_gradients()


def noting(name: str, notes: list[str]) -> Hook:
    """A hook that takes part in everything."""

    def before_step(training: Run, step: int) -> None:
        assert training.step == step
        notes.append(f"{name} before step {step}")

    def after_step(training: Run, report: StepReport) -> None:
        assert (training.step, training.place) == (report.step + 1, 4 * (report.step + 1))
        notes.append(f"{name} after step {report.step}")

    return Hook(
        before_step=before_step,
        after_step=after_step,
        passes_of=lambda passes: NotedPasses(passes, name, notes),
        before_update=lambda training: notes.append(f"{name} before update"),
        after_update=lambda training: notes.append(f"{name} after update"),
    )


def test_hooks_are_called_around_each_part_in_their_order(tmp_path: Path) -> None:
    """One step of two micro-batches, two hooks: the second one's passes are around the first one's."""
    recipe = small({"num_steps": 1})
    notes: list[str] = []
    watch = Monitor(on_step=lambda report: notes.append("reported"), is_stopped=lambda: False)
    machine, hooks = machine_of_one(recipe, tmp_path), [noting("a", notes), Hook(), noting("b", notes)]
    train(recipe, comm_of_one(), machine, watch, device_of(recipe), hooks=hooks)
    tags = [note.removeprefix("b forward ") for note in notes if note.startswith("b forward")]
    assert len(tags) == 2
    assert notes == [
        "a before step 0",
        "b before step 0",
        *(f"{name} forward {tag}" for tag in tags for name in ("b", "a")),
        "a before update",
        "b before update",
        "a after update",
        "b after update",
        "a after step 0",
        "b after step 0",
        "reported",
    ]


def test_the_hooks_of_the_optimizer_see_sums_before_and_values_after(tmp_path: Path) -> None:
    """Values change between the two, and nowhere else in a step; not at all in a step that is skipped."""
    recipe = small({"num_steps": 2, "schedule": {"peak": 1e30}})
    sums: list[float] = []

    def note(training: Run, *_: object) -> None:
        sums.append(sum(float(piece.tensors["value"].double().abs().sum()) for piece in training.pieces()))

    watch = Monitor(on_step=lambda report: None, is_stopped=lambda: False)
    hook = Hook(before_step=note, before_update=note, after_update=note, after_step=note)
    train(recipe, comm_of_one(), machine_of_one(recipe, tmp_path), watch, device_of(recipe), hooks=[hook])
    first, second = sums[:4], sums[4:]
    assert first[0] == first[1] != first[2] == first[3]
    assert set(second) == {first[3]}


def test_what_nobody_takes_part_in_is_not_called() -> None:
    """Passes are then the very object, and lists of callables are empty."""
    hooks = Hooks([Hook(), Hook(before_step=lambda training, step: None)])
    passes: object = object()
    assert hooks.passes_of(passes) is passes  # type: ignore[arg-type]  # any object
    counts = [len(part) for part in (hooks.before_step, hooks.after_step, hooks.before_update, hooks.after_update)]
    assert counts == [1, 0, 0, 0]
