"""Optimizers on the shards of a trained model: norms over the axes, and master copies in single precision."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.policies import POLICIES

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.optimizers.norms import clip_factor
from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

NUM_SAMPLES = 4
MODEL = GptSpec(width=16, depth=4, num_heads=4, vocabulary=12, sequence=8)
EPSILON = 1e-3  # a key's bias has no gradient but rounding, which a smaller one would blow up
MAX_NORM = 0.1


def make_batches(place: int, num_batches: int) -> list[MicroBatch]:
    """The share of one data-parallel rank in four samples, one a micro-batch."""
    ids = torch.randint(12, (NUM_SAMPLES, MODEL.sequence + 1), generator=torch.Generator().manual_seed(3))
    mine = ids[place * num_batches : (place + 1) * num_batches]
    return [MicroBatch(tokens_BS=sample[None, :-1], targets_BS=sample[None, 1:]) for sample in mine]


def train_with_lamb(degrees: Degrees, member: "Member") -> dict[str, NDArray[Any]]:
    """Return the weights after two steps of LAMB, and the gradients' norms before they were clipped."""
    from fabrictune.trainer_probe.comm import Comm

    comm = Comm(degrees.layout, member)
    trainer = ParallelTrainer(MODEL, degrees, comm, POLICIES["all"])
    optimizer = make_optimizer(trainer.shards, OptimizerSpec(name="lamb", epsilon=EPSILON), comm)
    norms = []

    def update() -> None:
        norm, factor = clip_factor(trainer.shards, MAX_NORM, comm)
        norms.append(float(norm))
        optimizer.step(0.01, factor)

    batches = make_batches(comm.members("dp").index(comm.rank), degrees.num_batches)
    for step in range(2):
        trainer.run_step(step, batches, update)
    trainer.complete()
    weights = {name: values for stage in trainer.stages.values() for name, values in stage.weights.items()}
    return {"norms": np.array(norms), **{name: values.detach().numpy() for name, values in weights.items()}}


def test_lamb_with_clipping_does_on_eight_ranks_what_it_does_on_one() -> None:
    """A weight's norm takes its pieces on all ranks, each once, also where shards cut it and tensor ranks repeat it."""
    alone = launch(ParallelLayout(), partial(train_with_lamb, Degrees(num_batches=NUM_SAMPLES)))[0]
    layout = ParallelLayout(tp=2, pp=2, dp=2)
    ranks = launch(layout, partial(train_with_lamb, Degrees(layout=layout, virtual=2, num_batches=2)))
    assert alone["norms"].min() > MAX_NORM, "clipping has something to do"
    for rank, found in enumerate(ranks):
        np.testing.assert_allclose(found.pop("norms"), alone["norms"], rtol=0, atol=1e-12)
        for weight in ChunkSpec(model=MODEL).weights():
            if weight.name in found:
                whole = torch.from_numpy(alone[weight.name])
                part = weight.local_part(whole, layout.tp, int(layout.coordinates(rank)["tp"]))
                np.testing.assert_allclose(found[weight.name], part, rtol=0, atol=1e-12, err_msg=weight.name)


def train_in_bfloat16(degrees: Degrees, member: "Member") -> dict[str, NDArray[Any]]:
    """Add 2**-12 to every value 32 times over, as small gradients would; return a norm's gains before and after."""
    from fabrictune.trainer_probe.comm import Comm

    comm = Comm(degrees.layout, member)
    trainer = ParallelTrainer(MODEL, degrees, comm, POLICIES["all"], dtype=torch.bfloat16)
    gain = trainer.stages[0].weights["layers.0.norm.gain"]
    trainer.complete()
    before = gain.detach().float().numpy().copy()

    def update() -> None:
        for shard in trainer.shards:
            assert shard.gradients_E.abs().max() > 0
            for _ in range(32):
                shard.values_E.add_(2.0**-12)

    batches = make_batches(comm.members("dp").index(comm.rank), degrees.num_batches)
    loss = trainer.run_step(0, batches, update, loss_scale=1024.0)
    trainer.complete()
    return {"before": before, "after": gain.detach().float().numpy(), "loss": loss.float().numpy()}


def test_half_precision_does_not_lose_small_changes() -> None:
    """Above 1 a bfloat16 has steps of 2**-7: 2**-12 is lost each time, and 32 of them in the master copy make one.

    The loss is reported without its scale: that of guessing one of 12, 2.48, over both ranks.
    """
    layout = ParallelLayout(dp=2)
    ranks = launch(layout, partial(train_in_bfloat16, Degrees(layout=layout, num_batches=2)))
    for found in ranks:
        assert (found["before"] == 1.0).all()
        assert (found["after"] == 1.0 + 2.0**-7).all()
    assert sum(float(found["loss"]) for found in ranks) == pytest.approx(2.48, abs=0.05)
