"""Attention in tiles: merged, they are attention to all keys, and their gradients add up to its gradients."""

from collections.abc import Sequence

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional

from fabrictune.trainer_probe.model.attention_tiles import MergedAttention, MergedGradients, Tile

NUM_TOKENS = 12
ALL = slice(0, NUM_TOKENS)


def causal_halves(first: int) -> list[Tile]:
    """Two causal squares, and the rectangle between them: all of a triangle."""
    return [
        Tile(queries=slice(0, first), keys=slice(0, first), is_causal=True),
        Tile(queries=slice(first, NUM_TOKENS), keys=slice(0, first)),
        Tile(queries=slice(first, NUM_TOKENS), keys=slice(first, NUM_TOKENS), is_causal=True),
    ]


def band(window: int) -> tuple[torch.Tensor, list[Tile]]:
    """A band in four tiles, of which one has queries that meet none of its keys."""
    place = torch.arange(NUM_TOKENS)
    distance = place[:, None] - place
    hidden = (distance < 0) | (distance >= window)
    halves = (slice(0, 6), slice(6, NUM_TOKENS))
    tiles = [Tile(queries=own, keys=other, hidden_QK=hidden[own, other]) for own in halves for other in halves]
    return hidden, tiles[:1] + tiles[2:]


CAUSAL = torch.ones(NUM_TOKENS, NUM_TOKENS, dtype=torch.bool).triu(1)
CASES: dict[str, tuple[torch.Tensor | None, Sequence[Tile]]] = {
    "all": (None, [Tile(queries=ALL, keys=slice(0, 5)), Tile(queries=ALL, keys=slice(5, NUM_TOKENS))]),
    "causal": (CAUSAL, causal_halves(7)),
    "causal-backwards": (CAUSAL, causal_halves(4)[::-1]),
    "band": band(3),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("num_groups", [4, 2])
def test_tiles_merge_to_attention_over_all_keys(case: str, num_groups: int) -> None:
    """And back: torch's own attention and its gradients in double precision, four heads in four groups and in two."""
    hidden, tiles = CASES[case]
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 4, NUM_TOKENS, 6), (2, num_groups, NUM_TOKENS, 6), (2, num_groups, NUM_TOKENS, 6))
    query, key, value = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    for tensor in (query, key, value):
        tensor.requires_grad_()
    mask = None if hidden is None else ~hidden
    expected = functional.scaled_dot_product_attention(query, key, value, mask, enable_gqa=num_groups < 4)
    gradient = torch.randn(expected.shape, generator=generator, dtype=torch.float64)
    expected.backward(gradient)

    merged, block = MergedAttention(query.detach()), torch.stack([key, value]).detach()
    for tile in tiles:
        merged.add(tile, block[0], block[1])
    torch.testing.assert_close(merged.result_BHQE, expected.detach(), rtol=0.0, atol=1e-14)
    gradients, sums = MergedGradients(gradient, query.detach(), merged.result_BHQE, merged.log_sum_BHQ), 0 * block
    for tile in tiles:
        gradients.add(tile, block, sums)
    for found, tensor in ((gradients.query_BHQE, query), (sums[0], key), (sums[1], value)):
        assert tensor.grad is not None
        torch.testing.assert_close(found, tensor.grad, rtol=0.0, atol=1e-14)


def test_a_fused_kernel_stands_for_tiles_without_a_mask() -> None:
    """On the meta device, which stands for a GPU; a mask has none, and runs as products."""
    query, block = torch.empty(1, 4, 8, 6, device="meta"), torch.empty(2, 1, 2, 8, 6, device="meta")
    hidden = torch.empty(4, 4, dtype=torch.bool, device="meta")
    tiles = [
        Tile(queries=slice(4, 8), keys=slice(0, 8)),
        Tile(queries=slice(4, 8), keys=slice(0, 4), hidden_QK=hidden),
    ]
    merged = MergedAttention(query)
    gradients, sums = MergedGradients(query, query, merged.result_BHQE, merged.log_sum_BHQ), torch.empty_like(block)
    with torch.autograd.profiler.profile() as profile:
        for tile in tiles:
            merged.add(tile, block[0], block[1])
            gradients.add(tile, block, sums)
    called = [event.name for event in profile.function_events or () if event.name.startswith("aten::")]
    assert called.count("aten::_flash_attention_forward") == called.count("aten::_flash_attention_backward") == 1
    assert called.count("aten::logsumexp") == 1
