"""What an optimizer remembers, saved and taken up again."""

import pytest

pytest.importorskip("torch")

import torch

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer
from fabrictune.trainer_probe.optimizers.spec import OptimizerName, OptimizerSpec
from tests.trainer_probe.optimizers.flat_models import FlatModel, comm_of_one


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_going_on_from_a_state_gives_the_same_bits(name: OptimizerName) -> None:
    """Four steps, against two, a state, and two more by another optimizer that took it up."""
    spec, comm = OptimizerSpec(name=name), comm_of_one()
    straight, resumed = FlatModel(ParallelLayout(), 0), FlatModel(ParallelLayout(), 0)
    through, before, after = (make_optimizer(model.shards, spec, comm) for model in (straight, resumed, resumed))
    for step in range(4):
        straight.set_gradients(step)
        through.step(0.1)
    for step, optimizer in enumerate((before, before, after, after)):
        if step == 2:
            after.moments.load(before.moments.state())
        resumed.set_gradients(step)
        optimizer.step(0.1)
    for ours, theirs in zip(resumed.shards, straight.shards, strict=True):
        assert torch.equal(ours.values_E, theirs.values_E)
