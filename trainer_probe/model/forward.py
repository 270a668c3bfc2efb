"""The forward pass of a chunk as functions over one rank's weights: embedding, layers, loss.

One process computes the model as a single chunk; a pipeline gives each rank one chunk or several.

Shapes: P a rank's part of the sequence, S the whole, or a rank's tokens of one that a context-parallel group shares, B
batch, D width, V a rank's share of the vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.operators import Context, Operators
from fabrictune.trainer_probe.model.recomputation import recomputed
from fabrictune.trainer_probe.model.spec import ModelSpec, joined
from fabrictune.trainer_probe.model.weights import Weights
from fabrictune.trainer_probe.policies import Recompute


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """Samples that pass through the pipeline together: token ids, and for each the id that follows it."""

    tokens_BS: torch.Tensor
    targets_BS: torch.Tensor


def part_of(batch: MicroBatch, context: Context) -> MicroBatch:
    """Return this rank's tokens of the samples, and what follows each of them."""
    return MicroBatch(tokens_BS=context.take(batch.tokens_BS, 1), targets_BS=context.take(batch.targets_BS, 1))


RunLayer = Callable[[Weights, int, torch.Tensor, str], torch.Tensor]  # layer, activations before it, tag


def run_chunk(
    chunk: ChunkSpec,
    weights: Weights,
    operators: Operators,
    batch: MicroBatch,
    x_PBD: torch.Tensor | None,
    tag: str,
    recompute: Recompute = "none",
    run_one: RunLayer | None = None,
) -> torch.Tensor:
    """Return the activations after the chunk, P B D, or for the last chunk the loss summed over all tokens.

    `x_PBD` are the activations before it; the first chunk takes the tokens instead. `run_one` may take the place of
    `run_layer`.
    """
    if x_PBD is None:
        assert chunk.is_first, "a later chunk takes activations"
        x_PBD = _embed(weights, operators, batch.tokens_BS, tag)
    for layer in chunk.layers:
        whole = partial(run_layer, chunk.model, weights, operators, layer)
        run = whole if run_one is None else partial(run_one, weights, layer)
        x_PBD = recomputed(run, tag, x_PBD) if recompute == "full" else run(x_PBD, tag)
    return _loss(chunk.model, weights, operators, x_PBD, batch.targets_BS, tag) if chunk.is_last else x_PBD


def _embed(weights: Weights, operators: Operators, tokens_BS: torch.Tensor, tag: str) -> torch.Tensor:
    x_PBD = operators.embed(tokens_BS, weights["embedding.weight"], f"{tag}.embedding")
    if "positions.weight" not in weights:
        return x_PBD
    return x_PBD + operators.positions(weights["positions.weight"], f"{tag}.positions")[:, None]


def _loss(
    spec: ModelSpec, weights: Weights, operators: Operators, x_PBD: torch.Tensor, targets_BS: torch.Tensor, tag: str
) -> torch.Tensor:
    normal_PBD = spec.norm.run(weights, "last_norm", x_PBD)
    logits_SBV = operators.column_linear(normal_PBD, weights["head.weight"], None, f"{tag}.head")
    return operators.cross_entropy(logits_SBV, targets_BS, f"{tag}.loss")


def run_layer(
    spec: ModelSpec, weights: Weights, operators: Operators, layer: int, x_PBD: torch.Tensor, tag: str
) -> torch.Tensor:
    """Return the activations after layer number `layer`; its requests' tags begin with `tag`."""
    for part, sublayer in spec.sublayers(layer).items():
        name, own_tag = joined(f"layers.{layer}", part), joined(f"{tag}.layer{layer}", part)
        x_PBD = x_PBD + sublayer.run(weights, operators, x_PBD, name, own_tag)
    return x_PBD
