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
    expert_chunks: int = field(
        default=1, metadata={"help": "chunks of the exchange of experts' tokens, to overlap with their products"}
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
        *_divided_token_groups(model, degrees),
        *_undivided_by_expert_ranks(model, degrees),
        *_undivided_by_tensor_ranks(model, degrees),
        *_undivided_by_context_ranks(model, degrees),
        *_undivided_by_pipeline_ranks(model, degrees),
    ]
    if mistakes:
        raise InputError(*mistakes)


def _not_positive(degrees: Degrees) -> Iterable[Mistake]:
    for name in ("virtual", "num_batches", "batch_size", "tensor_chunks", "expert_chunks"):
        value = getattr(degrees, name)
        if value < 1:
            yield Mistake(where=name, found=str(value), allowed="1 or more")


def _divided_token_groups(model: ModelSpec, degrees: Degrees) -> Iterable[Mistake]:
    """Yield where a chunk of a sequence, of which a rank of cp has two, is no whole number of groups of tokens."""
    num_chunks, num_groups = 2 * degrees.layout.cp, model.num_token_groups
    if degrees.layout.cp > 1 and num_groups is not None and num_groups % num_chunks:
        yield Mistake(
            where="model.token_groups",
            found=str(num_groups),
            allowed=f"a multiple of {num_chunks}, 2 times cp {degrees.layout.cp}, as experts have slots for each group",
            next_step=f"set model.token_groups to {num_chunks}, in every layout that is to compute the same",
        )


def _undivided_by_expert_ranks(model: ModelSpec, degrees: Degrees) -> Iterable[Mistake]:
    ep = degrees.layout.ep
    if model.num_divided_experts is None:
        for where, found in (("layout.ep", ep), ("expert_chunks", degrees.expert_chunks)):
            if found > 1:
                allowed = f"1, since a model of the family {model.family} has no experts"
                yield Mistake(where=where, found=str(found), allowed=allowed, next_step="set model.family to moe")
    elif model.num_divided_experts % ep:
        yield Mistake(where="model.num_experts", found=str(model.num_divided_experts), allowed=f"a multiple of ep {ep}")
    elif degrees.expert_chunks > 1 and ep == 1:
        yield Mistake(
            where="expert_chunks",
            found=str(degrees.expert_chunks),
            allowed="1 where ep is 1",
            next_step="raise layout.ep",
        )


def _undivided_by_tensor_ranks(model: ModelSpec, degrees: Degrees) -> Iterable[Mistake]:
    tp, chunks = degrees.layout.tp, max(1, degrees.tensor_chunks)
    split = [(name, tp) for name in model.split_keys]
    own_sequence = tp * chunks if tp > 1 and degrees.layout.cp == 1 else 1
    for name, parts in (*split, ("sequence", own_sequence)):
        value = getattr(model, name)
        if value % parts:
            of_what = f"tp {tp}" if parts == tp else f"tp {tp} times tensor_chunks {chunks}"
            yield Mistake(where=f"model.{name}", found=str(value), allowed=f"a multiple of {parts}, {of_what}")


def _undivided_by_context_ranks(model: ModelSpec, degrees: Degrees) -> Iterable[Mistake]:
    """Yield where a rank of a context-parallel group has no two equal chunks, or its tensor group no equal parts."""
    tp, cp = degrees.layout.tp, degrees.layout.cp
    chunks = max(1, degrees.tensor_chunks) if tp > 1 else 1
    parts = 2 * cp * tp * chunks
    if cp > 1 and model.sequence % parts:
        factors = [("cp", cp), *((name, value) for name, value in (("tp", tp), ("tensor_chunks", chunks)) if value > 1)]
        of_what = " times ".join(("2", *(f"{name} {value}" for name, value in factors)))
        yield Mistake(where="model.sequence", found=str(model.sequence), allowed=f"a multiple of {parts}, {of_what}")


def _undivided_by_pipeline_ranks(model: ModelSpec, degrees: Degrees) -> Iterable[Mistake]:
    pp, virtual = degrees.layout.pp, max(1, degrees.virtual)
    if model.depth % (pp * virtual):
        yield Mistake(
            where="model.depth",
            found=str(model.depth),
            allowed=f"a multiple of {pp * virtual}, pp {pp} times virtual {virtual}",
        )
    yield from schedule_of(degrees.pipeline).mistakes(degrees.pipeline)
