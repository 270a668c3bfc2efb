"""Every family of the table against a second implementation of it, and against its own closed forms."""

import itertools
from typing import Any, get_args

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.model.gpt import Block, GptSpec, Positions
from fabrictune.trainer_probe.model.llama import LlamaSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.model.spec import (
    ModelSpec,
    dispatched_flops_per_token,
    flops_per_token,
    num_parameters,
)
from fabrictune.trainer_probe.model.table import MODELS, PRESETS
from fabrictune.trainer_probe.parallel.degrees import Degrees
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.plan import make_plan
from fabrictune.trainer_probe.recipes.schema import Recipe

pytest.importorskip("torch")

import torch

from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.forward import MicroBatch, run_chunk
from fabrictune.trainer_probe.model.operators import SingleProcess
from tests.trainer_probe.model.plain_models import plain_loss

SHAPE: dict[str, Any] = {"width": 16, "depth": 2, "num_heads": 4, "vocabulary": 12, "sequence": 8}
GROUPED: dict[str, Any] = {
    **SHAPE,
    "num_key_value_heads": 2,
    "feed_forward_width": 12,
    "norm_epsilon": 1e-4,
    "rotary_base": 500.0,
}
SPECS: dict[str, ModelSpec] = {
    **{
        f"gpt-{block}-{positions}-{window}": GptSpec(**SHAPE, block=block, positions=positions, window=window)
        for block, positions, window in itertools.product(get_args(Block), get_args(Positions), (None, 3))
    },
    "llama": LlamaSpec(**GROUPED),
    "llama-window": LlamaSpec(**GROUPED, window=3),
    "llama-one-group": LlamaSpec(**{**GROUPED, "num_key_value_heads": 1}),
    "llama-ungrouped": LlamaSpec(**{**GROUPED, "num_key_value_heads": 4}),
    "moe": MoeSpec(**GROUPED, num_experts=4, balance_coefficient=0.5),
    "moe-tight": MoeSpec(**GROUPED, num_experts=4, capacity_factor=0.6, balance_coefficient=0.5),
    "moe-groups": MoeSpec(**GROUPED, num_experts=4, capacity_factor=0.6, token_groups=4, balance_coefficient=0.5),
    "moe-unbounded": MoeSpec(**GROUPED, num_experts=3, num_choices=1, capacity_factor=None),
}


def random_weights(spec: ModelSpec) -> dict[str, torch.Tensor]:
    """Large enough that no part of the model is near its linear range."""
    generator = torch.Generator().manual_seed(3)
    return {
        weight.name: (torch.randn(weight.shape, generator=generator, dtype=torch.float64) / 3).requires_grad_()
        for weight in ChunkSpec(model=spec).weights()
    }


@pytest.mark.parametrize("name", SPECS)
def test_loss_and_gradients_are_those_of_a_second_implementation(name: str) -> None:
    """Dense masks, complex rotation, norms, SwiGLU and experts written anew, to 1e-12 of the largest gradient."""
    spec = SPECS[name]
    ids = torch.randint(spec.vocabulary, (2, spec.sequence + 1), generator=torch.Generator().manual_seed(1))
    batch = MicroBatch(tokens_BS=ids[:, :-1], targets_BS=ids[:, 1:])
    weights = random_weights(spec)
    loss = run_chunk(ChunkSpec(model=spec), weights, SingleProcess(), batch, None, "")
    expected, added = plain_loss(spec, weights, batch.tokens_BS, batch.targets_BS)
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-13)
    found = torch.autograd.grad(loss, list(weights.values()))
    wanted = torch.autograd.grad(expected + added, list(weights.values()))
    for weight, ours, theirs in zip(weights, found, wanted, strict=True):
        scale = float(theirs.abs().max())
        assert scale > 0, weight
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12 * max(1.0, scale), msg=weight)


def test_a_tight_capacity_drops_choices() -> None:
    """3 slots for each of 4 experts take at most 12 of a sample's 16 choices: the loss is another than without."""
    losses = []
    for name in ("moe", "moe-tight"):
        spec = SPECS[name]
        ids = torch.randint(spec.vocabulary, (2, spec.sequence + 1), generator=torch.Generator().manual_seed(1))
        batch = MicroBatch(tokens_BS=ids[:, :-1], targets_BS=ids[:, 1:])
        weights = random_weights(spec)
        losses.append(float(run_chunk(ChunkSpec(model=spec), weights, SingleProcess(), batch, None, "").detach()))
    assert abs(losses[0] - losses[1]) > 1e-3


@pytest.mark.parametrize("name", SPECS)
def test_counts_are_the_dispatched_operations(name: str) -> None:
    """Over all ranks of a step that runs on tensors without values, alone, divided by two tensor ranks, and experts
    by two expert ranks."""
    spec = SPECS[name]
    if spec.window is not None:
        pytest.skip("a band computes blocks of twice the window, of which half are outside it")
    tp = 1 if name == "llama-one-group" else 2
    layouts = [ParallelLayout(), ParallelLayout(tp=tp, pp=2)]
    if spec.num_divided_experts == 4:
        layouts.append(ParallelLayout(tp=tp, dp=2, ep=2))
    for layout in layouts:
        plan = make_plan(
            Recipe(name="count", model=spec, degrees=Degrees(layout=layout, num_batches=2)),
            HardwareSpec(),
        )
        total = int(plan.flops_P.sum()) * layout.tp * layout.dp
        assert total == pytest.approx(dispatched_flops_per_token(spec) * plan.num_tokens, rel=1e-12)


def test_padding_of_experts_is_what_the_counts_differ_by() -> None:
    """1.25 slots for each of 2 choices: 5 of 4 slots' products are the model's; others are the same."""
    spec = MoeSpec(**GROUPED, num_experts=4)
    experts = 6 * spec.width * spec.feed_forward_width * spec.num_choices
    expected = 3 * spec.depth * experts * 0.25
    assert dispatched_flops_per_token(spec) - flops_per_token(spec) == pytest.approx(expected)
    assert all(
        dispatched_flops_per_token(spec) == flops_per_token(spec)
        for spec in PRESETS.values()
        if not isinstance(spec, MoeSpec)
    )


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("llama-7b", 6_738_415_616),
        ("llama-8b", 8_030_261_248),
        ("llama-70b", 70_553_706_496),
        ("llama-405b", 405_853_388_800),
        ("mixtral-8x7b", 46_702_792_704),
    ],
)
def test_presets_have_the_published_parameters(name: str, parameters: int) -> None:
    """Those of the weights that were published, head and embedding apart."""
    assert num_parameters(PRESETS[name]) == parameters


def test_every_family_has_a_preset_and_a_second_implementation() -> None:
    """A family that is listed is tested."""
    assert {spec.family for spec in PRESETS.values()} == set(MODELS) == {spec.family for spec in SPECS.values()}


def test_all_mistakes_of_a_mixture_are_reported_at_once() -> None:
    """Three groups of four heads, more choices than experts, no capacity, a loss that rewards imbalance."""
    with pytest.raises(InputError) as caught:
        MoeSpec(num_key_value_heads=3, num_experts=2, num_choices=3, capacity_factor=0.0, balance_coefficient=-1.0)
    assert str(caught.value) == (
        "model.num_key_value_heads: 3\n"
        "  allowed: a divisor of the 4 heads\n"
        "model.num_choices: 3\n"
        "  allowed: at most the 2 experts\n"
        "model.capacity_factor: 0\n"
        "  allowed: a number above 0\n"
        "  next: leave it empty to drop no tokens\n"
        "model.balance_coefficient: -1\n"
        "  allowed: 0 or more"
    )
