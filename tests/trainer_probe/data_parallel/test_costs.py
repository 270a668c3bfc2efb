"""Closed forms of data-parallel strategies against what their authors state, and against the storage of passes."""

from fractions import Fraction
from typing import get_args

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.data_parallel.costs import data_volumes, state_bytes
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec, StrategyName
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.policies import POLICIES
from fabrictune.trainer_probe.recipes.schema import Recipe

MODEL = GptSpec(width=64, depth=3, num_heads=4, vocabulary=64, sequence=64)  # every weight is a multiple of 64 numbers
CHUNK = ChunkSpec(model=MODEL)


def num_weights(*blocks: str) -> int:
    from math import prod

    return sum(prod(weight.shape) for name in blocks or CHUNK.blocks() for weight in CHUNK.blocks()[name])


def degrees_of(dp: int) -> Degrees:
    return Degrees(layout=ParallelLayout(dp=dp), num_batches=5)


@pytest.mark.parametrize("dp", [1, 8, 64])
@pytest.mark.parametrize(
    ("strategy", "whole", "divided"), [("ddp", 16, 0), ("zero1", 4, 12), ("zero2", 2, 14), ("zero3", 0, 16)]
)
def test_half_precision_takes_the_bytes_of_the_zero_paper(
    strategy: StrategyName, whole: int, divided: int, dp: int
) -> None:
    """Figure 1 with K = 12: 2 of values, 2 of gradients, and 12 of the optimizer for each parameter."""
    state = state_bytes(CHUNK, degrees_of(dp), DataParallelSpec(strategy=strategy), 2, is_overlapped=True)
    of_each = Fraction(state.weights + state.gradients + state.optimizer, num_weights())
    assert of_each == whole + Fraction(divided, dp)


def test_volumes_follow_the_micro_batches_where_gradients_are_divided() -> None:
    """Five micro-batches, 4 bytes: ZeRO-3 gathers all but the embedding twice in each."""
    gather, scatter = ("dp", Operation.ALL_GATHER), ("dp", Operation.REDUCE_SCATTER)
    size = 4 * num_weights()
    expected = {
        "ddp": {("dp", Operation.ALL_REDUCE): size},
        "zero1": {scatter: size, gather: size},
        "zero2": {scatter: 5 * size, gather: size},
        "zero3": {scatter: 5 * size, gather: 10 * size - 5 * 4 * num_weights("embedding")},
    }
    for strategy in get_args(StrategyName):
        spec = DataParallelSpec(strategy=strategy)
        assert data_volumes(CHUNK, degrees_of(8), spec, 4) == expected[strategy]
        assert not data_volumes(CHUNK, degrees_of(1), spec, 4)


@pytest.mark.parametrize("policy", ["none", "all"])
def test_a_pass_has_the_values_of_a_block_and_of_the_next(policy: str) -> None:
    """ZeRO-3 on two ranks: the most storage at any operation of a step; the next block is there where it overlaps."""
    pytest.importorskip("torch")
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from fabrictune.trainer_probe.comm import Comm
    from fabrictune.trainer_probe.data_parallel.stage import Setting
    from fabrictune.trainer_probe.data_parallel.zero3 import make_stage
    from fabrictune.trainer_probe.model.forward import MicroBatch
    from fabrictune.trainer_probe.model.operators import SingleProcess
    from fabrictune.trainer_probe.parallel.passes import ChunkPasses
    from fabrictune.trainer_probe.planning.dry_run import join_alone

    degrees = degrees_of(2)
    with join_alone(degrees.layout, 0) as member:
        setting = Setting(
            comm=Comm(degrees.layout, member), policy=POLICIES[policy], dtype=torch.float32, device=torch.device("cpu")
        )
        stage = make_stage(CHUNK, setting)
        weights = [value for buffer in stage._buffers for value in buffer.weights.values()]
        storages = {value.untyped_storage()._cdata: value.untyped_storage() for value in weights}.values()
        most = 0

        class Watch(TorchDispatchMode):
            def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
                nonlocal most
                most = max(most, sum(storage.nbytes() for storage in storages))
                return operator(*args, **(kwargs or {}))

        stage.start_step()
        stage.start_gather()
        passes = stage.wrap(ChunkPasses(chunk=CHUNK, weights=stage.weights, operators=SingleProcess()))
        ids = torch.zeros(1, MODEL.sequence, dtype=torch.int64)
        with Watch():
            loss = passes.forward(MicroBatch(tokens_BS=ids, targets_BS=ids), None, "stage0.batch0")
            passes.backward(None, loss, None)
        assert sum(storage.nbytes() for storage in storages) == 0
    state = state_bytes(CHUNK, degrees, DataParallelSpec(strategy="zero3"), 4, is_overlapped=policy == "all")
    assert most == state.gathered


@pytest.mark.parametrize("strategy", ["zero2", "zero3"])
def test_sums_in_each_backward_pass_need_whole_ones(strategy: StrategyName) -> None:
    """ZB-H1 adds a product's gradient micro-batches after those of gains and biases, which would fill no bucket."""
    degrees = Degrees(layout=ParallelLayout(pp=2), num_batches=4, schedule="zb-h1")
    spec = DataParallelSpec(strategy=strategy)
    with pytest.raises(InputError) as caught:
        Recipe(name="split", model=GptSpec(depth=2), degrees=degrees, data_parallel=spec)
    assert str(caught.value) == (
        f"data_parallel.strategy: {strategy} with the schedule zb-h1, which splits the backward passes that gradients "
        "are summed in\n  allowed: ddp or zero1 with this schedule\n"
        "  next: choose another strategy or another degrees.schedule"
    )
