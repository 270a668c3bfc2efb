"""Hooks: callables around a run's steps, a stage's passes, and the optimizer.

Several may take part in one run; each is called in the order in which it is given. What a hook leaves out is not called
at all, and a stage's passes are called as they are where no hook wraps them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from fabrictune.foundation.spans import SpanKind
from fabrictune.trainer_probe.training.progress import StepReport

if TYPE_CHECKING:
    from fabrictune.trainer_probe.model.forward import MicroBatch
    from fabrictune.trainer_probe.parallel.passes import Passes
    from fabrictune.trainer_probe.state.pieces import Piece
    from fabrictune.trainer_probe.state.train_state import StateHead, TrainState

Take = Callable[[], "Sequence[MicroBatch]"]  # a step's


class Run(Protocol):
    """What a hook may ask of one rank's training."""

    step: int  # number of the next step, or of the one that runs
    place: int  # of its first sample in the order of samples

    def head(self) -> "StateHead":
        """Return the part of the state that all ranks share, between two steps."""

    def state(self) -> "TrainState":
        """Return this rank's state, between two steps."""

    def pieces(self) -> "tuple[Piece, ...]":
        """Return this rank's master values and moments, views of its storage."""


@dataclass(frozen=True, kw_only=True)
class Hook:
    """Callables of one who takes part in a run, on every rank."""

    before_step: "Callable[[Run, int], None] | None" = None  # with the step's number
    after_step: "Callable[[Run, StepReport], None] | None" = None
    passes_of: "Callable[[Passes], Passes] | None" = None  # wraps the two passes of each of a rank's stages
    take_of: Callable[[Take], Take] | None = None  # wraps how a step's micro-batches are taken
    before_update: "Callable[[Run], None] | None" = None  # gradients are summed
    after_update: "Callable[[Run], None] | None" = None  # values are new, unless the step was skipped
    span: SpanKind | None = None  # as which its calls are recorded, where a run's spans are
    is_busy: "Callable[[], bool] | None" = None  # asked at a step's end; the report has the number of busy ranks


class Hooks:
    """The hooks of a run, sorted by what they take part in."""

    def __init__(self, hooks: Iterable[Hook]) -> None:
        hooks = tuple(hooks)
        self.before_step = tuple(filter(None, (hook.before_step for hook in hooks)))
        self.after_step = tuple(filter(None, (hook.after_step for hook in hooks)))
        self.before_update = tuple(filter(None, (hook.before_update for hook in hooks)))
        self.after_update = tuple(filter(None, (hook.after_update for hook in hooks)))
        self._are_busy = tuple(filter(None, (hook.is_busy for hook in hooks)))
        self._wrappers = tuple(filter(None, (hook.passes_of for hook in hooks)))
        self._take_wrappers = tuple(filter(None, (hook.take_of for hook in hooks)))

    def is_busy(self) -> bool:
        """Return whether any hook is."""
        return any(ask() for ask in self._are_busy)

    def passes_of(self, passes: "Passes") -> "Passes":
        """Return a stage's passes, wrapped by one hook after another, the first one innermost."""
        return reduce(lambda wrapped, wrap: wrap(wrapped), self._wrappers, passes)

    def take_of(self, take: "Take") -> "Take":
        """Return how a step's micro-batches are taken, wrapped by one hook after another, the first one innermost."""
        return reduce(lambda wrapped, wrap: wrap(wrapped), self._take_wrappers, take)
