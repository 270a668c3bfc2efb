"""A stage as one graph, traced and differentiated as a compiler is given it, against the same without a graph."""

from collections.abc import Callable
from functools import partial

import pytest

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec
from fabrictune.trainer_probe.model.gpt import Block, GptSpec, Positions
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.policies import POLICIES

pytest.importorskip("torch")

import torch
from torch._dynamo.testing import CompileCounterWithBackend

from fabrictune.collectives.startup.groups import GroupPlan
from fabrictune.collectives.startup.process_groups import Member
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.parallel.passes import CompiledPasses, Passes
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer

ALONE = ParallelLayout()
DEGREES = Degrees(layout=ALONE, num_batches=3, batch_size=2)
UNFUSED = DataParallelSpec(gradient_accumulation_fusion=False)  # as a graph's gradients are


def train(model: GptSpec, passes_of: Callable[[Passes], Passes]) -> tuple[float, torch.Tensor]:
    """Return the loss and all gradients of the second step."""
    comm = Comm(ALONE, Member(rank=0, plan=GroupPlan.of_layout(ALONE), process_groups={}, elapsed_s=0.0))
    trainer = ParallelTrainer(model, DEGREES, comm, POLICIES["none"], passes_of=passes_of, data_parallel=UNFUSED)
    ids_MBS = torch.randint(model.vocabulary, (3, 2, model.sequence + 1), generator=torch.Generator().manual_seed(0))
    batches = [MicroBatch(tokens_BS=ids_BS[:, :-1], targets_BS=ids_BS[:, 1:]) for ids_BS in ids_MBS]
    (shard,) = trainer.shards

    def descend() -> None:
        shard.values_E.sub_(shard.gradients_E)

    trainer.run_step(0, batches, descend)
    return float(trainer.run_step(1, batches, lambda: None)), shard.gradients_E


@pytest.mark.parametrize(("block", "positions", "window"), [("parallel", "learned", None), ("serial", "rotary", 3)])
def test_all_micro_batches_run_through_one_graph(block: Block, positions: Positions, window: int | None) -> None:
    """To the last bit, since the graph's operations are run one by one; a compiler's own may differ in rounding."""
    model = GptSpec(
        width=8, depth=2, num_heads=2, vocabulary=6, sequence=4, window=window, block=block, positions=positions
    )
    torch._dynamo.reset()
    backend = CompileCounterWithBackend("eager")
    loss, gradients_E = train(model, partial(CompiledPasses, backend=backend))
    expected_loss, expected_E = train(model, lambda passes: passes)
    assert (loss, backend.frame_count) == (expected_loss, 1)
    assert torch.equal(gradients_E, expected_E)
