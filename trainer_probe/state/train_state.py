"""The state of a training between two steps: a head that all ranks share, and each rank's pieces.

With the recipe it is all that later steps depend on. The learning rate is a function of the step's number; gradients,
values in half precision and the shards of others are made anew by the next step.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.trainer_probe.optimizers.loss_scale import LossScale
from fabrictune.trainer_probe.recipes.schema import Recipe
from fabrictune.trainer_probe.state.pieces import Piece, PieceTable

MAX_NAMED = 16  # missing ranges that an error lists
NEXT_STEP = "resume with the recipe of the earlier run"


@dataclass(frozen=True, kw_only=True)
class StateHead:
    """What a state is of, and how far it has come; JSON values only."""

    step: int  # number of the next step, which also places it in the learning-rate schedule
    num_updates: int  # of the optimizer; a skipped step is none
    loss_scale: float | None
    num_good_steps: int  # since the loss scale changed
    data: Mapping[str, int]  # place in the order of samples, and what identifies that order
    master_precision: str  # of the values that the optimizer updates
    settings: Mapping[str, Any]  # the recipe's, by dotted name, with the layout

    @property
    def tp(self) -> int:
        """Tensor-parallel degree of the pieces."""
        return int(self.settings["degrees.layout.tp"])

    def scale(self) -> LossScale | None:
        """Return the loss scale."""
        if self.loss_scale is None:
            return None
        return LossScale(value=self.loss_scale, num_good_steps=self.num_good_steps)

    def to_json(self) -> dict[str, Any]:
        """Return the head as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the head that `to_json` gave; raises TypeError for other names."""
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class TrainState:
    """One rank's state. Its pieces are views of the rank's storage, good until the next step, or copies of those."""

    head: StateHead
    pieces: tuple[Piece, ...]

    def clone(self) -> "TrainState":
        """Return the state with copies of all tensors."""
        return replace(self, pieces=tuple(piece.clone() for piece in self.pieces))


def join(states: Sequence[TrainState]) -> tuple[StateHead, PieceTable]:
    """Return the head and the pieces of all ranks' states; raises InputError where they are not of one moment."""
    head = states[0].head
    others = sorted({str(state.head.step) for state in states if state.head != head})
    if others:
        raise InputError(
            Mistake(where="states of the ranks", found=f"of steps {', '.join(others)} too", allowed=f"step {head.step}")
        )
    return head, PieceTable((piece for state in states for piece in state.pieces), head.tp)


def check_head(head: StateHead, recipe: Recipe, master_precision: str) -> Iterator[Mistake]:
    """Yield where a state is of another training than a recipe's: model, optimizer, precision of master values."""
    expected = {**recipe.settings(), "precision of master values": master_precision}
    found = {**head.settings, "precision of master values": head.master_precision}
    for name in sorted(expected.keys() | found.keys()):
        is_bound = name.startswith("model.") or name in ("optimizer.name", "precision of master values")
        if is_bound and name != "model.seed" and found.get(name) != expected.get(name):
            yield Mistake(
                where=f"state: {name}",
                found=str(found.get(name)),
                allowed=f"{expected.get(name)}, as in {recipe.name}",
                next_step=NEXT_STEP,
            )


def missing_pieces(missing: Iterable[str]) -> Iterator[Mistake]:
    """Yield one mistake for all that a source lacks, if anything."""
    names = list(missing)
    if names:
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        yield Mistake(
            where="state: pieces", found=f"not there: {'; '.join(names[:MAX_NAMED])}{more}", next_step=NEXT_STEP
        )
