"""Causal attention: over all earlier tokens, or over a sliding window of the latest.

The window is a band of the score matrix. It is cut into blocks of as many queries as the window is long; a block of
queries meets its own keys and those of the block before, so that time and memory grow with s * w and not with s * s,
on any device. A GPU has a fused kernel for it in half precision (`flex`), as for full attention.

Shapes: B batch, H heads of this rank, S sequence, E features of a head, N blocks, W window.

Source: Beltagy et al., "Longformer: the long-document transformer", 2020; MegaScale (NSDI'24), both in section 3.1.
Left out: of the 2 w keys that a block meets, half lie outside the band and are computed for nothing.
"""

import torch
from torch.nn import functional

from fabrictune.trainer_probe.model.flex import attend_in_window

HALF_BYTES = 2  # of a number in half precision


def attend(
    query_BHSE: torch.Tensor, key_BHSE: torch.Tensor, value_BHSE: torch.Tensor, window: int | None
) -> torch.Tensor:
    """Return B H S E: each token's average of the values of itself and what it may see before it."""
    if window is None or window >= query_BHSE.shape[2]:
        return functional.scaled_dot_product_attention(query_BHSE, key_BHSE, value_BHSE, is_causal=True)
    if query_BHSE.is_cuda and query_BHSE.dtype.itemsize == HALF_BYTES:
        return attend_in_window(query_BHSE, key_BHSE, value_BHSE, window)
    return attend_in_band(query_BHSE, key_BHSE, value_BHSE, window)


def attend_in_band(
    query_BHSE: torch.Tensor, key_BHSE: torch.Tensor, value_BHSE: torch.Tensor, window: int
) -> torch.Tensor:
    """Return the same by blocks of the window's length."""
    num_tokens = query_BHSE.shape[2]
    padding = -num_tokens % window
    query_BHNWE, key_BHNWE, value_BHNWE = (
        _blocks(functional.pad(tensor, (0, 0, 0, padding)), window) for tensor in (query_BHSE, key_BHSE, value_BHSE)
    )
    found_BHNWE = functional.scaled_dot_product_attention(
        query_BHNWE,
        _with_block_before(key_BHNWE),
        _with_block_before(value_BHNWE),
        attn_mask=_band(query_BHNWE.shape[2], window, query_BHSE.device),
    )
    return found_BHNWE.flatten(2, 3)[:, :, :num_tokens]


def _blocks(tensor_BHSE: torch.Tensor, window: int) -> torch.Tensor:
    """Return the sequence cut into blocks of the window's length, B H N W E."""
    batch, heads, num_tokens, features = tensor_BHSE.shape
    return tensor_BHSE.reshape(batch, heads, num_tokens // window, window, features)


def _with_block_before(tensor_BHNWE: torch.Tensor) -> torch.Tensor:
    """Return each block behind the one before it, zeros before the first: B H N 2W E."""
    before_BHNWE = functional.pad(tensor_BHNWE[:, :, :-1], (0, 0, 0, 0, 1, 0))
    return torch.cat([before_BHNWE, tensor_BHNWE], dim=3)


def _band(num_blocks: int, window: int, device: torch.device) -> torch.Tensor:
    """Return which of its 2 W keys each query of a block may see, N W 2W; the first block has none before it."""
    query_W = torch.arange(window, device=device)[:, None] + window  # places counted from the block before
    key_2W = torch.arange(2 * window, device=device)[None]
    band_NWK = ((key_2W <= query_W) & (key_2W > query_W - window)).repeat(num_blocks, 1, 1)
    band_NWK[0, :, :window] = False
    return band_NWK
