"""A training loop with checkpoints around it, where a run asks for them."""

from pathlib import Path

import torch

from fabrictune.trainer_probe.checkpoint.running import CheckpointSettings, RunCheckpoints
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.operation.pages import RankPage
from fabrictune.trainer_probe.operation.watched import page_hook
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.hooks import Hook, Run
from fabrictune.trainer_probe.training.input_pipeline import Machine
from fabrictune.trainer_probe.training.loop import train
from fabrictune.trainer_probe.training.progress import Monitor, StepReport
from fabrictune.trainer_probe.training.training import Training


def train_with_checkpoints(
    recipe: Recipe,
    comm: Comm,
    machine: Machine,
    monitor: Monitor,
    device: torch.device,
    *,
    checkpoints: CheckpointSettings | None,
    export: Path | None,
    spans: Path | None,
    page: RankPage | None = None,
) -> tuple[bool, int | None]:
    """Train as `train` does; returns whether it was stopped, and the place of the next sample if one is known.

    Sections and steps are written to a page, if given.
    """
    place: list[int] = []

    def note_place(run: Run, report: StepReport) -> None:
        place[:] = [run.place]

    hooks = [Hook(after_step=note_place), *([] if page is None else [page_hook(page)])]
    if checkpoints is None:
        was_stopped = train(recipe, comm, machine, monitor, device, hooks=hooks, export=export, spans=spans)
        return was_stopped, place[0] if place else None

    def restore(training: Training) -> bool:
        is_restored = kept.restore(training)
        place[:] = [training.place]
        return is_restored

    kept = RunCheckpoints(
        checkpoints,
        comm,
        last_step=recipe.end_step,
        num_local_ranks=len(machine.ranks),
        on_note=monitor.on_note,
    )
    hooks += kept.hooks
    was_stopped = train(
        recipe, comm, machine, monitor, device, hooks=hooks, restore=restore, export=export, spans=spans
    )
    kept.close()
    return was_stopped, place[0] if place else None
