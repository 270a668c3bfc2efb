"""A backward pass in two: what the second one adds, and what is kept for it."""

from collections.abc import Mapping, Sequence
from types import CellType

import pytest

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.gpt import GptSpec
from fabrictune.trainer_probe.model.llama import LlamaSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.planning.memory import stage_product_bytes
from fabrictune.trainer_probe.policies import POLICIES

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.model.forward import MicroBatch
from fabrictune.trainer_probe.model.initialization import make_weights
from fabrictune.trainer_probe.model.weights import Weights
from fabrictune.trainer_probe.parallel.passes import ChunkPasses
from fabrictune.trainer_probe.parallel.tensor import make_operators
from fabrictune.trainer_probe.parallel.weight_products import KeptProducts, WeightProduct
from fabrictune.trainer_probe.planning.dry_run import join_alone

MODELS: dict[str, ModelSpec] = {
    "gpt": GptSpec(width=16, depth=3, num_heads=4, vocabulary=12, sequence=8),
    "serial": GptSpec(width=16, depth=3, num_heads=4, vocabulary=12, sequence=8, block="serial", window=3),
    "llama": LlamaSpec(
        width=16, depth=3, num_heads=4, vocabulary=12, sequence=8, num_key_value_heads=2, feed_forward_width=12
    ),
    "moe": MoeSpec(
        width=16, depth=3, num_heads=4, vocabulary=12, sequence=8, num_key_value_heads=2, feed_forward_width=12
    ),
}
BATCH = 3
Gradients = Mapping[str, torch.Tensor | None]


class Stage:
    """One of three stages of a layer each, alone or as the first of two tensor-parallel ranks that carry nothing."""

    def __init__(self, model: ModelSpec, number: int, comm: Comm, kept: KeptProducts | None) -> None:
        chunk, self.kept = ChunkSpec(model=model, number=number, num_chunks=3), kept
        self.weights: Weights = {
            name: value.float().requires_grad_() for name, value in make_weights(chunk, tp=comm.layout.tp).items()
        }
        operators = make_operators(comm, POLICIES["all"], 1, kept)
        self.passes = ChunkPasses(chunk=chunk, weights=self.weights, operators=operators, kept=kept)
        ids = torch.zeros(BATCH, model.sequence, dtype=torch.int64)
        self.batch = MicroBatch(tokens_BS=ids, targets_BS=ids)
        self.shape = (model.sequence // comm.layout.tp, BATCH, model.width)
        self.is_first, self.is_last = chunk.is_first, chunk.is_last

    def forward_and_backward(self, seed: int) -> torch.Tensor | None:
        """Return the gradient of the input."""
        generator = torch.Generator().manual_seed(seed)
        x = None if self.is_first else torch.randn(self.shape, generator=generator).requires_grad_()
        output = self.passes.forward(self.batch, x, "")
        gradient = None if self.is_last else torch.randn(self.shape, generator=generator)
        return self.passes.backward(x, output, gradient)

    def gradients(self) -> Gradients:
        return {name: None if value.grad is None else value.grad.clone() for name, value in self.weights.items()}


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", MODELS)
def test_gradients_come_in_the_second_pass_with_the_same_bits(name: str, number: int) -> None:
    """Two micro-batches, whose second passes wait until both have been back: inputs' gradients are there before."""
    with join_alone(ParallelLayout(), 0) as member:
        comm = Comm(ParallelLayout(), member)
        whole, split = (Stage(MODELS[name], number, comm, kept) for kept in (None, KeptProducts()))
        for seed in range(2):
            expected, found = (stage.forward_and_backward(seed) for stage in (whole, split))
            if expected is None or found is None:
                assert expected is found
            else:
                assert torch.equal(found, expected)
        before = split.gradients()
        products = [key for key in before if key.endswith((".input.weight", ".output.weight", "head.weight"))]
        without = [key for key in products if not (name == "moe" and "experts" in key)]
        assert without
        assert all(before[key] is None for key in without)
        for _ in range(2):
            split.passes.weight_gradients()
        for key, gradient in whole.gradients().items():
            found_gradient = split.gradients()[key]
            assert gradient is not None, key
            assert found_gradient is not None, key
            assert torch.equal(found_gradient, gradient), key


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", MODELS)
def test_factors_are_what_the_plan_says(name: str, number: int, tp: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Live storage, to the byte, weights apart; what a group that carries nothing gathers are zeros here."""
    monkeypatch.setattr(torch.Tensor, "new_empty", torch.Tensor.new_zeros)
    layout, model = ParallelLayout(tp=tp), MODELS[name]
    with join_alone(layout, 0) as member:
        kept = KeptProducts()
        stage = Stage(model, number, Comm(layout, member), kept)
        stage.forward_and_backward(0)
        (products,) = stage.passes._waiting
        degrees = Degrees(layout=layout, batch_size=BATCH, schedule="zb-h1")
        expected = stage_product_bytes(stage.passes.chunk, degrees, 4)
        assert sum(storages(products, stage.weights).values()) == expected


def storages(products: Sequence[WeightProduct], weights: Weights) -> dict[int, int]:
    """Return the bytes of each storage that the functions of some products hold."""
    cells = [cell.cell_contents for product in products for cell in closure_of(product.start)]
    tensors = [content for content in cells if isinstance(content, torch.Tensor)]
    of_weights = {value.untyped_storage()._cdata for value in weights.values()}
    sizes = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in tensors}
    return {number: size for number, size in sizes.items() if number not in of_weights}


def closure_of(function: object) -> tuple[CellType, ...]:
    return getattr(function, "__closure__", None) or ()
