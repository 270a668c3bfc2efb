"""Hugging Face's Llama, Mistral, Mixtral and GPT-2 written a second time, in plain torch over their tensors' names.

Nothing of the trainer is used: only what the modeling files of transformers compute, from a checkpoint's folder.

Shapes: B batch, S sequence, D width, H heads, E features of a head.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch.nn import functional

Tensors = Mapping[str, torch.Tensor]


def logits_of(folder: Path, tokens_BS: torch.Tensor) -> torch.Tensor:
    """Return the logits of a checkpoint, in double precision."""
    config = json.loads((folder / "config.json").read_text())
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    tensors: dict[str, torch.Tensor] = {}
    for name in set(index["weight_map"].values()):
        tensors |= load_file(folder / name)
    assert set(tensors) == set(index["weight_map"])
    double = {name: tensor.double() for name, tensor in tensors.items()}
    return (_gpt2 if config["model_type"] == "gpt2" else _llama)(config, double, tokens_BS)


def _llama(config: Mapping[str, Any], tensors: Tensors, tokens_BS: torch.Tensor) -> torch.Tensor:
    x_BSD = tensors["model.embed_tokens.weight"][tokens_BS]
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}"
        normal = _rms(config, tensors[f"{name}.input_layernorm.weight"], x_BSD)
        x_BSD = x_BSD + _llama_attention(config, tensors, f"{name}.self_attn", normal)
        normal = _rms(config, tensors[f"{name}.post_attention_layernorm.weight"], x_BSD)
        is_moe = config["model_type"] == "mixtral"
        x_BSD = x_BSD + (
            _mixture(config, tensors, f"{name}.block_sparse_moe", normal)
            if is_moe
            else _swiglu(tensors, [f"{name}.mlp.{part}_proj.weight" for part in ("gate", "up", "down")], normal)
        )
    return _rms(config, tensors["model.norm.weight"], x_BSD) @ tensors["lm_head.weight"].T


def _llama_attention(config: Mapping[str, Any], tensors: Tensors, name: str, x_BSD: torch.Tensor) -> torch.Tensor:
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]

    def project(letter: str, count: int) -> torch.Tensor:
        product = x_BSD @ tensors[f"{name}.{letter}_proj.weight"].T
        return product.view(*x_BSD.shape[:2], count, -1).transpose(1, 2)

    query, key, value = project("q", heads), project("k", groups), project("v", groups)
    size, width = query.shape[2], query.shape[3]
    frequency = 1.0 / config["rope_theta"] ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.outer(torch.arange(size, dtype=torch.float64), frequency)
    both = torch.cat([angle, angle], dim=-1)
    query, key = (part * both.cos() + _rotate_half(part) * both.sin() for part in (query, key))
    key, value = (part.repeat_interleave(heads // groups, dim=1) for part in (key, value))
    result = _attend(query, key, value, config.get("sliding_window"))
    return result @ tensors[f"{name}.o_proj.weight"].T


def _rotate_half(x: torch.Tensor) -> torch.Tensor:
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat([-second, first], dim=-1)


def _attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, window: int | None) -> torch.Tensor:
    """Return attention of B H S E, with heads joined: B S D."""
    place = torch.arange(query.shape[2])
    is_seen = place[None] <= place[:, None]
    if window is not None:
        is_seen &= place[None] > place[:, None] - window
    score = (query @ key.transpose(2, 3) / math.sqrt(query.shape[3])).masked_fill(~is_seen, -math.inf)
    return (score.softmax(-1) @ value).transpose(1, 2).flatten(2)


def _mixture(config: Mapping[str, Any], tensors: Tensors, name: str, x_BSD: torch.Tensor) -> torch.Tensor:
    result = torch.zeros_like(x_BSD)
    probability = (x_BSD @ tensors[f"{name}.gate.weight"].T).softmax(-1)
    largest, chosen = probability.topk(config["num_experts_per_tok"], dim=-1)
    share = largest / largest.sum(-1, keepdim=True)
    for expert in range(config["num_local_experts"]):
        names = [f"{name}.experts.{expert}.{part}.weight" for part in ("w1", "w3", "w2")]
        weight = torch.where(chosen == expert, share, 0.0).sum(-1, keepdim=True)
        result = result + weight * _swiglu(tensors, names, x_BSD)
    return result


def _swiglu(tensors: Tensors, names: list[str], x: torch.Tensor) -> torch.Tensor:
    gate, up, down = (tensors[name] for name in names)
    return (functional.silu(x @ gate.T) * (x @ up.T)) @ down.T


def _rms(config: Mapping[str, Any], weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + config["rms_norm_eps"]))


def _gpt2(config: Mapping[str, Any], tensors: Tensors, tokens_BS: torch.Tensor) -> torch.Tensor:
    width, heads = config["n_embd"], config["n_head"]

    def norm(name: str, x: torch.Tensor) -> torch.Tensor:
        weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
        return functional.layer_norm(x, (width,), weight, bias, config["layer_norm_epsilon"])

    def conv1d(name: str, x: torch.Tensor) -> torch.Tensor:
        return x @ tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    x_BSD = tensors["transformer.wte.weight"][tokens_BS] + tensors["transformer.wpe.weight"][: tokens_BS.shape[1]]
    for layer in range(config["n_layer"]):
        name = f"transformer.h.{layer}"
        parts = conv1d(f"{name}.attn.c_attn", norm(f"{name}.ln_1", x_BSD)).split(width, dim=2)
        query, key, value = (part.view(*part.shape[:2], heads, -1).transpose(1, 2) for part in parts)
        x_BSD = x_BSD + conv1d(f"{name}.attn.c_proj", _attend(query, key, value, None))
        hidden = conv1d(f"{name}.mlp.c_fc", norm(f"{name}.ln_2", x_BSD))
        inner = math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)
        x_BSD = x_BSD + conv1d(f"{name}.mlp.c_proj", 0.5 * hidden * (1 + inner.tanh()))
    return norm("transformer.ln_f", x_BSD) @ tensors["lm_head.weight"].T
