"""Export of a checkpoint's weights as a Hugging Face checkpoint, weight after weight, without starting the training."""

import math
from collections.abc import Sequence
from pathlib import Path

import torch

from fabrictune.foundation.errors import CheckpointError, InputError, Mistake
from fabrictune.foundation.extras import require_extra
from fabrictune.trainer_probe.checkpoint.listing import newest
from fabrictune.trainer_probe.checkpoint.names import CheckpointId
from fabrictune.trainer_probe.checkpoint.reader import open_state
from fabrictune.trainer_probe.checkpoint.storage import Storage
from fabrictune.trainer_probe.checkpoint.verification import of_step
from fabrictune.trainer_probe.huggingface.writer import checkpoint_place, write_weights
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.state.pieces import VALUE, Piece
from fabrictune.trainer_probe.state.train_state import check_head, missing_pieces


def export(recipe: Recipe, storages: Sequence[Storage], folder: Path, *, step: int | None = None) -> CheckpointId:
    """Write the master values of the newest checkpoint, or of that of a step, to a folder; returns which it was.

    Raises CheckpointError for a damaged or missing checkpoint, InputError where it is of another model or the model has
    no counterpart, RecordError for a folder that must not be replaced.
    """
    require_extra("safetensors", extra="train", where="export")
    checkpoint_place(recipe.model, folder)
    checkpoint = newest(storages) if step is None else of_step(storages, step)[0]
    if checkpoint is None:
        of_step(storages, None)
        raise CheckpointError(Mistake(where=storages[0].url, found="no checkpoint is complete"))
    head, source = open_state(storages, checkpoint)
    if mistakes := list(check_head(head, recipe, head.master_precision)):
        raise InputError(*mistakes)

    def read(weight: WeightSpec) -> torch.Tensor:
        values = torch.empty(math.prod(weight.shape), dtype=getattr(torch, head.master_precision))
        whole = Piece(weight=weight.name, part=0, begin=0, tensors={VALUE: values})
        if missing := list(missing_pieces(source.missing(whole, weight, 1))):
            raise InputError(*missing)
        source.fill(whole, weight, 1)
        return values.view(weight.shape)

    write_weights(recipe.model, read, folder)
    return checkpoint
