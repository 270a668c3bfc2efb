"""Activation recomputation: a function of tensors that keeps its inputs and is computed again in the backward pass.

Full recomputation keeps a layer's input only; selective recomputation keeps what attention reads, and not what it makes
of it (rotated queries and keys, copies for a band, scores or their sums). The same operations run again on the same
numbers, so gradients are the same to the last bit.

Source: Chen et al., "Training deep nets with sublinear memory cost", 2016; Korthikanti et al., "Reducing activation
recomputation in large transformer models", 2022, section 5 (selective).
Left out: random numbers, of which these models draw none.

Shapes: S sequence, B batch, G heads of keys and values, H of queries, E features of a head.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import Function

from fabrictune.trainer_probe.model.autograd import apply
from fabrictune.trainer_probe.model.operators import Context

AGAIN = "again"  # ends the tag of what is computed in the backward pass

Compute = Callable[..., torch.Tensor]  # takes tensors, and the tag of its requests


def recomputed(compute: Compute, tag: str, *tensors: torch.Tensor) -> torch.Tensor:
    """Return `compute(*tensors, tag)`; the backward pass computes it again. One of the tensors requires a gradient."""
    return apply(_Recomputed, compute, tag, *tensors)


class RecomputedContext:
    """A context whose attention is computed again in the backward pass."""

    def __init__(self, context: Context) -> None:
        self.size = context.size
        self._context = context

    def take(self, whole: torch.Tensor, dim: int) -> torch.Tensor:
        """Return this rank's tokens of the whole sequence, which is dimension `dim`."""
        return self._context.take(whole, dim)

    def attend(
        self,
        query: torch.Tensor,
        key_SBGE: torch.Tensor,
        value_SBGE: torch.Tensor,
        window: int | None,
        base: float | None,
        tag: str,
    ) -> torch.Tensor:
        """Return attention's result, S B H E."""

        def attend(query: torch.Tensor, key_SBGE: torch.Tensor, value_SBGE: torch.Tensor, tag: str) -> torch.Tensor:
            return self._context.attend(query, key_SBGE, value_SBGE, window, base, tag)

        return recomputed(attend, tag, query, key_SBGE, value_SBGE)


class _Recomputed(Function):
    """Forward: compute, keep the inputs. Backward: compute again, and run that backward."""

    @staticmethod
    def forward(ctx: Any, compute: Compute, tag: str, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.compute, ctx.tag = compute, tag
        ctx.save_for_backward(*tensors)
        return compute(*tensors, tag)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        inputs = [tensor.detach().requires_grad_() for tensor in ctx.saved_tensors]
        with torch.enable_grad():
            result = ctx.compute(*inputs, f"{ctx.tag}.{AGAIN}")
        torch.autograd.backward(result, gradients[0])
        return None, None, *(tensor.grad for tensor in inputs)
