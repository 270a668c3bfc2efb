"""Causal attention with rotary positions: over all earlier tokens, or over a sliding window of the latest.

The window is a band of the score matrix. It is cut into blocks of as many queries as the window is long; a block of
queries meets its own keys and those of the block before, so that time and memory grow with s * w and not with s * s,
on any device. A GPU has a fused kernel for it in half precision, which torch generates for the mask it is given; on a
CPU torch computes the same by definition, with all scores in memory. The meta device stands for a GPU.

Shapes: B batch, H heads of this rank, G those of keys and values, S sequence, E features of a head, N blocks, W window.

Source: Beltagy et al., "Longformer: the long-document transformer", 2020; MegaScale (NSDI'24), both in section 3.1;
Dong et al., "FlexAttention: a programming model for generating optimized attention kernels", 2024; Su et al.,
"RoFormer: enhanced transformer with rotary position embedding", 2021, equation 15.
Left out: of the 2 w keys that a block meets, half lie outside the band and are computed in vain.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

HALF_BYTES = 2  # of a number in half precision
BASE = 10_000.0  # of the wavelengths of rotary positions, as in the source
_NUM_MASKS = 8  # cached; a model has one, a test several


def attend_by_heads(
    query: torch.Tensor, key_SBGE: torch.Tensor, value_SBGE: torch.Tensor, window: int | None, base: float | None
) -> torch.Tensor:
    """Return attention's result, S B H E; `query` is S B H E or S B G J E, J heads for each one of keys and values.

    With a base, places rotate queries and keys.
    """
    if base is not None:
        query, key_SBGE = rotate(query, base), rotate(key_SBGE, base)
    query_SBHE = query if query.dim() == key_SBGE.dim() else query.flatten(2, 3)
    query_BHSE, key_BGSE, value_BGSE = (tensor.permute(1, 2, 0, 3) for tensor in (query_SBHE, key_SBGE, value_SBGE))
    return attend(query_BHSE, key_BGSE, value_BGSE, window).permute(2, 0, 1, 3)


def attend(
    query_BHSE: torch.Tensor, key_BGSE: torch.Tensor, value_BGSE: torch.Tensor, window: int | None
) -> torch.Tensor:
    """Return each token's weighted average of the values of itself and the earlier tokens it attends to, B H S E."""
    if query_BHSE.is_meta:
        return attend_without_values(query_BHSE, key_BGSE, value_BGSE, window)
    is_grouped = key_BGSE.shape[1] < query_BHSE.shape[1]
    if window is None or window >= query_BHSE.shape[2]:
        return functional.scaled_dot_product_attention(
            query_BHSE, key_BGSE, value_BGSE, is_causal=True, enable_gqa=is_grouped
        )
    key_BHSE, value_BHSE = key_BGSE, value_BGSE
    if is_grouped:
        group_size = query_BHSE.shape[1] // key_BGSE.shape[1]
        key_BHSE, value_BHSE = (tensor.repeat_interleave(group_size, 1) for tensor in (key_BGSE, value_BGSE))
    if query_BHSE.is_cuda and query_BHSE.dtype.itemsize == HALF_BYTES:
        return attend_in_window(query_BHSE, key_BHSE, value_BHSE, window)
    return attend_in_band(query_BHSE, key_BHSE, value_BHSE, window)


def attend_in_band(
    query_BHSE: torch.Tensor, key_BHSE: torch.Tensor, value_BHSE: torch.Tensor, window: int
) -> torch.Tensor:
    """Return attention in a sliding window, B H S E, by blocks of the window's length."""
    num_tokens = query_BHSE.shape[2]
    padding = -num_tokens % window
    query_BHNWE, key_BHNWE, value_BHNWE = (
        _blocks(functional.pad(tensor, (0, 0, 0, padding)), window) for tensor in (query_BHSE, key_BHSE, value_BHSE)
    )
    result_BHNWE = functional.scaled_dot_product_attention(
        query_BHNWE,
        _with_block_before(key_BHNWE),
        _with_block_before(value_BHNWE),
        attn_mask=_band(query_BHNWE.shape[2], window, query_BHSE.device),
    )
    return result_BHNWE.flatten(2, 3)[:, :, :num_tokens]


def attend_in_window(
    query_BHSE: torch.Tensor, key_BHSE: torch.Tensor, value_BHSE: torch.Tensor, window: int
) -> torch.Tensor:
    """Return attention in a sliding window, B H S E, by a GPU's fused kernel, which skips blocks outside the band."""
    from torch.nn.attention.flex_attention import flex_attention  # not needed on a CPU

    mask = _block_mask(query_BHSE.shape[2], window, query_BHSE.device)
    kernel: Callable[..., Any] = _compiled_kernel() if query_BHSE.is_cuda else flex_attention  # type: ignore[assignment]
    result_BHSE: torch.Tensor = kernel(query_BHSE, key_BHSE, value_BHSE, block_mask=mask)
    return result_BHSE


def attend_without_values(
    query_BHSE: torch.Tensor, key_BGSE: torch.Tensor, value_BGSE: torch.Tensor, window: int | None
) -> torch.Tensor:
    """Return a result of the right shape on the meta device, B H S E, by the operator of a GPU's fused kernel.

    Torch would otherwise decompose attention there into products and a softmax of all scores.
    """
    num_tokens = query_BHSE.shape[2]
    query_BSHE, key_BSGE, value_BSGE = (tensor.transpose(1, 2) for tensor in (query_BHSE, key_BGSE, value_BGSE))
    result_BSHE: torch.Tensor = torch.ops.aten._flash_attention_forward(
        query_BSHE,
        key_BSGE,
        value_BSGE,
        None,  # sequences of one length
        None,
        num_tokens,
        num_tokens,
        0.0,  # dropout
        True,  # causal
        False,  # no mask for debugging
        window_size_left=None if window is None else window - 1,
        window_size_right=None if window is None else 0,
    )[0]
    return result_BSHE.transpose(1, 2)


def rotate(x: torch.Tensor, base: float = BASE, place_S: torch.Tensor | None = None) -> torch.Tensor:
    """Return the features (S ... E), each pair (i, i + E/2) rotated by place * base ** (-2 i / E).

    Without places, in double precision, the tokens are those of the whole sequence.
    """
    num_places, half = x.shape[0], x.shape[-1] // 2
    exact = {"device": x.device, "dtype": torch.float64}
    rate_E = base ** (-torch.arange(half, **exact) / half)  # type: ignore[call-overload]  # as keyword arguments
    if place_S is None:
        place_S = torch.arange(num_places, **exact)  # type: ignore[call-overload]
    angle_SE = place_S[:, None] * rate_E
    angle = angle_SE.view(num_places, *(1,) * (x.dim() - 2), half)
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


def _blocks(tensor_BHSE: torch.Tensor, window: int) -> torch.Tensor:
    """Return the sequence cut into blocks of the window's length, B H N W E."""
    batch, heads, num_tokens, features = tensor_BHSE.shape
    return tensor_BHSE.reshape(batch, heads, num_tokens // window, window, features)


def _with_block_before(tensor_BHNWE: torch.Tensor) -> torch.Tensor:
    """Return each block with the one before it in front, zeros before the first: B H N 2W E."""
    before_BHNWE = functional.pad(tensor_BHNWE[:, :, :-1], (0, 0, 0, 0, 1, 0))
    return torch.cat([before_BHNWE, tensor_BHNWE], dim=3)


def _band(num_blocks: int, window: int, device: torch.device) -> torch.Tensor:
    """Return which of its 2 W keys each query of a block attends to, N W 2W; the first block has no block before it."""
    query_W = torch.arange(window, device=device)[:, None] + window  # places counted from the block before
    key_2W = torch.arange(2 * window, device=device)[None]
    band_NWK = ((key_2W <= query_W) & (key_2W > query_W - window)).repeat(num_blocks, 1, 1)
    band_NWK[0, :, :window] = False
    return band_NWK


@lru_cache(_NUM_MASKS)
def _block_mask(num_tokens: int, window: int, device: torch.device) -> "BlockMask":
    from torch.nn.attention.flex_attention import create_block_mask

    def is_seen(sample: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return (key <= query) & (query - key < window)

    return create_block_mask(is_seen, None, None, num_tokens, num_tokens, device=device)


@lru_cache(1)
def _compiled_kernel() -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=False)
