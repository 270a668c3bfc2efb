"""Attention in a sliding window by one fused kernel of a GPU, which passes over blocks of scores outside the band.

torch writes the kernel for the mask that it is given; without a compiler for it, as on a CPU, torch computes the same
by definition, with all scores in memory.

Shapes: B batch, H heads of this rank, S sequence, E features of a head.

Source: Dong et al., "FlexAttention: a programming model for generating optimized attention kernels", 2024.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

_NUM_MASKS = 8  # of a model one, of a test some


def attend_in_window(
    query_BHSE: torch.Tensor, key_BHSE: torch.Tensor, value_BHSE: torch.Tensor, window: int
) -> torch.Tensor:
    """Return B H S E: each token's average of the values of the latest `window` tokens."""
    mask = _band(query_BHSE.shape[2], window, query_BHSE.device)
    kernel: Callable[..., Any] = _compiled() if query_BHSE.is_cuda else flex_attention  # type: ignore[assignment]
    found_BHSE: torch.Tensor = kernel(query_BHSE, key_BHSE, value_BHSE, block_mask=mask)
    return found_BHSE


@lru_cache(_NUM_MASKS)
def _band(num_tokens: int, window: int, device: torch.device) -> BlockMask:
    def is_seen(sample: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return (key <= query) & (query - key < window)

    return create_block_mask(is_seen, None, None, num_tokens, num_tokens, device=device)


@lru_cache(1)
def _compiled() -> Callable[..., Any]:
    return torch.compile(flex_attention, dynamic=False)
