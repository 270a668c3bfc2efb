"""Moves of activations between the ranks of a tensor-parallel group, with their gradients' moves back.

A rank has a part of the sequence with all features, or the whole sequence: with all features, as a term of a sum, or
with a part of them.

Shapes: S sequence, P a rank's part of it, B batch, D width, E a rank's part of it.

Source: Korthikanti et al., "Reducing activation recomputation in large transformer models", section 4.2.2; Jacobs et
al., "DeepSpeed Ulysses", 2023, section 3.2 (parts of the sequence for parts of the features).
"""

from typing import Any

import torch
from torch.autograd.function import Function

from fabrictune.trainer_probe.parallel.overlapped_matmul import SequenceGroup


def scatter_sequence(x_SBD: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
    """Return this part of the sum over ranks, P B D; backward the gradient is gathered."""
    return apply(_ScatterSequence, x_SBD, group, tag)


def gather_sequence(x_PBD: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
    """Return the whole sequence, S B D; backward the sum of the ranks' gradients is scattered."""
    return apply(_GatherSequence, x_PBD, group, tag)


def sequence_to_features(x_PBD: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
    """Return this rank's features of the whole sequence, S B E; backward the reverse."""
    return apply(_SequenceToFeatures, x_PBD, group, tag)


def features_to_sequence(x_SBE: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
    """Return all features of this part of the sequence, P B D; backward the reverse."""
    return apply(_FeaturesToSequence, x_SBE, group, tag)


def apply(function: type[Function], *arguments: Any) -> torch.Tensor:
    """Call an autograd function; torch leaves `apply` untyped."""
    result: torch.Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return result


class _ScatterSequence(Function):
    @staticmethod
    def forward(ctx: Any, x_SBD: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
        ctx.group, ctx.tag = group, tag
        return group.scatter(x_SBD, f"{tag}.forward")

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        whole_SBD, handle = ctx.group.gather(gradients[0], f"{ctx.tag}.backward")
        handle.wait()
        return whole_SBD, None, None


class _GatherSequence(Function):
    @staticmethod
    def forward(ctx: Any, x_PBD: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
        ctx.group, ctx.tag = group, tag
        whole_SBD, handle = group.gather(x_PBD, f"{tag}.forward")
        handle.wait()
        return whole_SBD

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return ctx.group.scatter(gradients[0], f"{ctx.tag}.backward"), None, None


class _SequenceToFeatures(Function):
    @staticmethod
    def forward(ctx: Any, x_PBD: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
        ctx.group, ctx.tag = group, tag
        return group.to_features(x_PBD, f"{tag}.forward")

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return ctx.group.to_sequence(gradients[0], f"{ctx.tag}.backward"), None, None


class _FeaturesToSequence(Function):
    @staticmethod
    def forward(ctx: Any, x_SBE: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
        ctx.group, ctx.tag = group, tag
        return group.to_sequence(x_SBE, f"{tag}.forward")

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return ctx.group.to_features(gradients[0], f"{ctx.tag}.backward"), None, None
