"""Norms of whole parameters, of which each rank holds pieces.

Squares add up over the data-parallel group, since each of its ranks holds another shard, and over the tensor-parallel
group only where its ranks hold different parts of a parameter. They are summed in double precision; the order in which
shards are added is all that a norm can depend on.

Shapes: S segments of all the shards of a rank, shard after shard.
"""

from collections.abc import Sequence

import torch

from fabrictune.trainer_probe.comm import Comm
from fabrictune.trainer_probe.optimizers.segments import Shard


def own_square_sums(shards: Sequence[Shard], tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the sums of squares (S) of this rank's pieces; `tensors` has one for each shard, of its size."""
    sums_S = torch.zeros(sum(len(shard.segments) for shard in shards), dtype=torch.float64, device=tensors[0].device)
    begin = 0
    for shard, tensor_E in zip(shards, tensors, strict=True):
        for number, piece in shard.pieces():
            sums_S[begin + number] = torch.linalg.vector_norm(tensor_E[piece], dtype=torch.float64).square()
        begin += len(shard.segments)
    return sums_S


def replicated(shards: Sequence[Shard], device: torch.device) -> torch.Tensor:
    """Return which segments (S) every tensor-parallel rank holds whole."""
    return torch.tensor(
        [segment.is_replicated_over_tp for shard in shards for segment in shard.segments], device=device
    )


def parameter_norms(
    shards: Sequence[Shard], *quantities: Sequence[torch.Tensor], comm: Comm, tag: str
) -> tuple[torch.Tensor, ...]:
    """Return for each quantity the norms (S) over whole parameters, the same on every rank that holds a part.

    A quantity has a tensor for each shard, of its size. Two requests in all: over dp, then over tp.
    """
    sums_QS = torch.stack([own_square_sums(shards, tensors) for tensors in quantities])
    comm.all_reduce(sums_QS, axis="dp", tag=tag).wait()
    is_split_S = ~replicated(shards, sums_QS.device)
    split_QP = sums_QS[:, is_split_S]  # P of the S segments
    comm.all_reduce(split_QP, axis="tp", tag=tag).wait()
    sums_QS[:, is_split_S] = split_QP
    return tuple(sums_QS.sqrt().unbind())
