"""Pipeline schedules as data: the order in which a rank runs its chunks on the micro-batches.

A model is cut into stages; of `pp` ranks with `virtual` chunks each, stage s is chunk s // pp of rank s % pp. A
schedule is one file of `parallel/schedules`, and `table.py` there lists them.

A backward pass is one, or two: for the gradient of the inputs, which the stage before waits for, and for those of the
weights, which nobody waits for before the step's end.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from fabrictune.foundation.errors import Mistake

ScheduleName = Literal["1f1b", "interleaved", "zb-h1"]
PassKind = Literal["forward", "backward", "weights"]


@dataclass(frozen=True, kw_only=True)
class PipelineShape:
    """Ranks of a pipeline, chunks of a rank, micro-batches of a step, and their schedule.

    Without a schedule it is interleaved where a rank has several chunks, and 1F1B where it has one.
    """

    pp: int
    virtual: int
    num_batches: int
    schedule: ScheduleName | None = None

    @property
    def num_stages(self) -> int:
        """Stages of the whole model."""
        return self.pp * self.virtual

    @property
    def schedule_name(self) -> ScheduleName:
        """The schedule's name in the table."""
        return self.schedule or ("interleaved" if self.virtual > 1 else "1f1b")


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One micro-batch's pass through a stage."""

    kind: PassKind
    stage: int
    batch: int

    def __str__(self) -> str:
        return f"stage{self.stage}.batch{self.batch}.{self.kind}"


@dataclass(frozen=True, kw_only=True)
class PassTimes:
    """Times of a stage's passes of a micro-batch, in any unit; `backward` is without the weights' part."""

    forward: float
    backward: float
    weights: float

    @property
    def total(self) -> float:
        """Time of all passes of a micro-batch."""
        return self.forward + self.backward + self.weights


class Schedule(ABC):
    """The order of passes, its conditions, and its bubble."""

    splits_backward: ClassVar[bool] = False  # whether weights' gradients have passes of their own
    bubble_formula: ClassVar[str]  # of `bubble_fraction`, as a plan prints it

    @abstractmethod
    def passes_of_rank(self, shape: PipelineShape, rank: int) -> tuple[Pass, ...]:
        """Return the passes of the pipeline's rank `rank` in its order."""

    @abstractmethod
    def bubble_fraction(self, shape: PipelineShape, times: PassTimes) -> float:
        """Return idle over busy time in closed form, with equal stages and no communication time."""

    def mistakes(self, shape: PipelineShape) -> Iterator[Mistake]:
        """Return what the schedule does not allow."""
        if shape.virtual > 1:
            yield Mistake(
                where="virtual",
                found=str(shape.virtual),
                allowed=f"1 with the schedule {shape.schedule_name}",
                next_step="choose the schedule interleaved for several chunks",
            )
