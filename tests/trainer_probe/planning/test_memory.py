"""Memory in closed form, against what autograd keeps and against the tensors that a training leaves alive."""

import gc
import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import pytest

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.data_parallel.costs import state_bytes
from fabrictune.trainer_probe.data_parallel.spec import DataParallelSpec, StrategyName
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.gpt import Block, GptSpec, Positions
from fabrictune.trainer_probe.model.llama import LlamaSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.planning.memory import (
    plan_memory,
    recomputed_bytes,
    stage_activation_bytes,
    stage_product_bytes,
)
from fabrictune.trainer_probe.policies import POLICIES, Recompute
from fabrictune.trainer_probe.recipes.schema import Precision, Recipe

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.forward import MicroBatch, run_chunk
from fabrictune.trainer_probe.model.initialization import make_weight
from fabrictune.trainer_probe.model.recomputation import RecomputedContext
from fabrictune.trainer_probe.optimizers.optimizer import make_optimizer
from fabrictune.trainer_probe.parallel.tensor import make_operators
from fabrictune.trainer_probe.parallel.trainer import ParallelTrainer
from fabrictune.trainer_probe.planning.dry_run import join_alone

BATCH = 3
RECOMPUTE: tuple[Recompute, Recompute] = ("full", "none")


def make_model(block: Block, positions: Positions, window: int | None) -> GptSpec:
    return GptSpec(
        width=48, depth=3, num_heads=4, vocabulary=40, sequence=32, window=window, block=block, positions=positions
    )


def storages(tensors: Iterable[torch.Tensor]) -> dict[int, int]:
    """Return the bytes of each storage that some tensors share."""
    return {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in tensors}


def kept_by_autograd(
    chunk: ChunkSpec, tp: int, dtype: torch.dtype, recompute: Recompute = "none", cp: int = 1, ep: int = 1
) -> int:
    """Return the bytes that a forward pass of real numbers keeps, weights apart, and those of its output."""
    kept: list[torch.Tensor] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor)
        return tensor

    layout, model = ParallelLayout(tp=tp, cp=cp, dp=ep, ep=ep), chunk.model
    with join_alone(layout, 0) as member:
        operators = make_operators(Comm(layout, member), POLICIES["all"], 1)
        if recompute == "selective":
            operators.context = RecomputedContext(operators.context)
        own = [weight.of_experts(ep, 0) for weight in chunk.weights()]
        weights = {weight.name: make_weight(weight, 0, tp=tp).to(dtype).requires_grad_() for weight in own}
        ids = torch.zeros(BATCH, model.sequence // cp, dtype=torch.int64)
        x = (
            None
            if chunk.is_first
            else torch.zeros(model.sequence // (tp * cp), BATCH, model.width, dtype=dtype, requires_grad=True)
        )
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            found = run_chunk(chunk, weights, operators, MicroBatch(tokens_BS=ids, targets_BS=ids), x, "", recompute)
        of_weights = storages(weights.values())
        all_kept = {
            number: size for number, size in storages([*kept, found]).items() if number not in of_weights and size > 4
        }
        return sum(all_kept.values())


@pytest.mark.parametrize(
    ("block", "positions", "window", "tp"),
    list(product(get_args(Block), get_args(Positions), (None, 8, 6), (1, 2))),
)
def test_activations_are_what_autograd_keeps(block: Block, positions: Positions, window: int | None, tp: int) -> None:
    """To the byte, in single precision: the first, a middle and the last of three stages of a layer each.

    6 does not divide the 32 tokens, so the band is padded. The loss itself, a number, is not counted.
    """
    model = make_model(block, positions, window)
    for number in range(3):
        chunk = ChunkSpec(model=model, number=number, num_chunks=3)
        degrees = Degrees(layout=ParallelLayout(tp=tp), batch_size=BATCH)
        assert stage_activation_bytes(chunk, degrees, 4) == kept_by_autograd(chunk, tp, torch.float32), number


GROUPED: dict[str, Any] = {
    "width": 48,
    "depth": 3,
    "num_heads": 4,
    "num_key_value_heads": 2,
    "feed_forward_width": 20,
    "vocabulary": 40,
    "sequence": 32,
}
FAMILIES = [LlamaSpec(**GROUPED), *(LlamaSpec(**GROUPED, window=window) for window in (8, 6))]
FAMILIES.append(MoeSpec(**GROUPED, num_experts=5))
FAMILIES.append(MoeSpec(**GROUPED, num_experts=5, token_groups=4))


@pytest.mark.parametrize("model", FAMILIES)
@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_family_keeps_what_it_says(
    model: LlamaSpec, tp: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the byte. What a group that carries nothing gathers are zeros here, as choices of experts must be numbers."""
    if dtype == torch.bfloat16 and model.window is not None:
        pytest.skip("torch widens the scores of a band on a CPU")
    monkeypatch.setattr(torch.Tensor, "new_empty", torch.Tensor.new_zeros)
    for number in range(3):
        chunk = ChunkSpec(model=model, number=number, num_chunks=3)
        degrees = Degrees(layout=ParallelLayout(tp=tp), batch_size=BATCH)
        assert stage_activation_bytes(chunk, degrees, dtype.itemsize) == kept_by_autograd(chunk, tp, dtype), number


@pytest.mark.parametrize(
    "model", [*FAMILIES, make_model("serial", "rotary", 8), make_model("parallel", "learned", None)]
)
@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("recompute", ["selective", "full"])
def test_recomputation_keeps_what_it_says(
    model: ModelSpec, tp: int, recompute: Recompute, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the byte; less than without it, as the first layer and the middle one show."""
    monkeypatch.setattr(torch.Tensor, "new_empty", torch.Tensor.new_zeros)
    for number in range(3):
        chunk = ChunkSpec(model=model, number=number, num_chunks=3)
        degrees = Degrees(layout=ParallelLayout(tp=tp), batch_size=BATCH)
        expected = stage_activation_bytes(chunk, degrees, 4, recompute)
        assert kept_by_autograd(chunk, tp, torch.float32, recompute) == expected, number
        assert expected < stage_activation_bytes(chunk, degrees, 4)


def test_full_recomputation_keeps_inputs_and_one_layer() -> None:
    """Three ranks of one layer: the first keeps three inputs and outputs, and in a backward pass the layer's own."""
    plain = make_recipe("float32", dp=1)
    recipe = replace(plain, recompute="full")
    stage = ChunkSpec(model=plain.model, number=0, num_chunks=3)
    kept, whole = (stage_activation_bytes(stage, plain.degrees, 4, policy) for policy in RECOMPUTE)
    again = recomputed_bytes(stage, plain.degrees, 4, "full")
    assert again == whole - kept
    assert plan_memory(recipe, 0).activations_bytes == 3 * kept + again
    assert plan_memory(plain, 0).activations_bytes == 3 * whole


RINGS: list[ModelSpec] = [
    *(make_model("serial", "learned", window) for window in (None, 8)),
    make_model("parallel", "rotary", None),
    *FAMILIES[:2],
]


@pytest.mark.parametrize("model", RINGS)
@pytest.mark.parametrize(("tp", "cp"), [(1, 2), (2, 2), (1, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("recompute", RECOMPUTE)
def test_a_ring_keeps_its_own_tokens_alone(
    model: ModelSpec, tp: int, cp: int, dtype: torch.dtype, recompute: Recompute
) -> None:
    """To the byte: no block of another rank, and of a window no band. Without one it is a share of cp of the whole."""
    for number in range(3):
        chunk = ChunkSpec(model=model, number=number, num_chunks=3)
        degrees = Degrees(layout=ParallelLayout(tp=tp, cp=cp), batch_size=BATCH)
        found = stage_activation_bytes(chunk, degrees, dtype.itemsize, recompute)
        assert found == kept_by_autograd(chunk, tp, dtype, recompute, cp), number
        if model.window is None:
            alone = Degrees(layout=ParallelLayout(tp=tp), batch_size=BATCH)
            assert cp * found == stage_activation_bytes(chunk, alone, dtype.itemsize, recompute)


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_divided_experts_keep_as_much(tp: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the byte: slots of another rank's tokens in place of those sent there, and on tensor ranks a part of each
    token's results."""
    monkeypatch.setattr(torch.Tensor, "new_empty", torch.Tensor.new_zeros)
    model = MoeSpec(**GROUPED, num_experts=6)
    for number in range(3):
        chunk = ChunkSpec(model=model, number=number, num_chunks=3)
        degrees = Degrees(layout=ParallelLayout(tp=tp, dp=3, ep=3), batch_size=BATCH)
        expected = stage_activation_bytes(chunk, degrees, dtype.itemsize)
        assert expected == kept_by_autograd(chunk, tp, dtype, ep=3), number


@pytest.mark.parametrize("block", get_args(Block))
def test_activations_in_half_precision_take_half_but_for_the_loss(block: Block) -> None:
    """Which is computed in single precision; attention to everything, since torch widens the band's scores."""
    for number in range(3):
        chunk = ChunkSpec(model=make_model(block, "learned", None), number=number, num_chunks=3)
        degrees = Degrees(layout=ParallelLayout(tp=2), batch_size=BATCH)
        assert stage_activation_bytes(chunk, degrees, 2) == kept_by_autograd(chunk, 2, torch.bfloat16), number


def make_recipe(precision: Precision, *, dp: int, strategy: StrategyName = "zero1") -> Recipe:
    model = make_model("serial", "learned", None)
    degrees = Degrees(layout=ParallelLayout(tp=2, dp=dp, pp=3), num_batches=4, batch_size=BATCH)
    return Recipe(
        name="memory",
        model=model,
        degrees=degrees,
        precision=precision,
        data_parallel=DataParallelSpec(strategy=strategy),
    )


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("dp", [1, 2])
@pytest.mark.parametrize("strategy", get_args(StrategyName))
def test_state_is_what_a_trainer_keeps_alive(precision: Precision, dp: int, strategy: StrategyName) -> None:
    """All tensors that are there after a trainer and its optimizer have been made and were not before.

    A tensor of an activation's shape, which the pipeline receives into, is no state.
    """
    recipe = make_recipe(precision, dp=dp, strategy=strategy)
    degrees = recipe.degrees
    rank = degrees.layout.rank(tp=1, dp=0, pp=1)
    with join_alone(degrees.layout, rank) as member:
        before = storages(all_tensors())
        comm = Comm(degrees.layout, member)
        dtype = getattr(torch, precision)
        trainer = ParallelTrainer(
            recipe.model, degrees, comm, POLICIES["all"], dtype=dtype, data_parallel=recipe.data_parallel
        )
        optimizer = make_optimizer(trainer.shards, OptimizerSpec(), comm)
        alive = sum(size for number, size in storages(all_tensors()).items() if number not in before)
        del optimizer
    chunk = ChunkSpec(model=recipe.model, number=1, num_chunks=3)
    state = state_bytes(chunk, degrees, recipe.data_parallel, dtype.itemsize, is_overlapped=True)
    example = recipe.model.sequence // 2 * BATCH * recipe.model.width * dtype.itemsize
    assert alive - example == state.weights + state.gradients + state.optimizer


@pytest.mark.parametrize("ep", [1, 2, 4])
def test_experts_take_a_share_of_the_state(ep: int) -> None:
    """What a trainer keeps alive: the weights of X / ep experts, and their optimizer's of edp ranks."""
    model, layout = MoeSpec(**GROUPED, num_experts=4), ParallelLayout(tp=2, dp=4, ep=ep)
    degrees = Degrees(layout=layout, batch_size=BATCH)
    with join_alone(layout, 3) as member:
        before = storages(all_tensors())
        comm = Comm(layout, member)
        trainer = ParallelTrainer(model, degrees, comm, POLICIES["all"], dtype=torch.float32)
        optimizer = make_optimizer(trainer.shards, OptimizerSpec(), comm)
        alive = sum(size for number, size in storages(all_tensors()).items() if number not in before)
        del optimizer
    chunk = ChunkSpec(model=model)
    state = state_bytes(chunk, degrees, DataParallelSpec(), 4, is_overlapped=True)
    example = model.sequence // 2 * BATCH * model.width * 4
    assert alive - example == state.weights + state.gradients + state.optimizer
    held = [math.prod(weight.local_shape(2)) // (ep if weight.is_of_experts else 1) for weight in chunk.weights()]
    assert sum(held) * 4 <= state.weights < sum(held) * 4 + 2 * 4 * layout.dp, "but for padding of two buffers"


def all_tensors() -> list[torch.Tensor]:
    gc.collect()
    return [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor)]


def test_the_schedule_keeps_as_many_micro_batches_as_warm_up_and_one() -> None:
    """Three ranks, one stage each, four micro-batches: place 0 keeps three at once, place 2 one."""
    recipe = make_recipe("float32", dp=1)
    stages = [ChunkSpec(model=recipe.model, number=number, num_chunks=3) for number in range(3)]
    for place, at_once in enumerate((3, 2, 1)):
        expected = at_once * stage_activation_bytes(stages[place], recipe.degrees, 4)
        assert plan_memory(recipe, place).activations_bytes == expected


def test_a_split_backward_pass_keeps_factors_for_as_many_micro_batches_as_its_rank() -> None:
    """Three ranks, four micro-batches: rank r keeps 3 - r between the first two passes, and r factors of products."""
    plain = make_recipe("float32", dp=1)
    recipe = replace(plain, degrees=replace(plain.degrees, schedule="zb-h1"))
    stages = [ChunkSpec(model=recipe.model, number=number, num_chunks=3) for number in range(3)]
    for place, stage in enumerate(stages):
        activations = stage_activation_bytes(stage, recipe.degrees, 4)
        factors = stage_product_bytes(stage, recipe.degrees, 4)
        assert factors < activations
        assert plan_memory(recipe, place).activations_bytes == (3 - place) * activations + place * factors
    assert plan_memory(recipe, 0).activations_bytes == plan_memory(plain, 0).activations_bytes
