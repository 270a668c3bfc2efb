"""Initial weights, each from a random stream of its name, so that every layout starts from the same values."""

import torch

from fabrictune.foundation.seeds import stream
from fabrictune.trainer_probe.model.weights import ChunkSpec, WeightSpec


def make_weights(chunk: ChunkSpec, *, tp: int = 1, place: int = 0) -> dict[str, torch.Tensor]:
    """Return the initial weights of a chunk on rank `place` of `tp`, in double precision."""
    return {weight.name: make_weight(weight, chunk.model.seed, tp=tp, place=place) for weight in chunk.weights()}


def make_weight(weight: WeightSpec, seed: int, *, tp: int = 1, place: int = 0) -> torch.Tensor:
    """Return a rank's part of an initial weight, in double precision."""
    if weight.start == "normal":
        whole = torch.from_numpy(stream(seed, "weights", weight.name).standard_normal(weight.shape) * weight.scale)
        return weight.local_part(whole, tp, place).contiguous()
    fill = 1.0 if weight.start == "ones" else 0.0
    return torch.full(weight.local_shape(tp), fill, dtype=torch.float64)
