"""The forward pass of a chunk as functions over one rank's weights: embedding, transformer blocks, loss.

One process computes the model as a single chunk; a pipeline gives each rank one chunk or several. There are two
blocks. Serial: y = x + Attention(Norm(x)), then z = y + FeedForward(Norm(y)). Parallel: z = x + Attention(Norm(x)) +
FeedForward(Norm(x)), whose two column matrices are one, as are its two row matrices: half the collectives of tensor
parallelism, on products twice as large.

Shapes: P a rank's part of the sequence, S the whole, B batch, D width, V a rank's share of the vocabulary, H heads of
this rank, E features of a head, I parts of E features that a column matrix gives each head.

Source: Wang and Komatsuzaki, GPT-J-6B, 2021; MegaScale (NSDI'24), section 3.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch.nn import functional

from fabrictune.trainer_probe.model.attention import attend, rotate
from fabrictune.trainer_probe.model.operators import Operators
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.weights import ChunkSpec

Weights = Mapping[str, torch.Tensor]

EPSILON = 1e-5  # of the norms


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """Samples that pass through the pipeline together: token ids, and for each the id that follows it."""

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
    """Return the activations after the chunk, P B D, or for the last chunk the loss summed over all tokens.

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


def run_layer(
    spec: ModelSpec, weights: Weights, operators: Operators, x_PBD: torch.Tensor, layer: int, tag: str
) -> torch.Tensor:
    """Return the activations after layer number `layer`; its requests' tags begin with `tag`."""
    run = _run_parallel_block if spec.block == "parallel" else _run_serial_block
    return run(spec, weights, operators, x_PBD, f"layers.{layer}", f"{tag}.layer{layer}")


def normalise(weights: Weights, name: str, x_PBD: torch.Tensor) -> torch.Tensor:
    """Return the activations with mean 0 and variance 1 over the width, then scaled and shifted."""
    return functional.layer_norm(x_PBD, x_PBD.shape[-1:], weights[f"{name}.gain"], weights[f"{name}.shift"], EPSILON)


def _run_parallel_block(
    spec: ModelSpec, weights: Weights, operators: Operators, x_PBD: torch.Tensor, name: str, tag: str
) -> torch.Tensor:
    parts_SBHIE = _read(weights, operators, normalise(weights, f"{name}.norm", x_PBD), name, tag)
    attended_SBH1E = _attend(spec, parts_SBHIE[..., :3, :])
    hidden_SBHIE = functional.gelu(parts_SBHIE[..., 3:, :], approximate="tanh")
    joined_SBHIE = torch.cat([attended_SBH1E, hidden_SBHIE], dim=3)
    return x_PBD + _write(weights, operators, joined_SBHIE, name, tag)


def _run_serial_block(
    spec: ModelSpec, weights: Weights, operators: Operators, x_PBD: torch.Tensor, name: str, tag: str
) -> torch.Tensor:
    attention, feed_forward = f"{name}.attention", f"{name}.feed_forward"
    normal_PBD = normalise(weights, f"{attention}.norm", x_PBD)
    parts_SBHIE = _read(weights, operators, normal_PBD, attention, f"{tag}.attention")
    x_PBD = x_PBD + _write(weights, operators, _attend(spec, parts_SBHIE), attention, f"{tag}.attention")
    normal_PBD = normalise(weights, f"{feed_forward}.norm", x_PBD)
    parts_SBHIE = _read(weights, operators, normal_PBD, feed_forward, f"{tag}.feed_forward")
    hidden_SBHIE = functional.gelu(parts_SBHIE, approximate="tanh")
    return x_PBD + _write(weights, operators, hidden_SBHIE, feed_forward, f"{tag}.feed_forward")


def _read(weights: Weights, operators: Operators, x_PBD: torch.Tensor, name: str, tag: str) -> torch.Tensor:
    """Return the column product of a pair, by head and part: S B H I E."""
    weight_DHIE, bias_HIE = weights[f"{name}.input.weight"], weights[f"{name}.input.bias"]
    product = operators.column_linear(x_PBD, weight_DHIE.flatten(1), bias_HIE.flatten(), f"{tag}.input")
    return product.view(*product.shape[:2], *bias_HIE.shape)


def _write(weights: Weights, operators: Operators, x_SBHIE: torch.Tensor, name: str, tag: str) -> torch.Tensor:
    """Return the row product of a pair, P B D."""
    weight_OD = weights[f"{name}.output.weight"].flatten(0, 2)
    return operators.row_linear(x_SBHIE.flatten(2), weight_OD, weights[f"{name}.output.bias"], f"{tag}.output")


def _attend(spec: ModelSpec, parts_SBH3E: torch.Tensor) -> torch.Tensor:
    """Return attention's result from queries, keys and values, S B H 1 E."""
    query, key, value = parts_SBH3E.unbind(3)
    if spec.positions == "rotary":
        query, key = rotate(query), rotate(key)
    query_BHSE, key_BHSE, value_BHSE = (tensor.permute(1, 2, 0, 3) for tensor in (query, key, value))
    result_BHSE = attend(query_BHSE, key_BHSE, value_BHSE, spec.window)
    return result_BHSE.permute(2, 0, 1, 3).unsqueeze(3)
