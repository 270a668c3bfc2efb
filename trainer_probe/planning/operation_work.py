"""Work of an operation that torch dispatches: products, attention and bytes, from its tensors.

Attention is one operation; of its products every place of a token's span counts, and twice as many backward, as in the
papers' count. Its kernel's own count is that of the pairs its mask leaves.

Source: torch.utils.flop_counter for the operations of each product, a multiplication and an addition as two.

Shapes: B samples, S places, H heads, E features; an R x K matrix times a K x C one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from fabrictune.hardware.attention import AttentionWork
from fabrictune.hardware.gemm import Layout, Product
from fabrictune.trainer_probe.planning.memory_traffic import traffic_bytes
from fabrictune.trainer_probe.planning.operation_costs import Work

_FLOPS_A_PLACE = 4  # of a query and feature: the score, and the weighted sum of values
_ATTENTION_FORWARDS = {"_flash_attention_forward": 1, "_flash_attention_backward": 2}  # products, in forward passes
_CAUSAL_ARGUMENT = {"_flash_attention_forward": 8, "_flash_attention_backward": 11}
_REDUCTIONS = frozenset(
    {
        *("amax", "logsumexp", "mean", "sum", "_foreach_norm", "linalg_vector_norm"),
        *("_log_softmax", "_log_softmax_backward_data", "_softmax", "_softmax_backward_data"),
        *("native_layer_norm", "native_layer_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward"),
    }
)
_PRODUCTS = {"mm": 0, "addmm": 1, "bmm": 0, "baddbmm": 1}  # the number of the left operand


def work_of(operator: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> Work:
    """Return the work of an operation."""
    name = operator.overloadpacket.__name__
    num_bytes = traffic_bytes(operator, arguments, keywords, result)
    if name in _ATTENTION_FORWARDS:
        flops = _attention_flops(name, arguments, keywords)
        return Work(flops=flops, bytes=num_bytes, attention=_attention(name, arguments, keywords))
    count: Callable[..., int] | None = flop_registry.get(operator.overloadpacket)
    operands = [argument for argument in arguments if not isinstance(argument, torch.dtype)]  # of the result
    flops = 0 if count is None else count(*operands, **keywords, out_val=result)
    return Work(flops=flops, bytes=num_bytes, product=_product(name, arguments), is_reduction=name in _REDUCTIONS)


def _product(name: str, arguments: Sequence[Any]) -> Product | None:
    """Return the shape of a product, None for another operation."""
    if name not in _PRODUCTS:
        return None
    left_RK, right_KC = arguments[_PRODUCTS[name] : _PRODUCTS[name] + 2]
    return Product(
        m=left_RK.shape[-2],
        n=right_KC.shape[-1],
        k=left_RK.shape[-1],
        batch=left_RK.shape[0] if left_RK.dim() > 2 else 1,
        layout=_layout(left_RK, right_KC),
    )


def _layout(left_RK: torch.Tensor, right_KC: torch.Tensor) -> Layout:
    """Return the layout by columns: the product is computed transposed, so the right operand comes first."""
    by_columns = (right_KC.stride(-1) != 1, left_RK.stride(-1) != 1)
    layouts: Mapping[tuple[bool, bool], Layout] = {
        (False, False): "NN",
        (True, False): "TN",
        (False, True): "NT",
        (True, True): "TT",
    }
    return layouts[by_columns]


def _operands(name: str, arguments: Sequence[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return queries and keys; backward the gradient comes first."""
    first = _ATTENTION_FORWARDS[name] - 1
    return arguments[first], arguments[first + 1]


def _attention_flops(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> int:
    """Return the operations of attention; `window_size_left` tokens before a token are in its window."""
    query_BSHE, key_BSHE = _operands(name, arguments)
    num_before = keywords.get("window_size_left")
    span = key_BSHE.shape[1] if num_before is None else min(num_before + 1, key_BSHE.shape[1])
    return _ATTENTION_FORWARDS[name] * _FLOPS_A_PLACE * query_BSHE.numel() * span


def _attention(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> AttentionWork:
    query_BSHE, key_BSHE = _operands(name, arguments)
    samples, num_queries, heads, features = query_BSHE.shape
    num_before = keywords.get("window_size_left")
    return AttentionWork(
        num_heads=samples * heads,
        head_size=features,
        num_queries=num_queries,
        num_keys=key_BSHE.shape[1],
        is_causal=bool(arguments[_CAUSAL_ARGUMENT[name]]),
        window=None if num_before is None else num_before + 1,
        is_backward=_ATTENTION_FORWARDS[name] > 1,
    )
