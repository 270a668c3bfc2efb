"""Dry run of one rank's training step: the trainer itself, alone, on tensors that have shapes and no values.

A matrix product on the meta device costs the machine nothing; a clock of products advances by what a GPU would take
for it at a stated rate. Process groups carry nothing. All micro-batches make a stage's requests alike, so its passes run
for the first of them only, and their requests are replayed for the others, renamed.

Source: torch.utils.flop_counter for the operations of each product (a multiplication and an addition are two); torch's
`fake` backend (torch.testing._internal.distributed.fake_pg).
Left out: time bound by memory and not by products (norms, activations, the optimizer); the optimizer's requests, a few
numbers for each of a model's weights.

Shapes: P a rank's part of the sequence, B samples of a micro-batch, D width.
"""

from dataclasses import dataclass
import torch
from fabrictune.collectives.startup.process_groups import Member
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import CommTrace
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.parallel.passes import Passes
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.planning.plan_ledger import PlanLedger
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.recipes.schema import Recipe
from collections import deque
from fabrictune.trainer_probe.planning.plan_ledger import PlanLedger, Recording
from collections.abc import Mapping, Sequence
from typing import Any
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry
from fabrictune.foundation.units import NS_PER_S
from collections.abc import Iterator
from contextlib import contextmanager
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from fabrictune.collectives.startup.groups import GroupPlan

_META = torch.device("meta")


class _PlanComm(Comm):
    """The one door, with a ledger that plans."""

    def __init__(self, layout: ParallelLayout, member: Member, clock: ProductClock) -> None:
        super().__init__(layout, member, clock.now_ns)
        self._ledger = self.requests = PlanLedger(self.rank, self._groups, clock)


@dataclass(frozen=True, kw_only=True)
class RankPlan:
    """What a rank asks for in a step, with the work before each request, and the operations of its products."""

    trace: CommTrace
    flops: int


def plan_rank(recipe: Recipe, rank: int, flops_per_s: float) -> RankPlan:
    """Return the plan of a rank whose products run at a rate."""
    model, degrees, clock = recipe.model, recipe.degrees, ProductClock(flops_per_s)
    with join_alone(degrees.layout, rank) as member:
        comm = _PlanComm(degrees.layout, member, clock)

        def repeated(passes: Passes) -> Passes:
            return RepeatedPasses(passes, comm.requests, clock)

        dtype = getattr(torch, recipe.precision_name)
        trainer = ParallelTrainer(
            model, degrees, comm, POLICIES[recipe.overlap], dtype=dtype, device=_META, passes_of=repeated
        )
        ids = torch.empty(degrees.num_batches, degrees.batch_size, model.sequence, dtype=torch.int64, device=_META)
        trainer.run_step(0, [MicroBatch(tokens_BS=batch, targets_BS=batch) for batch in ids], _change_nothing)
        return RankPlan(trace=comm.ledger(), flops=clock.flops)


def _change_nothing() -> None:
    """Stand for an optimizer."""


class RepeatedPasses:
    """The passes of a stage, whose backward passes must come in the order of its forward ones."""

    def __init__(self, passes: Passes, ledger: PlanLedger, clock: ProductClock) -> None:
        self._passes, self._ledger, self._clock = passes, ledger, clock
        self._tags = deque[str]()  # of micro-batches that have gone forward and not yet backward
        self._forward: tuple[Recording, str, torch.Tensor] | None = None
        self._backward: tuple[Recording, str, torch.Tensor | None] | None = None

    def forward(self, batch: MicroBatch, x_PBD: torch.Tensor | None, tag: str) -> torch.Tensor:
        """Run the pass, or repeat what it asked for."""
        self._tags.append(tag)
        if self._forward is None:
            with self._ledger.recording() as recording, self._clock:
                found = self._passes.forward(batch, x_PBD, tag)
            self._forward = recording, tag, found.detach()
            return found
        recording, first_tag, found = self._forward
        self._ledger.repeat(recording, old=first_tag, new=tag)
        return found

    def backward(
        self, x_PBD: torch.Tensor | None, found: torch.Tensor, gradient_PBD: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Likewise."""
        tag = self._tags.popleft()
        if self._backward is None:
            with self._ledger.recording() as recording, self._clock:
                gradient = self._passes.backward(x_PBD, found, gradient_PBD)
            self._backward = recording, tag, gradient
            return gradient
        recording, first_tag, gradient = self._backward
        self._ledger.repeat(recording, old=first_tag, new=tag)
        return gradient


class ProductClock(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Nanoseconds of products executed while it is entered, and of those it is told of."""

    def __init__(self, flops_per_s: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # likewise
        self.flops = 0
        self._flops_per_s = flops_per_s

    def now_ns(self) -> int:
        """Return the time so far."""
        return round(self.flops / self._flops_per_s * NS_PER_S)

    def __torch_dispatch__(
        self, operator: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator, and count it where it is a product."""
        found = operator(*args, **(kwargs or {}))
        count = flop_registry.get(operator.overloadpacket)
        if count is not None:
            self.flops += count(*args, **(kwargs or {}), out_val=found)
        return found


@contextmanager
def join_alone(layout: ParallelLayout, rank: int) -> Iterator[Member]:
    """Give this process the groups of one rank of a layout, for as long as the block runs."""
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
