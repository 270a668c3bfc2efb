"""Training in the test's own process: one rank, no launcher."""

from pathlib import Path

import torch

from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.training.hardware import device_of
from fabrictune.trainer_probe.training.input_pipeline import Machine, make_batches, open_feed
from fabrictune.trainer_probe.training.loop import train
from fabrictune.trainer_probe.training.progress import Monitor, StepReport
from tests.trainer_probe.optimizers.flat_models import comm_of_one

SMALL = {
    "model": {"width": 16, "depth": 2, "num_heads": 2, "vocabulary": 258, "sequence": 16},
    "degrees": {"num_batches": 2, "batch_size": 2},
    "num_steps": 4,
}


def small(changes: dict[str, object] | None = None) -> Recipe:
    """Return a recipe of one rank, with changes."""
    return load_recipe(find_recipe("tiny"), {**SMALL, **(changes or {})})


def machine_of_one(recipe: Recipe, folder: Path) -> Machine:
    """Return a machine with one rank on it, and the recipe's data in a folder."""
    batches = make_batches(recipe, folder)
    return Machine(ranks=(0,), tokens=Path(batches.spec.path), job=folder.name + recipe.name)


def train_alone(recipe: Recipe, folder: Path, *, stop_after: int | None = None) -> tuple[list[StepReport], bool]:
    """Return the reports of a training, and whether it was stopped."""
    reports: list[StepReport] = []
    watch = Monitor(on_step=reports.append, is_stopped=lambda: len(reports) == stop_after)
    was_stopped = train(recipe, comm_of_one(), machine_of_one(recipe, folder), watch, device_of(recipe))
    return reports, was_stopped


def take_samples(recipe: Recipe, folder: Path, num_steps: int) -> torch.Tensor:
    """Return the samples of the first steps, sample after sample."""
    comm, device = comm_of_one(), torch.device("cpu")
    with open_feed(recipe, comm, machine_of_one(recipe, folder), device, first_place=recipe.first_place) as feed:
        return torch.cat([batch.tokens_BS for _ in range(num_steps) for batch in feed.take()])
