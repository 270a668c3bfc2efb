"""AdamW against torch's own."""

import math
from itertools import pairwise
from typing import Any

import pytest

from fabrictune.trainer_probe.optimizers.segments import Segment, Shard
from fabrictune.trainer_probe.optimizers.spec import OptimizerSpec

torch = pytest.importorskip("torch")

from fabrictune.trainer_probe.optimizers.adamw import BLOCK, AdamW  # noqa: E402

SPEC = OptimizerSpec(weight_decay=0.3)
RATES = (0.1, 0.05, 0.2, 0.01)
SEGMENTS = (
    Segment(name="weight", offset=0, size=35, is_replicated_over_tp=False, decays=True),
    Segment(name="gain", offset=35, size=13, is_replicated_over_tp=True, decays=False),
    Segment(name="table", offset=48, size=51, is_replicated_over_tp=False, decays=True),
)
LENGTH = 99


def numbers(name: str, dtype: Any) -> Any:
    """Return a value for each element of the buffer; another name, other values."""
    return torch.randn(LENGTH, generator=torch.Generator().manual_seed(len(name)), dtype=dtype)


def step_ours(dtype: Any, cuts: tuple[int, ...]) -> Any:
    """Return the values after all steps, the buffer cut into shards at `cuts`."""
    values, gradients = numbers("values", dtype), torch.zeros(LENGTH, dtype=dtype)
    edges = (0, *cuts, LENGTH)
    shards = [
        Shard(
            name=f"from {first}",
            segments=SEGMENTS,
            first=first,
            values_E=values[first:stop],
            gradients_E=gradients[first:stop],
        )
        for first, stop in pairwise(edges)
    ]
    optimizer = AdamW(shards, SPEC)
    for step, rate in enumerate(RATES):
        gradients.copy_(numbers("gradient" + "+" * step, dtype))
        optimizer.step(rate)
    return values


def step_torchs(dtype: Any) -> Any:
    values = numbers("values", dtype)
    parameters = [torch.nn.Parameter(part.clone()) for part in values.split([segment.size for segment in SEGMENTS])]
    groups = [
        {"params": [parameter], "weight_decay": SPEC.weight_decay * segment.decays}
        for parameter, segment in zip(parameters, SEGMENTS, strict=True)
    ]
    optimizer = torch.optim.AdamW(groups, betas=(SPEC.beta1, SPEC.beta2), eps=SPEC.epsilon, foreach=False)
    for step, rate in enumerate(RATES):
        gradient = numbers("gradient" + "+" * step, dtype)
        for parameter, segment in zip(parameters, SEGMENTS, strict=True):
            parameter.grad = gradient[segment.offset : segment.offset + segment.size].clone()
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    return torch.cat([parameter.detach() for parameter in parameters])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("cuts", [(), (35, 48), (1, 40, 50, 97)])
def test_four_steps_equal_torchs(dtype: Any, cuts: tuple[int, ...]) -> None:
    """The same operations in the same order: the last bit at most, where a cut moves an element out of a vector."""
    ours, torchs = step_ours(dtype, cuts), step_torchs(dtype)
    one_bit = torch.finfo(dtype).eps
    torch.testing.assert_close(ours, torchs, rtol=4 * one_bit, atol=4 * one_bit)
    assert not torch.equal(ours, numbers("values", dtype))


def test_a_buffer_in_one_piece_gives_torchs_bits() -> None:
    """Sizes that are multiples of a vector's length leave no element to be treated otherwise."""
    values = torch.linspace(-1, 1, 64, dtype=torch.float64)
    gradients = torch.linspace(3, -2, 64, dtype=torch.float64)
    segment = Segment(name="weight", offset=0, size=64, is_replicated_over_tp=False, decays=True)
    parameter = torch.nn.Parameter(values.clone())
    parameter.grad = gradients.clone()
    shard = Shard(name="all", segments=(segment,), first=0, values_E=values, gradients_E=gradients)
    ours = AdamW([shard], SPEC)
    torchs = torch.optim.AdamW(
        [parameter], lr=0.1, betas=(SPEC.beta1, SPEC.beta2), eps=SPEC.epsilon, weight_decay=SPEC.weight_decay
    )
    for _ in range(5):
        ours.step(0.1)
        torchs.step()
    assert torch.equal(values, parameter.detach())


LONG = 3 * BLOCK + 5
LONG_SEGMENTS = (
    Segment(name="weight", offset=0, size=2 * BLOCK + 7, is_replicated_over_tp=False, decays=True),
    Segment(name="gain", offset=2 * BLOCK + 7, size=LONG - 2 * BLOCK - 10, is_replicated_over_tp=False, decays=False),
)  # and three elements of padding


def make_long(gradient_dtype: Any) -> Shard:
    generator = torch.Generator().manual_seed(0)
    values, gradients = (torch.randn(LONG, generator=generator) for _ in range(2))
    return Shard(name="all", segments=LONG_SEGMENTS, first=0, values_E=values, gradients_E=gradients.to(gradient_dtype))


def step_in_one_piece(shard: Shard, factor: Any) -> None:
    """Take four steps by the algorithm written over the whole shard."""
    first, second = torch.zeros(LONG), torch.zeros(LONG)
    for step, rate in enumerate(RATES, start=1):
        gradients = shard.gradients_E.float() * factor
        first.lerp_(gradients, 1 - SPEC.beta1)
        second.mul_(SPEC.beta2).addcmul_(gradients, gradients, value=1 - SPEC.beta2)
        shard.values_E[: LONG_SEGMENTS[0].size].mul_(1 - rate * SPEC.weight_decay)
        denominator = (second.sqrt() / math.sqrt(1 - SPEC.beta2**step)).add_(SPEC.epsilon)
        shard.values_E.addcdiv_(first, denominator, value=-rate / (1 - SPEC.beta1**step))


@pytest.mark.parametrize("gradient_dtype", [torch.float32, torch.bfloat16])
def test_blocks_change_no_bit(gradient_dtype: Any) -> None:
    """Their ends fall on vectors' ends, so every element is computed as in one piece; the last block is short."""
    ours, expected, factor = (
        make_long(gradient_dtype),
        make_long(gradient_dtype),
        torch.tensor(0.3, dtype=torch.float64),
    )
    optimizer = AdamW([ours], SPEC)
    for rate in RATES:
        optimizer.step(rate, factor)
    step_in_one_piece(expected, factor)
    assert torch.equal(ours.values_E, expected.values_E)


def test_the_fused_kernel_differs_in_the_last_bits() -> None:
    """Which a GPU runs, and a CPU has too: four times the distance to the next number, as of a cut above."""
    ours, fused, factor = make_long(torch.float32), make_long(torch.float32), torch.tensor(0.3, dtype=torch.float64)
    readable, optimizer = AdamW([ours], SPEC), AdamW([fused], SPEC)
    for rate in RATES:
        readable.step(rate, factor)
        optimizer.moments.advance()
        optimizer.update_fused(0, rate, factor)
    one_bit = torch.finfo(torch.float32).eps
    torch.testing.assert_close(fused.values_E, ours.values_E, rtol=4 * one_bit, atol=4 * one_bit)
