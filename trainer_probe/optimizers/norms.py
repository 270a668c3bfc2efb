"""Norms of whole parameters, of which each rank holds pieces, and gradient clipping by the norm of all of them.

Squares add up over a shard's group, since each of its ranks holds another part, for experts over the expert-parallel
group too, since a parameter is the matrices of all of a layer's experts, and over the tensor-parallel group only where
its ranks hold different parts of a parameter. They are summed in double precision; a norm depends only on the order in
which shards are added.

Source: Pascanu et al., "On the difficulty of training recurrent neural networks", ICML 2013, algorithm 1.
Left out: parameters that two pipeline stages share, whose gradients would count twice.

Shapes: S segments of all the shards of a rank, shard after shard.
"""

from collections.abc import Sequence

import torch

from fabrictune.foundation.layout import Axis
from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.optimizers.segments import Shard


def own_square_sums(shards: Sequence[Shard], tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the sums of squares (S) of this rank's pieces; `tensors` has one tensor of each shard's size."""
    norms_S = [tensors[0].new_zeros((), dtype=torch.float64)] * sum(len(shard.segments) for shard in shards)
    pieces: dict[int, torch.Tensor] = {}
    begin = 0
    for shard, tensor_E in zip(shards, tensors, strict=True):
        pieces |= {begin + number: tensor_E[piece] for number, piece in shard.pieces()}
        begin += len(shard.segments)
    found = torch._foreach_norm(list(pieces.values()), 2, dtype=torch.float64) if pieces else ()
    for number, norm in zip(pieces, found, strict=True):
        norms_S[number] = norm
    return torch.stack(norms_S).square()


def split_and_replicated_segments(shards: Sequence[Shard]) -> tuple[list[int], list[int]]:
    """Return the numbers of segments split over tensor-parallel ranks, and of those replicated over them."""
    segments = [segment for shard in shards for segment in shard.segments]
    return (
        [number for number, segment in enumerate(segments) if not segment.is_replicated_over_tp],
        [number for number, segment in enumerate(segments) if segment.is_replicated_over_tp],
    )


def segments_by_axes(shards: Sequence[Shard]) -> dict[tuple[Axis, ...], list[int]]:
    """Return the numbers of segments by the axes along which ranks have other parts, in order of the first shards."""
    numbers: dict[tuple[Axis, ...], list[int]] = {}
    begin = 0
    for shard in shards:
        numbers.setdefault(shard.axes, []).extend(range(begin, begin + len(shard.segments)))
        begin += len(shard.segments)
    return numbers


def parameter_norms(
    shards: Sequence[Shard], *quantities: Sequence[torch.Tensor], comm: Comm, tag: str
) -> tuple[torch.Tensor, ...]:
    """Return for each quantity the norms (S) over whole parameters, the same on every rank with a part.

    A quantity has a tensor for each shard, of its size. A request along each of the axes of shards, then one over tp.
    """
    sums_QS = torch.stack([own_square_sums(shards, tensors) for tensors in quantities])
    for axes, numbers_G in segments_by_axes(shards).items():  # G of the S segments
        sums_QG = _taken(sums_QS, numbers_G)
        _sum_over(axes, sums_QG, comm, tag)
        _put(sums_QS, numbers_G, sums_QG)
    split_P, _ = split_and_replicated_segments(shards)  # P of the S segments
    sums_QP = _taken(sums_QS, split_P)
    comm.all_reduce(sums_QP, axis="tp", tag=tag).wait()
    _put(sums_QS, split_P, sums_QP)
    return tuple(sums_QS.sqrt().unbind())


def _taken(sums: torch.Tensor, numbers: Sequence[int]) -> torch.Tensor:
    """Return some entries of the last dimension; a list as an index would be copied to a GPU, which waits for it."""
    return torch.stack([sums[..., number] for number in numbers], -1) if numbers else sums[..., :0]


def _put(sums: torch.Tensor, numbers: Sequence[int], entries: torch.Tensor) -> None:
    """Overwrite some entries of the last dimension."""
    for place, number in enumerate(numbers):
        sums[..., number] = entries[..., place]


def _sum_over(axes: Sequence[Axis], sums: torch.Tensor, comm: Comm, tag: str) -> None:
    for axis in axes:
        comm.all_reduce(sums, axis=axis, tag=tag).wait()


_TAG = "optimizer.gradient-norm"
_EPSILON = 1e-6  # torch.nn.utils.clip_grad_norm_'s


def gradient_norm(shards: Sequence[Shard], comm: Comm) -> torch.Tensor:
    """Return the norm of all gradients of the model, in double precision, the same on every rank of the layout.

    Parameters replicated over tp count once. A request along each of the shards' axes, then over tp and over pp.
    """
    split_and_replicated = torch.zeros(2, dtype=torch.float64, device=shards[0].gradients_E.device)
    for axes in segments_by_axes(shards):
        own = [shard for shard in shards if shard.axes == axes]
        sums_S = own_square_sums(own, [shard.gradients_E for shard in own])
        sums_of_group = torch.stack([_taken(sums_S, numbers).sum() for numbers in split_and_replicated_segments(own)])
        _sum_over(axes, sums_of_group, comm, _TAG)
        split_and_replicated += sums_of_group
    comm.all_reduce(split_and_replicated[:1], axis="tp", tag=_TAG).wait()
    total = split_and_replicated.sum()
    comm.all_reduce(total, axis="pp", tag=_TAG).wait()
    return total.sqrt()


def clip_factor(
    shards: Sequence[Shard], max_norm: float, comm: Comm, *, loss_scale: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the norm of all gradients, and the factor that scales them down to `max_norm` where it is larger.

    Gradients of a scaled loss are unscaled by the factor too, and the norm is that of the unscaled ones. Where it is
    not finite, the step must be skipped. The gradients stay as they are: an optimizer's step takes the factor.
    """
    norm = gradient_norm(shards, comm) / loss_scale
    return norm, (max_norm / (norm + _EPSILON)).clamp(max=1.0) / loss_scale
