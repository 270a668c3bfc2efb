"""One rank's step, planned: the trainer itself runs, alone, on tensors that have shapes and no values.

Left out: what the optimizer asks for, which is a few numbers for each of a model's weights.
"""

from dataclasses import dataclass

import torch

from fabrictune.collectives.startup.process_groups import Member
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import CommTrace
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.fake_groups import join_alone
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.parallel.passes import Passes
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.planning.flop_clock import ProductClock
from fabrictune.trainer_probe.planning.microbatch_replay import RepeatedPasses
from fabrictune.trainer_probe.planning.plan_ledger import PlanLedger
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.recipes.schema import Recipe

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
