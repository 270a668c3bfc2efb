"""Functions of a layer that a rank computes on its own: activations of the feed-forward part, and a norm.

torch's `rms_norm` keeps input and result in single precision wherever it has no fused kernel; here it keeps the input
as it is and one number a token, on every device.

Shapes: P a rank's part of the sequence, B batch, D width.

Source: Zhang and Sennrich, "Root mean square layer normalization", 2019; Shazeer, "GLU variants improve transformer",
2020 (SwiGLU).
"""

from typing import Any

import torch
from torch.autograd.function import Function
from torch.nn import functional

from fabrictune.trainer_probe.model.autograd import apply
from fabrictune.trainer_probe.model.operators import at_least_single


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Return the Gaussian error linear unit, by its approximation with a hyperbolic tangent."""
    return functional.gelu(x, approximate="tanh")


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Return silu(gate) * up."""
    return functional.silu(gate) * up


def rms_norm(x_PBD: torch.Tensor, gain_D: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Return x / sqrt(mean(x ** 2) + epsilon) * gain, with the mean in at least single precision."""
    if x_PBD.is_cuda:
        return functional.rms_norm(x_PBD, gain_D.shape, gain_D, epsilon)  # a fused kernel, which keeps as much
    return apply(_RmsNorm, x_PBD, gain_D, epsilon)


class _RmsNorm(Function):
    """Keeps the input and 1 / sqrt(mean(x ** 2) + epsilon)."""

    @staticmethod
    def forward(ctx: Any, x_PBD: torch.Tensor, gain_D: torch.Tensor, epsilon: float) -> torch.Tensor:
        wide_PBD = at_least_single(x_PBD)
        factor_PB1 = (wide_PBD.square().mean(-1, keepdim=True) + epsilon).rsqrt()
        ctx.save_for_backward(x_PBD, gain_D, factor_PB1)
        return (wide_PBD * factor_PB1).to(x_PBD.dtype) * gain_D

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        x_PBD, gain_D, factor_PB1 = ctx.saved_tensors
        normal_PBD = at_least_single(x_PBD) * factor_PB1
        gradient_PBD = at_least_single(gradients[0])
        gain_gradient_D = (gradient_PBD * normal_PBD).flatten(0, -2).sum(0).to(gain_D.dtype)
        scaled_PBD = gradient_PBD * gain_D
        along_PB1 = (scaled_PBD * normal_PBD).mean(-1, keepdim=True)
        return ((scaled_PBD - normal_PBD * along_PB1) * factor_PB1).to(x_PBD.dtype), gain_gradient_D, None
