"""Checkpoints written by all ranks of a layout, alone in the test's process, with numbers that tell each element."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import torch

from fabrictune.trainer_probe.checkpoint.division import cut_ranges, part_sizes, spans_of
from fabrictune.trainer_probe.checkpoint.entries import lay_out
from fabrictune.trainer_probe.checkpoint.names import CheckpointId
from fabrictune.trainer_probe.checkpoint.saves import FilePlan, Save, SaveReport, Writer
from fabrictune.trainer_probe.checkpoint.staging import Stager
from fabrictune.trainer_probe.checkpoint.tier import Tier, TierWriter
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.data.batches import Batches
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.planning.dry_run import join_alone
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.state.pieces import VALUE, Piece, PieceSource
from fabrictune.trainer_probe.state.train_state import TrainState
from fabrictune.trainer_probe.training.hardware import device_of
from fabrictune.trainer_probe.training.section_timeouts import SectionTimeouts
from fabrictune.trainer_probe.training.training import Training
from tests.patience import patience

MODEL = {"width": 16, "depth": 4, "num_heads": 4, "vocabulary": 60, "sequence": 8, "block": "serial"}
MIXTURE = {
    "family": "moe",
    "width": 16,
    "depth": 4,
    "num_heads": 4,
    "num_key_value_heads": 2,
    "num_experts": 4,
    "feed_forward_width": 12,
    "vocabulary": 60,
    "sequence": 8,
}


class Numbered:
    """A source in which each element of each tensor of each weight is a number of its own."""

    def missing(self, *_: object) -> tuple[str, ...]:
        """Return nothing: it has all."""
        return ()

    def fill(self, piece: Piece, weight: WeightSpec, tp: int) -> None:
        """Write the numbers of a piece."""
        for number, name in enumerate(sorted(piece.tensors)):
            whole = torch.arange(int(np.prod(weight.shape)), dtype=torch.float64).view(weight.shape) + 0.25 * number
            own = weight.local_part(whole, tp, piece.part).flatten()
            piece.tensors[name].copy_(own[piece.begin : piece.end])


def recipe_of(degrees: Mapping[str, object], strategy: str, model: Mapping[str, object] = MODEL) -> Recipe:
    """Return a recipe in double precision."""
    changes = {
        "model": model,
        "degrees": degrees,
        "data_parallel.strategy": strategy,
        "data": {"source": "synthetic", "num_tokens": 4001},
        "precision": "float64",
    }
    return load_recipe(find_recipe("tiny"), changes)


def states_of(recipe: Recipe, tokens: Path, source: PieceSource) -> list[TrainState]:
    """Return the states of all ranks of a recipe, each loaded from a source."""
    states = []
    for rank in range(recipe.degrees.layout.world_size):
        with join_alone(recipe.degrees.layout, rank) as member:
            comm = Comm(recipe.degrees.layout, member)
            training = Training(recipe, comm, device_of(recipe), batches=lambda: Batches(recipe.batches(tokens)))
            training.load(training.head(), source)
            states.append(training.state().clone())
    return states


def write(
    states: list[TrainState],
    tiers: list[Tier],
    checkpoint: CheckpointId,
    *,
    ranks: Iterable[int] | None = None,
    timeouts: SectionTimeouts | None = None,
    first_step: int = 0,
) -> list[SaveReport]:
    """Let ranks write their states, each to its tier or all to one; returns what became of it, by rank."""
    limits = timeouts or SectionTimeouts()
    tables = [spans_of(state.pieces) for state in states]
    reports: list[SaveReport] = []
    with ExitStack() as stack:
        writers = []
        for rank in range(len(states)) if ranks is None else ranks:
            tier, state = tiers[rank % len(tiers)], states[rank]
            views = lay_out([own for own in cut_ranges(state.pieces, tables, rank) if tier.is_per_node or own.is_own])
            stager = Stager(views, 1)
            stack.callback(stager.close)
            staged = stager.stage()
            staged.use(1)
            writer = TierWriter(
                tier,
                Writer(rank=rank, num_ranks=len(states), attempt="one", part_sizes=part_sizes(tables)),
                FilePlan.of(views, has_all=tier.is_per_node),
                generation=checkpoint.generation,
                first_step=first_step,
                timeouts=limits,
                on_report=reports.append,
            )
            writer.put(Save(id=checkpoint, head=state.head, staged=staged, began_s=0.0))
            writers.append(writer)
        for writer in writers:
            assert writer.close(patience(60))
    return reports


def whole(recipe: Recipe, source: PieceSource) -> dict[str, torch.Tensor]:
    """Return whole weights and moments by name."""
    result: dict[str, torch.Tensor] = {}
    for weight in ChunkSpec(model=recipe.model).weights():
        count = int(np.prod(weight.shape))
        tensors = {
            name: torch.full((count,), -1.0, dtype=torch.float64) for name in (VALUE, "first_moment", "second_moment")
        }
        piece = Piece(weight=weight.name, part=0, begin=0, tensors=tensors)
        assert tuple(source.missing(piece, weight, 1)) == ()
        source.fill(piece, weight, 1)
        result |= {f"{weight.name} {name}": tensor for name, tensor in tensors.items()}
    return result
