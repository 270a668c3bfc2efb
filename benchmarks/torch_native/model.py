"""A chunk of the serial model, written with torch's modules, and our weights in its arrangement.

Shapes: B batch, S sequence, P a rank's part of it, D width, H heads of this rank, E features of a head, V vocabulary.
"""

from collections.abc import Mapping

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.nn import functional

from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.gpt import FEED_FORWARD
from fabrictune.trainer_probe.model.spec import ModelSpec

Tensors = Mapping[str, torch.Tensor]


class TorchChunk(nn.Module):
    """Tokens or activations in, samples first (B S or B P D); activations or logits out."""

    def __init__(self, chunk: ChunkSpec, dtype: torch.dtype) -> None:
        super().__init__()
        spec = chunk.model
        if chunk.is_first:
            self.embedding = nn.Embedding(spec.vocabulary, spec.width, dtype=dtype)
            self.positions = nn.Parameter(torch.empty(spec.sequence, spec.width, dtype=dtype))
        self.layers = nn.ModuleDict({str(layer): TorchLayer(spec, dtype) for layer in chunk.layers})
        if chunk.is_last:
            self.last_norm = nn.LayerNorm(spec.width, dtype=dtype)
            self.head = nn.Linear(spec.width, spec.vocabulary, bias=False, dtype=dtype)
        self.chunk = chunk

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the activations behind the chunk, B P D, or the logits, B S V."""
        if self.chunk.is_first:
            x = self.embedding(x) + _local(self.positions)
        for layer in self.layers.values():
            x = layer(x)
        if self.chunk.is_last:
            x = self.head(self.last_norm(x))
        return x


class TorchLayer(nn.Module):
    """One serial block; queries, keys and values lie together for each head, so that ranks have whole heads."""

    def __init__(self, spec: ModelSpec, dtype: torch.dtype) -> None:
        super().__init__()
        width = spec.width
        self.head_width = spec.head_width
        self.norm1 = nn.LayerNorm(width, dtype=dtype)
        self.input = nn.Linear(width, 3 * width, dtype=dtype)
        self.output = nn.Linear(width, width, dtype=dtype)
        self.norm2 = nn.LayerNorm(width, dtype=dtype)
        self.linear1 = nn.Linear(width, FEED_FORWARD * width, dtype=dtype)
        self.linear2 = nn.Linear(FEED_FORWARD * width, width, dtype=dtype)

    def forward(self, x_BPD: torch.Tensor) -> torch.Tensor:
        """Return what the layer makes of the activations, B P D."""
        x_BPD = x_BPD + self.output(self._attend(self.input(self.norm1(x_BPD))))
        hidden = functional.gelu(self.linear1(self.norm2(x_BPD)), approximate="tanh")
        found_BPD: torch.Tensor = x_BPD + self.linear2(hidden)
        return found_BPD

    def _attend(self, parts: torch.Tensor) -> torch.Tensor:
        parts_BSH3E = parts.view(*parts.shape[:2], -1, 3, self.head_width)
        query_BHSE, key_BHSE, value_BHSE = (part.transpose(1, 2) for part in parts_BSH3E.unbind(3))
        found_BHSE = functional.scaled_dot_product_attention(query_BHSE, key_BHSE, value_BHSE, is_causal=True)
        return found_BHSE.transpose(1, 2).flatten(2)


def arrange(chunk: ChunkSpec, ours: Tensors) -> dict[str, torch.Tensor]:
    """Return a chunk's weights, or their gradients, by the names and in the shapes of `TorchChunk`."""
    found: dict[str, torch.Tensor] = {}
    if chunk.is_first:
        found |= {"embedding.weight": ours["embedding.weight"], "positions": ours["positions.weight"]}
    for layer in chunk.layers:
        for name, values in _arrange_layer(ours, f"layers.{layer}").items():
            found[f"layers.{layer}.{name}"] = values
    if chunk.is_last:
        found |= {"last_norm.weight": ours["last_norm.gain"], "last_norm.bias": ours["last_norm.shift"]}
        found["head.weight"] = ours["head.weight"].t()
    return found


def _arrange_layer(ours: Tensors, name: str) -> dict[str, torch.Tensor]:
    attention, feed_forward = f"{name}.attention", f"{name}.feed_forward"
    found: dict[str, torch.Tensor] = {}
    for torch_name, our_name in (("norm1", f"{attention}.norm"), ("norm2", f"{feed_forward}.norm")):
        found |= {f"{torch_name}.weight": ours[f"{our_name}.gain"], f"{torch_name}.bias": ours[f"{our_name}.shift"]}
    for torch_name, our_name in (("input", f"{attention}.input"), ("linear1", f"{feed_forward}.input")):
        found[f"{torch_name}.weight"] = ours[f"{our_name}.weight"].flatten(1).t()
        found[f"{torch_name}.bias"] = ours[f"{our_name}.bias"].flatten()
    for torch_name, our_name in (("output", f"{attention}.output"), ("linear2", f"{feed_forward}.output")):
        found[f"{torch_name}.weight"] = ours[f"{our_name}.weight"].flatten(0, 2).t()
        found[f"{torch_name}.bias"] = ours[f"{our_name}.bias"]
    return found


def _local(parameter: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of a parameter that tensor parallelism has divided, or all of it."""
    return parameter.to_local() if isinstance(parameter, DTensor) else parameter
