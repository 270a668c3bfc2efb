"""Dry run of one rank's training step: the trainer itself, alone, on tensors that have shapes and no values.

An operation on the meta device costs the machine nothing; a clock advances by what a GPU would take for it at stated
rates. Process groups carry nothing. All micro-batches make the same requests at a stage, so its passes run for the
first of them only, and their requests and operations are replayed for the others, renamed.

Source: torch's `fake` backend (torch.testing._internal.distributed.fake_pg).
Left out: the optimizer's requests, a few numbers for each of a model's weights; its operations are counted, as on
the first data-parallel rank: other shards are cut at other weights.

Shapes: P a rank's part of the sequence, B samples of a micro-batch, D width.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.process_groups import Member
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import CommTrace
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.ledger import Ledger
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.optimizers.norms import clip_factor
from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer
from fabrictune.trainer_probe.parallel.passes import Passes
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.planning.operation_clock import Key, OperationClock, Part
from fabrictune.trainer_probe.planning.operation_costs import BOUNDS, Bound, OperationCosts
from fabrictune.trainer_probe.planning.plan_ledger import PlanLedger, Recording
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.recipes.schema import Recipe

Recorded = TypeVar("Recorded")

_META = torch.device("meta")


@dataclass(frozen=True, kw_only=True)
class RankPlan:
    """The requests of a rank in a step with the work before each, the clock of its operations, and its passes."""

    trace: CommTrace
    clock: OperationClock
    passes: Sequence["PassTime"]


@dataclass(frozen=True, kw_only=True)
class PassTime:
    """Time of a rank's operations in one pass of a chunk of its layers, or in a step's optimizer or rest."""

    part: str  # forward, backward, weights, optimizer or rest
    chunk: int | None  # of the rank's chunks of layers; None for the optimizer and the rest
    products_ps: int
    attention_ps: int
    memory_ps: int
    launch_ps: int

    @property
    def duration_ps(self) -> int:
        """Time of all operations."""
        return self.products_ps + self.attention_ps + self.memory_ps + self.launch_ps

    @classmethod
    def of_durations(cls, part: Part, chunk: int | None, duration_ps: Counter[Key]) -> "PassTime":
        """Return the time of a part's operations by what bounds them."""
        by_bound = Counter[Bound]()
        for (own_part, _, bound), own_ps in duration_ps.items():
            if own_part == part:
                by_bound[bound] += own_ps
        return cls(part=part, chunk=chunk, **{f"{bound}_ps": by_bound[bound] for bound in BOUNDS})


def plan_rank(recipe: Recipe, rank: int, costs: OperationCosts) -> RankPlan:
    """Return the plan of a rank of a cluster."""
    clock = OperationClock(costs)
    ledger = PlanLedger(rank, recipe.degrees.layout.axis_groups(), clock)
    chunks: list[ReplayedPasses[Recording]] = []

    def replay(passes: Passes) -> Passes:
        chunks.append(ReplayedPasses(passes, ledger, clock))
        return chunks[-1]

    comm = run_alone(recipe, rank, ledger, replay, clock)
    return RankPlan(trace=comm.trace(), clock=clock, passes=_pass_times(chunks, clock))


def run_alone(
    recipe: Recipe, rank: int, ledger: Ledger[int], passes_of: Callable[[Passes], Passes], clock: OperationClock
) -> Comm:
    """Run a rank's step alone, its requests recorded in `ledger`; returns its communication."""
    model, degrees = recipe.model, recipe.degrees
    with join_alone(degrees.layout, rank) as member:
        comm = Comm(degrees.layout, member, ledger)
        dtype = getattr(torch, recipe.precision_name)
        trainer = ParallelTrainer(
            model,
            degrees,
            comm,
            POLICIES[recipe.overlap],
            dtype=dtype,
            device=_META,
            passes_of=passes_of,
            data_parallel=recipe.data_parallel,
            recompute=recipe.recompute,
        )
        update = _make_update(recipe, trainer, Comm(degrees.layout, member), clock)
        ids = torch.empty(degrees.num_batches, degrees.batch_size, model.sequence, dtype=torch.int64, device=_META)
        batches = [MicroBatch(tokens_BS=batch, targets_BS=batch) for batch in ids]
        with clock:
            trainer.run_step(0, batches, update)
        return comm


def _pass_times(chunks: Sequence["ReplayedPasses[Recording]"], clock: OperationClock) -> list[PassTime]:
    """Return the times of one pass of each kind and chunk, of the optimizer and of the rest."""
    passes = [
        PassTime.of_durations(part, chunk, recording.duration_ps)
        for chunk, own in enumerate(chunks)
        for part, recording in own.recordings()
    ]
    of_step: tuple[Part, ...] = ("optimizer", "rest")
    return [*passes, *(PassTime.of_durations(part, None, clock.duration_ps) for part in of_step)]


def _make_update(
    recipe: Recipe, trainer: ParallelTrainer, unrecorded: Comm, clock: OperationClock
) -> Callable[[], None]:
    """Return the update of a step: gradients clipped, the optimizer's step, and requests outside the plan's ledger."""
    optimizer = make_optimizer(trainer.shards, recipe.optimizer, unrecorded)

    def update() -> None:
        with clock.in_part("optimizer"):
            _, factor = clip_factor(trainer.shards, recipe.optimizer.max_gradient_norm, unrecorded)
            optimizer.step(recipe.schedule.peak, factor)

    return update


class RecordsPasses(Protocol[Recorded]):
    """A ledger that records the requests of a pass, and replays them for another micro-batch."""

    def recording(self) -> AbstractContextManager[Recorded]:
        """Yield a recording of the block's requests and waits."""

    def replay(self, recording: Recorded, *, old: str, new: str) -> None:
        """Record it all again, with tags that begin with `new` instead of `old`."""


class ReplayedPasses(Generic[Recorded]):
    """The passes of a stage, run once and then replayed; each kind must have the order of the forward ones."""

    def __init__(self, passes: Passes, ledger: RecordsPasses[Recorded], clock: OperationClock) -> None:
        self._passes, self._ledger, self._clock = passes, ledger, clock
        self._tags = deque[str]()  # of micro-batches between their forward and backward pass
        self._split_tags = deque[str]()  # between their backward and their weights' pass
        self._forward: tuple[Recorded, str, torch.Tensor] | None = None
        self._backward: tuple[Recorded, str, torch.Tensor | None] | None = None
        self._weights: tuple[Recorded, str] | None = None

    def recordings(self) -> Iterator[tuple[Part, Recorded]]:
        """Yield the recording of each kind of pass that the stage has run."""
        if self._forward is not None:
            yield "forward", self._forward[0]
        if self._backward is not None:
            yield "backward", self._backward[0]
        if self._weights is not None:
            yield "weights", self._weights[0]

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Run the pass, or replay its requests."""
        self._tags.append(tag)
        if self._forward is None:
            with self._clock.in_part("forward"), self._ledger.recording() as recording:
                output = self._passes.forward(batch, x_PBD, tag)
            self._forward = recording, tag, output.detach()
            return output
        recording, first_tag, output = self._forward
        self._ledger.replay(recording, old=first_tag, new=tag)
        return output

    def backward(
        self, x_PBD: torch.Tensor | None, output: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Run the backward pass, or replay its requests."""
        tag = self._tags.popleft()
        self._split_tags.append(tag)
        if self._backward is None:
            with self._clock.in_part("backward"), self._ledger.recording() as recording:
                gradient = self._passes.backward(x_PBD, output, gradient_PBD)
            self._backward = recording, tag, gradient
            return gradient
        recording, first_tag, gradient = self._backward
        self._ledger.replay(recording, old=first_tag, new=tag)
        return gradient

    def weight_gradients(self) -> None:
        """Run the weights' pass, or replay its requests."""
        tag = self._split_tags.popleft()
        if self._weights is None:
            with self._clock.in_part("weights"), self._ledger.recording() as recording:
                self._passes.weight_gradients()
            self._weights = recording, tag
            return
        recording, first_tag = self._weights
        self._ledger.replay(recording, old=first_tag, new=tag)


@contextmanager
def join_alone(layout: ParallelLayout, rank: int) -> Iterator[Member]:
    """Yield one rank of a layout, with process groups that carry nothing, while the block runs.

    Requests are recorded as in a real job; received tensors keep whatever was in memory.
    """
    dist.init_process_group("fake", rank=rank, world_size=layout.world_size, store=FakeStore())
    try:
        plan = GroupPlan.of_layout(layout)
        groups = {
            group.name: dist.new_group(list(group.members), use_local_synchronization=True)
            for group in plan.of_rank(rank)
        }
        yield Member(rank=rank, plan=plan, process_groups=groups, elapsed_s=0.0)
    finally:
        dist.destroy_process_group()
