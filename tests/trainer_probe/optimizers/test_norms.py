"""Clipping by the norm over all ranks against torch's on whole parameters."""

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.launcher.processes import launch

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

torch = pytest.importorskip("torch")

from fabrictune.trainer_probe.comm import Comm  # noqa: E402
from fabrictune.trainer_probe.optimizers.norms import clip_factor  # noqa: E402
from tests.trainer_probe.optimizers.flat_models import SHAPES, FlatModel, assert_equals_whole, comm_of_one, whole  # noqa: E402


def clip_gradients(
    max_norm: float, layout: ParallelLayout, rank: int, comm: Comm, loss_scale: float = 1.0
) -> dict[str, FloatArray]:
    """Return the norm and the clipped gradients by shard."""
    model = FlatModel(layout, rank)
    model.set_gradients(0)
    for shard in model.shards:
        shard.gradients_E.mul_(loss_scale)
    norm, factor = clip_factor(model.shards, max_norm, comm, loss_scale=loss_scale)
    return {"norm": norm.numpy(), **{shard.name: (shard.gradients_E * factor).numpy() for shard in model.shards}}


def clip_rank(max_norm: float, layout: ParallelLayout, member: "Member") -> dict[str, FloatArray]:
    return clip_gradients(max_norm, layout, member.rank, Comm(layout, member))


def clip_alone(max_norm: float, loss_scale: float = 1.0) -> dict[str, FloatArray]:
    return clip_gradients(max_norm, ParallelLayout(), 0, comm_of_one(), loss_scale)


def clip_as_torch(max_norm: float) -> tuple[float, list[FloatArray]]:
    """Return the norm and the clipped gradients by stage."""
    parameters = []
    for stage in range(2):
        for name in SHAPES:
            parameters.append(torch.nn.Parameter(torch.zeros(SHAPES[name], dtype=torch.float64)))
            parameters[-1].grad = torch.from_numpy(whole("gradients", name, stage))
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    flat = [parameter.grad.numpy().ravel() for parameter in parameters]
    return float(norm), [np.concatenate(flat[: len(SHAPES)]), np.concatenate(flat[len(SHAPES) :])]


@pytest.mark.parametrize("max_norm", [0.5, math.inf])
@pytest.mark.parametrize("loss_scale", [1.0, 2.0**16])
def test_one_process_equals_torch(max_norm: float, loss_scale: float) -> None:
    """102 standard normal numbers have a norm near 10: 0.5 clips, infinity doesn't; a power of two scales exactly."""
    found = clip_alone(max_norm, loss_scale)
    norm, gradients = clip_as_torch(max_norm)
    assert found["norm"] == pytest.approx(norm, rel=1e-15)
    assert 8 < norm < 12
    for stage, expected in enumerate(gradients):
        np.testing.assert_allclose(found[f"stage.{stage}"], expected, rtol=1e-14)


@pytest.mark.parametrize(
    "layout", [ParallelLayout(dp=3), ParallelLayout(tp=2, dp=2), ParallelLayout(tp=2, pp=2)], ids=str
)
def test_every_rank_finds_the_norm_of_all(layout: ParallelLayout) -> None:
    """`gain` is on both tensor-parallel ranks and counts once; stages add up; all ranks get the same bits."""
    alone, found = clip_alone(0.5), launch(layout, partial(clip_rank, 0.5, layout))
    assert len({ranks_own["norm"].tobytes() for ranks_own in found}) == 1
    assert float(found[0]["norm"]) == pytest.approx(float(alone["norm"]), rel=1e-14)
    assert_equals_whole(layout, found, alone)


def test_a_gradient_that_is_not_finite_shows_in_the_norm() -> None:
    """Which is how all ranks learn together that a step must be left out."""
    model = FlatModel(ParallelLayout(), 0)
    model.shards[1].gradients_E[3] = math.inf
    assert not torch.isfinite(clip_factor(model.shards, 1.0, comm_of_one())[0])
