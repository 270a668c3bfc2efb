"""Attention of some queries to some keys, in parts that are merged: each part's result with its sums' logarithms.

The softmax over all keys is the mean of the softmaxes over parts of them, weighted by their sums of exponentials. A
part's gradients follow from the logarithm of the whole sum, without any other part.

A GPU computes tiles in half precision by its fused kernel; otherwise a tile's scores are in memory. The meta device
stands for a GPU. Sums are in at least single precision.

Source: Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning", 2023, section 3.1.
Left out: a fused kernel for tiles with a mask.

Shapes: B batch, H heads of this rank, G those of keys and values, Q queries, K keys, E features of a head, R rows: the
queries of all heads that share one of keys and values.
"""

from dataclasses import dataclass

import torch

from fabrictune.trainer_probe.model.operators import at_least_single

HALF_BYTES = 2  # of a number in half precision


@dataclass(frozen=True, kw_only=True)
class Tile:
    """Queries and keys, by their places on the rank, and which of them do not meet."""

    queries: slice
    keys: slice
    is_causal: bool = False  # of as many queries as keys, each meets those up to its own
    hidden_QK: torch.Tensor | None = None  # pairs that do not meet


class MergedAttention:
    """The result of attention to the tiles added so far, B H Q E."""

    def __init__(self, query_BHQE: torch.Tensor) -> None:
        self._query_BHQE = query_BHQE
        self.result_BHQE = torch.zeros_like(at_least_single(query_BHQE))
        self.log_sum_BHQ = self.result_BHQE.new_full(query_BHQE.shape[:-1], -torch.inf)

    def add(self, tile: Tile, key_BGKE: torch.Tensor, value_BGKE: torch.Tensor) -> None:
        """Add a tile of a block of keys and values."""
        part_BHQE, own_BHQ = attend_to_tile(
            self._query_BHQE[:, :, tile.queries], key_BGKE[:, :, tile.keys], value_BGKE[:, :, tile.keys], tile
        )
        result_BHQE, before_BHQ = self.result_BHQE[:, :, tile.queries], self.log_sum_BHQ[:, :, tile.queries]
        log_sum_BHQ = torch.logaddexp(before_BHQ, own_BHQ)
        finite_BHQ = _finite(log_sum_BHQ)  # a query that has met no key yet
        result_BHQE.mul_((before_BHQ - finite_BHQ).exp()[..., None])
        result_BHQE.add_(part_BHQE * (own_BHQ - finite_BHQ).exp()[..., None])
        before_BHQ.copy_(log_sum_BHQ)


class MergedGradients:
    """The gradients of queries by the tiles added so far, B H Q E, from those of the result over all keys."""

    def __init__(
        self,
        gradient_BHQE: torch.Tensor,
        query_BHQE: torch.Tensor,
        result_BHQE: torch.Tensor,
        log_sum_BHQ: torch.Tensor,
    ) -> None:
        self._gradient_BHQE, self._query_BHQE = gradient_BHQE, query_BHQE
        self._result_BHQE, self._log_sum_BHQ = result_BHQE, log_sum_BHQ
        self.query_BHQE = torch.zeros_like(at_least_single(query_BHQE))

    def add(self, tile: Tile, block_2BGKE: torch.Tensor, sums_2BGKE: torch.Tensor) -> None:
        """Add a tile of a block of keys and values, and to `sums_2BGKE` their gradients."""
        queries = slice(None), slice(None), tile.queries
        gradients_of = _kernel_gradients if _has_kernel(self._query_BHQE, tile) else _gradients
        query_BHQE, key_BGKE, value_BGKE = gradients_of(
            self._gradient_BHQE[queries],
            self._query_BHQE[queries],
            block_2BGKE[:, :, :, tile.keys],
            self._result_BHQE[queries],
            self._log_sum_BHQ[queries],
            tile,
        )
        self.query_BHQE[queries] += query_BHQE
        sums_2BGKE[0, :, :, tile.keys] += key_BGKE
        sums_2BGKE[1, :, :, tile.keys] += value_BGKE


def attend_to_tile(
    query_BHQE: torch.Tensor, key_BGKE: torch.Tensor, value_BGKE: torch.Tensor, tile: Tile
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the result over the tile's keys alone, B H Q E, and the logarithms of the sums, B H Q."""
    if _has_kernel(query_BHQE, tile):
        return _kernel_attention(query_BHQE, key_BGKE, value_BGKE, tile)
    score_BGRK = _scores(query_BHQE, key_BGKE, tile)
    log_sum_BGR = score_BGRK.logsumexp(-1)
    probability_BGRK = (score_BGRK - _finite(log_sum_BGR)[..., None]).exp()
    result_BGRE = probability_BGRK @ at_least_single(value_BGKE)
    return result_BGRE.view(query_BHQE.shape), log_sum_BGR.view(query_BHQE.shape[:-1])


def _kernel_attention(
    query_BHQE: torch.Tensor, key_BGKE: torch.Tensor, value_BGKE: torch.Tensor, tile: Tile
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same by a GPU's fused kernel."""
    query_BQHE, key_BKGE, value_BKGE = (tensor.transpose(1, 2) for tensor in (query_BHQE, key_BGKE, value_BGKE))
    result_BQHE, log_sum_BHQ, *_ = torch.ops.aten._flash_attention_forward(
        query_BQHE,
        key_BKGE,
        value_BKGE,
        None,  # sequences of one length
        None,
        query_BQHE.shape[1],
        key_BKGE.shape[1],
        0.0,  # dropout
        tile.is_causal,
        False,  # no mask for debugging
    )
    return result_BQHE.transpose(1, 2), log_sum_BHQ


def _gradients(
    gradient_BHQE: torch.Tensor,
    query_BHQE: torch.Tensor,
    block_2BGKE: torch.Tensor,
    result_BHQE: torch.Tensor,
    log_sum_BHQ: torch.Tensor,
    tile: Tile,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return what a tile adds to the gradients of queries, keys and values."""
    (key_BGKE, value_BGKE), scale = at_least_single(block_2BGKE).unbind(), query_BHQE.shape[-1] ** -0.5
    query_BGRE, gradient_BGRE, result_BGRE = (
        _by_groups(at_least_single(tensor), key_BGKE.shape[1]) for tensor in (query_BHQE, gradient_BHQE, result_BHQE)
    )
    log_sum_BGR = log_sum_BHQ.reshape(query_BGRE.shape[:-1])
    probability_BGRK = (_scores(query_BHQE, key_BGKE, tile) - log_sum_BGR[..., None]).exp()
    along_BGR1 = (gradient_BGRE * result_BGRE).sum(-1, keepdim=True)
    score_BGRK = probability_BGRK * (gradient_BGRE @ value_BGKE.mT - along_BGR1) * scale
    return (
        (score_BGRK @ key_BGKE).view(query_BHQE.shape),
        score_BGRK.mT @ query_BGRE,
        probability_BGRK.mT @ gradient_BGRE,
    )


def _kernel_gradients(
    gradient_BHQE: torch.Tensor,
    query_BHQE: torch.Tensor,
    block_2BGKE: torch.Tensor,
    result_BHQE: torch.Tensor,
    log_sum_BHQ: torch.Tensor,
    tile: Tile,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the same by a GPU's fused kernel, which without dropout draws nothing from its state."""
    gradient_BQHE, query_BQHE, key_BKGE, value_BKGE, result_BQHE = (
        tensor.transpose(1, 2) for tensor in (gradient_BHQE, query_BHQE, *block_2BGKE.unbind(), result_BHQE)
    )
    no_state = torch.zeros(2, dtype=torch.uint64, device=query_BHQE.device)
    query_gradient, key_gradient, value_gradient = torch.ops.aten._flash_attention_backward(
        gradient_BQHE,
        query_BQHE,
        key_BKGE,
        value_BKGE,
        result_BQHE,
        log_sum_BHQ.contiguous(),
        None,  # sequences of one length
        None,
        query_BQHE.shape[1],
        key_BKGE.shape[1],
        0.0,  # dropout
        tile.is_causal,
        no_state,
        no_state[0],
    )
    return query_gradient.transpose(1, 2), key_gradient.transpose(1, 2), value_gradient.transpose(1, 2)


def _has_kernel(query_BHQE: torch.Tensor, tile: Tile) -> bool:
    is_half_on_gpu = query_BHQE.is_cuda and query_BHQE.dtype.itemsize == HALF_BYTES
    return tile.hidden_QK is None and (query_BHQE.is_meta or is_half_on_gpu)


def _scores(query_BHQE: torch.Tensor, key_BGKE: torch.Tensor, tile: Tile) -> torch.Tensor:
    """Return the scaled products of queries and keys, B G R K, minus infinity where they do not meet."""
    num_queries, num_keys = query_BHQE.shape[2], key_BGKE.shape[2]
    query_BGRE = _by_groups(at_least_single(query_BHQE), key_BGKE.shape[1])
    score_BGRK: torch.Tensor = (query_BGRE * query_BGRE.shape[-1] ** -0.5) @ at_least_single(key_BGKE).mT
    hidden_QK = tile.hidden_QK
    if tile.is_causal:
        hidden_QK = torch.ones(num_queries, num_keys, dtype=torch.bool, device=score_BGRK.device).triu_(1)
    if hidden_QK is not None:
        score_BGRK.view(*score_BGRK.shape[:2], -1, num_queries, num_keys).masked_fill_(hidden_QK, -torch.inf)
    return score_BGRK


def _by_groups(tensor_BHQE: torch.Tensor, num_groups: int) -> torch.Tensor:
    """Return the rows of the heads that share one of keys and values together, B G R E."""
    batch, heads, queries, features = tensor_BHQE.shape
    return tensor_BHQE.reshape(batch, num_groups, heads // num_groups * queries, features)


def _finite(log_sum: torch.Tensor) -> torch.Tensor:
    """Return the logarithms with a finite number for sums over nothing."""
    return log_sum.clamp(min=torch.finfo(log_sum.dtype).min)
