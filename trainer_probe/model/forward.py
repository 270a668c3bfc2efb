"""The forward pass of a chunk: the embedding before the first layer, the loss behind the last.

One process computes the model as a single chunk; a pipeline gives each rank one chunk or several.

Shapes: B batch, S sequence, P a rank's part of it, D width.
"""

from dataclasses import dataclass

import torch

from fabrictune.trainer_probe.model.chunk import ChunkSpec
from fabrictune.trainer_probe.model.layers import Weights, normalise, run_layer
from fabrictune.trainer_probe.model.operators import Operators


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """Samples that pass through the pipeline together: token ids and the ids that follow each of them."""

    tokens_BS: torch.Tensor
    targets_BS: torch.Tensor


def run_chunk(
    chunk: ChunkSpec,
    weights: Weights,
    operators: Operators,
    batch: MicroBatch,
    x_PBD: torch.Tensor | None,
    tag: str,
) -> torch.Tensor:
    """Return the activations behind the chunk, P B D, or for the last chunk the loss summed over all tokens.

    `x_PBD` are the activations before it; the first chunk takes the tokens instead.
    """
    if x_PBD is None:
        assert chunk.is_first, "a later chunk takes activations"
        x_PBD = _embed(weights, operators, batch.tokens_BS, tag)
    for layer in chunk.layers:
        x_PBD = run_layer(chunk.model, weights, operators, x_PBD, layer, tag)
    return _loss(weights, operators, x_PBD, batch.targets_BS, tag) if chunk.is_last else x_PBD


def _embed(weights: Weights, operators: Operators, tokens_BS: torch.Tensor, tag: str) -> torch.Tensor:
    x_PBD = operators.embed(tokens_BS, weights["embedding.weight"], f"{tag}.embedding")
    return x_PBD + weights["positions.weight"][:, None] if "positions.weight" in weights else x_PBD


def _loss(
    weights: Weights, operators: Operators, x_PBD: torch.Tensor, targets_BS: torch.Tensor, tag: str
) -> torch.Tensor:
    normal_PBD = normalise(weights, "last_norm", x_PBD)
    logits_SBV = operators.column_linear(normal_PBD, weights["head.weight"], None, f"{tag}.head")
    return operators.cross_entropy(logits_SBV, targets_BS, f"{tag}.loss")
