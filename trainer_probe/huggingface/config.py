"""The configuration of a Hugging Face checkpoint (`config.json`): what a model's is, and where another one differs.

Shapes of weights alone do not make a model: heads, rotary base, epsilon and window are only said here, and a checkpoint
that differs in one would run, and be wrong.

Source: Hugging Face transformers 5, the configuration classes' names and defaults; before, `rope_parameters` was
`rope_theta` and `rope_scaling`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fabrictune.foundation.errors import Mistake
from fabrictune.foundation.foreign_files import shown
from fabrictune.trainer_probe.huggingface.blocks import FAMILIES
from fabrictune.trainer_probe.model.gpt import EPSILON, FEED_FORWARD, GptSpec
from fabrictune.trainer_probe.model.llama import LlamaSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.model.spec import ModelSpec

CONFIG_FILE = "config.json"
ROTATION = "rope_parameters"


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """An architecture's configuration: what must agree, what it is by default there, and what else is written."""

    architecture: str
    expected: Mapping[str, Any]
    defaults: Mapping[str, Any]  # of keys that a file may leave out
    also: Mapping[str, Any]  # has no influence on what the weights compute

    def to_json(self) -> dict[str, Any]:
        """Return the content of `config.json`."""
        return {"architectures": [self.architecture], **self.expected, **self.also}

    def mistakes(self, found: Mapping[str, Any], where: str) -> Iterator[Mistake]:
        """Yield where a file's content differs."""
        found = {**self.defaults, **found, **_rotation(found), **_inner_width(found)}
        for key, value in self.expected.items():
            if key not in found or found[key] != value:
                yield Mistake(
                    where=f"{where}: {key}",
                    found=shown(found[key]) if key in found else "not there",
                    allowed=f"{value!r}, as the recipe's model has it",
                    next_step="change the recipe's model, or take another checkpoint",
                )


def unmapped(spec: ModelSpec) -> Iterator[Mistake]:
    """Yield why a model has no counterpart among Hugging Face's architectures, if so."""
    next_step = "train a model of family llama or moe, or a gpt with block=serial and positions=learned"
    if spec.family not in FAMILIES:
        yield Mistake(where="model.family", found=spec.family, allowed=", ".join(FAMILIES), next_step=next_step)
    if isinstance(spec, GptSpec):
        kept = {"block": "serial", "positions": "learned"}
        for key, allowed in kept.items():
            if getattr(spec, key) != allowed:
                allowed = f"{allowed}, as in GPT-2"
                yield Mistake(where=f"model.{key}", found=getattr(spec, key), allowed=allowed, next_step=next_step)
        if _window(spec) is not None:
            yield Mistake(
                where="model.window", found=str(spec.window), allowed="none, as in GPT-2", next_step=next_step
            )


def configuration_of(spec: ModelSpec) -> Configuration:
    """Return the configuration of a model that has a counterpart."""
    return _gpt2(spec) if isinstance(spec, GptSpec) else _llama(spec)


def _window(spec: ModelSpec) -> int | None:
    return None if spec.window == spec.sequence else spec.window


def _rotation(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base and the kind of rotary positions from the newer form, as the older form says them."""
    values = found.get(ROTATION)
    if not isinstance(values, Mapping):
        return {}
    kind = values.get("rope_type", "default")
    scaling = {"rope_scaling": None if kind == "default" else dict(values)}
    return scaling | ({"rope_theta": values["rope_theta"]} if "rope_theta" in values else {})


def _inner_width(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return GPT-2's usual width of the feed-forward part, where it is written out, as it is said otherwise."""
    inner, width = found.get("n_inner"), found.get("n_embd")
    return {"n_inner": None} if isinstance(width, int) and inner == FEED_FORWARD * width else {}


def _llama(spec: ModelSpec) -> Configuration:
    assert isinstance(spec, LlamaSpec)
    window = _window(spec)
    expected: dict[str, Any] = {
        "hidden_size": spec.width,
        "num_hidden_layers": spec.depth,
        "num_attention_heads": spec.num_heads,
        "num_key_value_heads": spec.num_key_value_heads,
        "head_dim": spec.head_width,
        "intermediate_size": spec.feed_forward_width,
        "vocab_size": spec.vocabulary,
        "hidden_act": "silu",
        "rms_norm_eps": spec.norm_epsilon,
        "rope_theta": spec.rotary_base,
        "rope_scaling": None,
        "tie_word_embeddings": False,
    }
    also: dict[str, Any] = {"max_position_embeddings": spec.sequence}
    is_moe = isinstance(spec, MoeSpec)
    if isinstance(spec, MoeSpec):
        also["router_aux_loss_coef"] = spec.balance_coefficient
        expected |= {"num_local_experts": spec.num_experts, "num_experts_per_tok": spec.num_choices}
    if is_moe or window is not None:
        expected["sliding_window"] = window
    else:
        expected |= {"attention_bias": False, "mlp_bias": False}
    name = "mixtral" if is_moe else "llama" if window is None else "mistral"
    defaults = {
        "head_dim": spec.head_width,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5 if is_moe else 1e-6,
        "rope_theta": 1e6 if is_moe else 1e4,
        "rope_scaling": None,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "sliding_window": 4096 if name == "mistral" else None,
    }
    return Configuration(
        architecture=f"{name.capitalize()}ForCausalLM",
        expected={"model_type": name, **expected},
        defaults=defaults,
        also=also,
    )


def _gpt2(spec: GptSpec) -> Configuration:
    expected = {
        "model_type": "gpt2",
        "n_embd": spec.width,
        "n_layer": spec.depth,
        "n_head": spec.num_heads,
        "n_inner": None,
        "n_positions": spec.sequence,
        "vocab_size": spec.vocabulary,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": EPSILON,
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "tie_word_embeddings": False,
    }
    assert FEED_FORWARD == 4, "GPT-2's n_inner where it is none"
    defaults = {
        "n_inner": None,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "tie_word_embeddings": True,
    }
    also = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
    return Configuration(architecture="GPT2LMHeadModel", expected=expected, defaults=defaults, also=also)
