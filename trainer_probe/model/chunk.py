"""A chunk of a model: layers that follow one another, with the embedding before the first and the loss behind the last.

One process computes the model as a single chunk; a pipeline gives each rank one chunk or several.

Shapes: B batch, S sequence, P a rank's part of it, D width.
"""

from dataclasses import dataclass

import torch

from trainer_probe.model.layers import Weights, normalise, run_layer
from trainer_probe.model.operators import Operators
from trainer_probe.model.spec import ModelSpec
from trainer_probe.model.weights import WeightSpec, embedding_weights, head_weights, layer_weights, make_weight


@dataclass(frozen=True, kw_only=True)
class ChunkSpec:
    """Part `number` of `num_chunks` equal parts of a model's layers."""

    model: ModelSpec
    number: int = 0
    num_chunks: int = 1

    @property
    def layers(self) -> range:
        """The numbers of its layers."""
        depth = self.model.depth // self.num_chunks
        return range(self.number * depth, (self.number + 1) * depth)

    @property
    def is_first(self) -> bool:
        """Whether it takes tokens."""
        return self.number == 0

    @property
    def is_last(self) -> bool:
        """Whether it gives the loss."""
        return self.number == self.num_chunks - 1

    def weights(self) -> list[WeightSpec]:
        """Return its weights in the order in which they are used."""
        return [
            *(embedding_weights(self.model) if self.is_first else ()),
            *(weight for layer in self.layers for weight in layer_weights(self.model, layer)),
            *(head_weights(self.model) if self.is_last else ()),
        ]


def make_weights(chunk: ChunkSpec, *, tp: int = 1, place: int = 0) -> dict[str, torch.Tensor]:
    """Return the first values of a chunk's weights on rank `place` of `tp`, in double precision."""
    return {weight.name: make_weight(weight, chunk.model.seed, tp=tp, place=place) for weight in chunk.weights()}


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
