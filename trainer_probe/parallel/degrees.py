"""Degrees of a training step's division: axes, chunks, micro-batches; checked against the model in one place.

Source: Narayanan et al., SC 2021, section 2.2, for micro-batches as a multiple of the pipeline's ranks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.parallel.schedule import PipelineShape, ScheduleName
from fabrictune.trainer_probe.parallel.schedules.table import schedule_of


@dataclass(frozen=True, kw_only=True)
class Degrees:
    """Division of the model and of a step's samples over ranks."""

    layout: ParallelLayout = field(default_factory=ParallelLayout)
    virtual: int = field(default=1, metadata={"help": "model chunks of a pipeline rank (v)"})
    num_batches: int = field(default=1, metadata={"help": "micro-batches of a step on each data-parallel rank (m)"})
    batch_size: int = field(default=1, metadata={"help": "samples of a micro-batch (b)"})
    tensor_chunks: int = field(
        default=1, metadata={"help": "chunks of a tensor-parallel collective, to overlap with its product"}
    )
    schedule: ScheduleName | None = field(
        default=None,
        metadata={"help": "order of a pipeline's passes; by default interleaved where virtual is above 1, else 1f1b"},
    )

    @property
    def pipeline(self) -> PipelineShape:
        """The shape of the pipeline."""
        return PipelineShape(
            pp=self.layout.pp, virtual=self.virtual, num_batches=self.num_batches, schedule=self.schedule
        )

    @property
    def samples_per_step(self) -> int:
        """Samples of a step, over all ranks."""
        return self.layout.dp * self.num_batches * self.batch_size


def check_degrees(model: ModelSpec, degrees: Degrees) -> None:
    """Raise InputError with all degrees that do not divide the model."""
    mistakes = [
        *_not_positive(degrees),
        *_not_yet_divided(degrees),
        *_undivided_by_tensor_ranks(model, degrees),
        *_undivided_by_pipeline_ranks(model, degrees),
    ]
    if mistakes:
        raise InputError(*mistakes)


def _not_positive(degrees: Degrees) -> Iterable[Mistake]:
    for name in ("virtual", "num_batches", "batch_size", "tensor_chunks"):
        value = getattr(degrees, name)
        if value < 1:
            yield Mistake(where=name, found=str(value), allowed="1 or more")


def _not_yet_divided(degrees: Degrees) -> Iterable[Mistake]:
    for name, divided in (("cp", "sequences"), ("ep", "experts")):
        value = getattr(degrees.layout, name)
        if value > 1:
            next_step = "raise tp, dp or pp instead"
            yield Mistake(
                where=f"layout.{name}",
                found=f"{name} {value}",
                allowed=f"1: {divided} are not divided",
                next_step=next_step,
            )


def _undivided_by_tensor_ranks(model: ModelSpec, degrees: Degrees) -> Iterable[Mistake]:
    tp, chunks = degrees.layout.tp, max(1, degrees.tensor_chunks)
    split = [(name, tp) for name in model.split_keys]
    for name, parts in (*split, ("sequence", tp * chunks if tp > 1 else 1)):
        value = getattr(model, name)
        if value % parts:
            of_what = f"tp {tp}" if parts == tp else f"tp {tp} times tensor_chunks {chunks}"
            yield Mistake(where=f"model.{name}", found=str(value), allowed=f"a multiple of {parts}, {of_what}")


def _undivided_by_pipeline_ranks(model: ModelSpec, degrees: Degrees) -> Iterable[Mistake]:
    pp, virtual = degrees.layout.pp, max(1, degrees.virtual)
    if model.depth % (pp * virtual):
        yield Mistake(
            where="model.depth",
            found=str(model.depth),
            allowed=f"a multiple of {pp * virtual}, pp {pp} times virtual {virtual}",
        )
    yield from schedule_of(degrees.pipeline).mistakes(degrees.pipeline)
