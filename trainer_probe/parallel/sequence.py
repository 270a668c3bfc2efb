"""Moves of activations between the ranks of a tensor-parallel group, with their gradients' moves back.

A rank has a part of the sequence with all features, or the whole sequence: with all features, as a term of a sum, or
with a part of them.

Shapes: S sequence, P a rank's part of it, B batch, D width, E a rank's part of it.

Source: Korthikanti et al., "Reducing activation recomputation in large transformer models", section 4.2.2; Jacobs et
al., "DeepSpeed Ulysses", 2023, section 3.2 (parts of the sequence for parts of the features).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.autograd.function import Function

from fabrictune.trainer_probe.model.autograd import apply
from fabrictune.trainer_probe.parallel.overlapped_matmul import SequenceGroup

Move = Callable[[torch.Tensor, str], torch.Tensor]  # takes activations and the tag of its request


def scatter_sequence(x_SBD: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
    """Return this part of the sum over ranks, P B D; backward the gradient is gathered."""
    return apply(_Moved, x_SBD, group.scatter, partial(_gather, group), tag)


def gather_sequence(x_PBD: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
    """Return the whole sequence, S B D; backward the sum of the ranks' gradients is scattered."""
    return apply(_Moved, x_PBD, partial(_gather, group), group.scatter, tag)


def sequence_to_features(x_PBD: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
    """Return this rank's features of the whole sequence, S B E; backward the reverse."""
    return apply(_Moved, x_PBD, group.to_features, group.to_sequence, tag)


def features_to_sequence(x_SBE: torch.Tensor, group: SequenceGroup, tag: str) -> torch.Tensor:
    """Return all features of this part of the sequence, P B D; backward the reverse."""
    return apply(_Moved, x_SBE, group.to_sequence, group.to_features, tag)


class _Moved(Function):
    """Forward: one way. Backward: the gradient the other way."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, there: Move, back: Move, tag: str) -> torch.Tensor:
        ctx.back, ctx.tag = back, tag
        return there(x, f"{tag}.forward")

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return ctx.back(gradients[0], f"{ctx.tag}.backward"), None, None, None


def _gather(group: SequenceGroup, x_PBD: torch.Tensor, tag: str) -> torch.Tensor:
    whole_SBD, handle = group.gather(x_PBD, tag)
    handle.wait()
    return whole_SBD
