"""One rank's step, planned: the trainer itself runs, alone, on tensors that have shapes and no values."""

import torch

from collectives.startup.process_groups import Member
from foundation.layout import ParallelLayout
from foundation.traces import CommTrace
from trainer_probe.comm import Comm
from trainer_probe.fake_groups import join_alone
from trainer_probe.model.forward import MicroBatch
from trainer_probe.parallel.passes import Passes
from trainer_probe.parallel.trainer import ParallelTrainer
from trainer_probe.planning.plan_ledger import PlanLedger
from trainer_probe.planning.product_clock import ProductClock
from trainer_probe.planning.repeating import RepeatedPasses
from trainer_probe.planning.spec import PlanSpec
from trainer_probe.policies import POLICIES

_META = torch.device("meta")


class _PlanComm(Comm):
    """The one door, with a ledger that plans."""

    def __init__(self, layout: ParallelLayout, member: Member, clock: ProductClock) -> None:
        super().__init__(layout, member, clock.now_ns)
        self._ledger = self.requests = PlanLedger(self.rank, self._groups, clock)


def plan_rank(spec: PlanSpec, rank: int) -> CommTrace:
    """Return what a rank asks for in a step, with the work before each request; raises InputError.

    Requests of the optimizer are not among them.
    """
    model, degrees, clock = spec.model, spec.degrees, ProductClock(spec.flops_per_s)
    with join_alone(degrees.layout, rank) as member:
        comm = _PlanComm(degrees.layout, member, clock)

        def repeated(passes: Passes) -> Passes:
            return RepeatedPasses(passes, comm.requests, clock)

        dtype = getattr(torch, spec.dtype)
        trainer = ParallelTrainer(
            model, degrees, comm, POLICIES[spec.policy], dtype=dtype, device=_META, passes_of=repeated
        )
        ids = torch.empty(degrees.num_batches, degrees.batch_size, model.sequence, dtype=torch.int64, device=_META)
        batches = [MicroBatch(tokens_BS=batch, targets_BS=batch) for batch in ids]
        trainer.run_step(0, batches, _change_nothing)
        return comm.ledger()


def _change_nothing() -> None:
    """Stand for an optimizer."""
