"""The shape of a model, as far as all families have it, and parameters and operations counted as the papers do.

A family is one file with a subclass (`model/table.py` lists them): its keys, its sublayers and its presets. The
trainer, plans, closed forms and recipes ask this class.

A multiplication and an addition are two operations; a backward pass costs two forward passes; only matrix products
count. Causality is not deducted: a token is charged for every place of its span, as the published figures are.

Source: Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021,
equation 3; Korthikanti et al., "Reducing activation recomputation in large transformer models", appendix A.
Left out: dropout; a head that shares the embedding's weights, and what it would save.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.trainer_probe.model.norms import Norm
from fabrictune.trainer_probe.model.sublayers import Sublayer
from fabrictune.trainer_probe.model.weights import DEVIATION, WeightSpec, normal_weight

FORWARD_AND_BACKWARD = 3  # forward passes


@dataclass(frozen=True, kw_only=True)
class Technique:
    """A key of a family whose two values an ablation compares."""

    name: str
    plain_name: str  # of a recipe without it
    key: str
    plain: Any
    used: Any


@dataclass(frozen=True, kw_only=True)
class ModelSpec(ABC):
    """The shape of a model. Raises InputError with all mistakes."""

    family: ClassVar[str]  # its name in the table of models
    split_keys: ClassVar[tuple[str, ...]] = ("num_heads", "vocabulary")  # which the ranks of tp divide
    techniques: ClassVar[tuple[Technique, ...]] = ()

    width: int = field(default=256, metadata={"help": "features of a token between layers (h)"})
    depth: int = field(default=4, metadata={"help": "number of layers (l)"})
    num_heads: int = field(default=4, metadata={"help": "attention heads of a layer (a)"})
    vocabulary: int = field(default=1024, metadata={"help": "number of token ids (V)"})
    sequence: int = field(default=128, metadata={"help": "tokens of a sample (s)"})
    window: int | None = field(
        default=None, metadata={"help": "latest tokens that a token attends to, itself included; without it all"}
    )
    seed: int = field(default=0, metadata={"help": "seed of the initial weights"})

    def __post_init__(self) -> None:
        mistakes = list(self.mistakes())
        if mistakes:
            raise InputError(*mistakes)

    @property
    def num_divided_experts(self) -> int | None:
        """Experts of a layer, which ranks may divide; None where there are none."""
        return None

    @property
    def num_token_groups(self) -> int | None:
        """Groups of a sample's tokens of which each is on one rank of cp; None where any division will do."""
        return None

    @property
    @abstractmethod
    def norm(self) -> Norm:
        """The norm of sublayers and of the head."""

    @abstractmethod
    def sublayers(self, layer: int) -> Mapping[str, Sublayer]:
        """Return the sublayers of a layer in order, by the part of their names after the layer's, which may be ""."""

    def mistakes(self) -> Iterator[Mistake]:
        """Return what is wrong with the keys; a family adds its own."""
        yield from not_positive(self, ("width", "depth", "num_heads", "vocabulary", "sequence", "window"))
        if self.num_heads >= 1 and self.width % self.num_heads:
            yield Mistake(
                where="model.width", found=str(self.width), allowed=f"a multiple of the {self.num_heads} heads"
            )
        if self.window is not None and self.window > self.sequence:
            yield Mistake(
                where="model.window",
                found=str(self.window),
                allowed=f"at most the sequence, {self.sequence}",
                next_step="leave it out for full attention",
            )

    def embedding_weights(self) -> Iterator[WeightSpec]:
        """Return the weights of the first chunk besides its layers."""
        yield normal_weight("embedding.weight", (self.vocabulary, self.width), split=0)

    def layer_weights(self, layer: int) -> Iterator[WeightSpec]:
        """Return the weights of one layer."""
        for part, sublayer in self.sublayers(layer).items():
            yield from sublayer.weights(joined(f"layers.{layer}", part))

    def head_weights(self) -> Iterator[WeightSpec]:
        """Return the weights of the last chunk besides its layers."""
        yield from self.norm.weights("last_norm")
        yield normal_weight("head.weight", (self.width, self.vocabulary), split=1)

    @property
    def head_width(self) -> int:
        """Features of one attention head."""
        return self.width // self.num_heads

    @property
    def attention_span(self) -> int:
        """Most tokens that a token attends to."""
        return self.sequence if self.window is None else self.window

    @property
    def output_deviation(self) -> float:
        """Standard deviation of matrices that add to the activations, whose sum over layers so keeps its size."""
        return DEVIATION / math.sqrt(2 * self.depth)  # which every machine rounds alike


def joined(name: str, part: str) -> str:
    """Return the name of a part of something, or its own where the part has none."""
    return f"{name}.{part}" if part else name


def not_positive(spec: ModelSpec, names: Iterable[str]) -> Iterator[Mistake]:
    """Return the keys that are below 1."""
    for name in names:
        value = getattr(spec, name)
        if value is not None and value < 1:
            yield Mistake(where=f"model.{name}", found=str(value), allowed="1 or more")


def unpaired_features(spec: ModelSpec) -> Iterator[Mistake]:
    """Return the mistake of heads whose features rotary positions cannot pair."""
    if spec.num_heads >= 1 and spec.width % spec.num_heads == 0 and spec.head_width % 2:
        yield Mistake(
            where="model.width",
            found=f"heads of {spec.head_width} features",
            allowed="an even number, since rotary positions rotate pairs",
        )


def num_parameters(spec: ModelSpec) -> int:
    """Return the number of weights: the head has its own, and there is a norm before it."""
    layers = (weight for layer in range(spec.depth) for weight in spec.layer_weights(layer))
    return sum(math.prod(weight.shape) for weight in (*spec.embedding_weights(), *layers, *spec.head_weights()))


def flops_per_token(spec: ModelSpec) -> float:
    """Return the operations of a token in both passes: for a GPT 72 l h^2 (1 + s/(6 h) + V/(12 h l)).

    Where there is a window it takes the place of s. MegaScale's own figures count the window's operations only; the
    window is not published. Of a mixture of experts the ones that a token is routed to count.
    """
    layers = sum(sublayer.flops() for sublayer in _all_sublayers(spec))
    return float(FORWARD_AND_BACKWARD * (layers + _head_flops(spec)))


def dispatched_flops_per_token(spec: ModelSpec) -> float:
    """Return the operations of a token's products in both passes, with what a fixed capacity of experts adds."""
    layers = sum(sublayer.dispatched_flops() for sublayer in _all_sublayers(spec))
    return FORWARD_AND_BACKWARD * (layers + _head_flops(spec))


def flops_per_token_recomputed(spec: ModelSpec) -> float:
    """Return the operations of a token with each layer's forward pass run twice.

    For a GPT 96 l h^2 (1 + s/(6 h) + V/(16 l h)).
    """
    forward = flops_per_token(spec) / FORWARD_AND_BACKWARD
    return flops_per_token(spec) + forward - _head_flops(spec)


def model_flops_utilisation(spec: ModelSpec, *, tokens_per_s: float, num_gpus: int, peak_flops_per_s: float) -> float:
    """Return the share of the GPUs' peak that the model's operations take (MFU), 0 to 1."""
    return tokens_per_s * flops_per_token(spec) / (num_gpus * peak_flops_per_s)


def _all_sublayers(spec: ModelSpec) -> Iterator[Sublayer]:
    for layer in range(spec.depth):
        yield from spec.sublayers(layer).values()


def _head_flops(spec: ModelSpec) -> int:
    return 2 * spec.width * spec.vocabulary
