"""Weights that a run begins with, and those that it leaves: Hugging Face checkpoints, which need safetensors."""

from pathlib import Path
from typing import TYPE_CHECKING

from fabrictune.foundation.extras import require_extra
from fabrictune.trainer_probe.recipes.schema import Recipe

if TYPE_CHECKING:
    from fabrictune.trainer_probe.training.training import Training


def check_weights(recipe: Recipe) -> None:
    """Raise InputError with all that does not fit in the checkpoint that a recipe begins with, if any."""
    if recipe.weights is None:
        return
    _require(recipe, "weights")
    from fabrictune.trainer_probe.huggingface.reader import Checkpoint

    Checkpoint(recipe.model, recipe.weights).close()


def load_weights(training: "Training") -> None:
    """Begin with the weights of the recipe's checkpoint, if any."""
    recipe = training.recipe
    if recipe.weights is None:
        return
    from fabrictune.trainer_probe.huggingface.reader import Checkpoint

    with Checkpoint(recipe.model, recipe.weights) as checkpoint:
        training.load_values(checkpoint)


def check_export(recipe: Recipe, folder: Path) -> Path:
    """Return the folder of a checkpoint to be; raises InputError or RecordError where none can be written there."""
    _require(recipe, "export")
    from fabrictune.trainer_probe.huggingface.writer import checkpoint_place

    return checkpoint_place(recipe.model, folder)


def export_weights(training: "Training", folder: Path) -> None:
    """Write a training's master values as a checkpoint; every rank calls this, and rank 0 writes."""
    from fabrictune.trainer_probe.huggingface.writer import write_checkpoint

    write_checkpoint(training.recipe.model, training.pieces(), training.comm, folder)


def _require(recipe: Recipe, what: str) -> None:
    require_extra("safetensors", extra="train", where=f"{recipe.name}: {what}")
