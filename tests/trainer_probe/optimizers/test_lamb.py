"""LAMB against the paper's algorithm written out, and on shards against one process."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.launcher.processes import launch
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

pytest.importorskip("torch")

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.optimizers.lamb import Lamb
from tests.trainer_probe.optimizers.flat_models import SHAPES, FlatModel, assert_equals_whole, comm_of_one, whole

SPEC = OptimizerSpec(name="lamb", beta2=0.999, epsilon=1e-6, weight_decay=0.01)
RATES = (0.1, 0.3, 0.05)


def run_lamb(layout: ParallelLayout, rank: int, comm: Comm) -> dict[str, FloatArray]:
    model = FlatModel(layout, rank)
    optimizer = Lamb(model.shards, SPEC, comm)
    for step, rate in enumerate(RATES):
        model.set_gradients(step)
        optimizer.step(rate)
    return {shard.name: shard.values_E.numpy() for shard in model.shards}


def run_rank(layout: ParallelLayout, member: "Member") -> dict[str, FloatArray]:
    return run_lamb(layout, member.rank, Comm(layout, member))


def run_alone() -> dict[str, FloatArray]:
    return run_lamb(ParallelLayout(), 0, comm_of_one())


def follow_the_paper(name: str, stage: int) -> FloatArray:
    """Return a parameter after all steps, by algorithm 2 as printed; `gain` neither decays nor has a trust ratio."""
    x = whole("values", name, stage)
    m, v = np.zeros_like(x), np.zeros_like(x)
    decay = 0.0 if name == "gain" else SPEC.weight_decay
    for t, rate in enumerate(RATES, start=1):
        g = whole("gradients", name, stage, t - 1)
        m = SPEC.beta1 * m + (1 - SPEC.beta1) * g
        v = SPEC.beta2 * v + (1 - SPEC.beta2) * g**2
        r = (m / (1 - SPEC.beta1**t)) / (np.sqrt(v / (1 - SPEC.beta2**t)) + SPEC.epsilon)
        u = r + decay * x
        ratio = 1.0 if name == "gain" else np.linalg.norm(x) / np.linalg.norm(u)
        x = x - rate * ratio * u
    return x


def test_one_process_follows_the_paper() -> None:
    """Each parameter by itself, in double precision: only the order of additions differs."""
    for stage, flat in enumerate(run_alone().values()):
        expected = np.concatenate([follow_the_paper(name, stage).ravel() for name in SHAPES])
        np.testing.assert_allclose(flat, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "layout",
    [
        ParallelLayout(dp=2),
        ParallelLayout(dp=3),
        ParallelLayout(tp=2),
        ParallelLayout(tp=2, dp=2),
        ParallelLayout(pp=2),
    ],
    ids=str,
)
def test_shards_equal_one_process(layout: ParallelLayout) -> None:
    """Norms go over all shards and tensor-parallel parts, so where a parameter is cut makes no difference."""
    assert_equals_whole(layout, launch(layout, partial(run_rank, layout)), run_alone())
