"""Places of weights' gradients: the range of a flat buffer to which a product for a weight's gradient is added at once.

A flat buffer of values has that of gradients as its own gradient. A weight, or a view of one, lies in both at the same
offsets. To add the product in place saves a write, a read and an addition of each weight a micro-batch, and where
gradients have single precision the product is not rounded to half of it.

Source: Megatron-LM, `gradient_accumulation_fusion`; torch.addmm with `out_dtype`, which only GPUs have: a CPU rounds
the product before it adds it in single precision.
Left out: products of experts, which autograd adds.

Shapes: S sequence, B batch, I and O features before and after a product, N tokens.
"""

import torch

from fabrictune.foundation.errors import Mistake, UnavailableError


def attach_gradient(values: torch.Tensor, gradients: torch.Tensor) -> None:
    """Let `values` have `gradients` of the same shape, in a precision of their own.

    Raises UnavailableError where torch has one precision for both.
    """
    if gradients.dtype != values.dtype:
        if not hasattr(values, "grad_dtype"):
            raise UnavailableError(
                Mistake(
                    where="data_parallel.gradient_precision",
                    found=f"torch {torch.__version__}, whose gradients have the precision of their weights",
                    next_step="install torch 2.10 or later, or leave the key out",
                )
            )
        values.grad_dtype = gradients.dtype
    values.grad = gradients


def gradient_place(weight_IO: torch.Tensor) -> torch.Tensor | None:
    """Return the gradients at the place of a weight, or of a view of one, in its flat buffer; None without one."""
    flat = weight_IO._base
    if flat is None or flat.requires_grad or flat.grad is None:
        return None
    return flat.grad.as_strided(weight_IO.shape, weight_IO.stride(), weight_IO.storage_offset())


@torch.no_grad()
def weight_gradient(weight_IO: torch.Tensor, x_SBI: torch.Tensor, gradient_SBO: torch.Tensor) -> torch.Tensor | None:
    """Add a product to the gradient of its weight; returns it instead, I O, where the weight has no place for it."""
    x_IN, gradient_NO, place_IO = x_SBI.flatten(0, 1).t(), gradient_SBO.flatten(0, 1), gradient_place(weight_IO)
    if place_IO is None:
        return x_IN @ gradient_NO
    if place_IO.dtype == x_IN.dtype:
        torch.addmm(place_IO, x_IN, gradient_NO, out=place_IO)
    elif place_IO.device.type == "cpu":
        place_IO.add_(x_IN @ gradient_NO)
    else:
        torch.addmm(place_IO, x_IN, gradient_NO, out_dtype=place_IO.dtype, out=place_IO)
    return None
