"""The shape of a GPT, presets by name, and its parameters and operations counted as the papers do.

A multiplication and an addition are two operations; a backward pass costs two forward passes; only matrix products
count. Causality is not deducted: a token is charged for every place of its span, as the published figures are.

Source: MegaScale (NSDI'24), section 3.1 (parallel block, sliding-window attention), Table 1 and section 6.1 (presets;
the window it used is not published); Narayanan et al., "Efficient large-scale language model training on GPU clusters
using Megatron-LM", SC 2021, equations 2 and 3; Korthikanti et al., "Reducing activation recomputation in large
transformer models", appendix A.
Left out: dropout; grouped-query attention; a head that shares the embedding's weights, and what it would save.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

from fabrictune.foundation.errors import InputError, Mistake, nearest_name

Block = Literal["serial", "parallel"]
Positions = Literal["learned", "rotary"]

FEED_FORWARD = 4  # width of the feed-forward part over that of the model, as in every GPT the sources count


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """The shape of a GPT. Raises InputError with all mistakes."""

    width: int = field(default=256, metadata={"help": "features of a token between layers (h)"})
    depth: int = field(default=4, metadata={"help": "number of layers (l)"})
    num_heads: int = field(default=4, metadata={"help": "attention heads of a layer (a)"})
    vocabulary: int = field(default=1024, metadata={"help": "number of token ids (V)"})
    sequence: int = field(default=128, metadata={"help": "tokens of a sample (s)"})
    window: int | None = field(
        default=None, metadata={"help": "latest tokens that a token attends to, itself included; without it all"}
    )
    block: Block = field(
        default="parallel", metadata={"help": "serial or parallel: feed-forward after attention, or beside it"}
    )
    positions: Positions = field(
        default="learned", metadata={"help": "learned or rotary: a vector per place, or rotated queries and keys"}
    )
    seed: int = field(default=0, metadata={"help": "seed of the initial weights"})

    def __post_init__(self) -> None:
        mistakes = [*_not_positive(self), *_misfits(self), *_unknown_kinds(self)]
        if mistakes:
            raise InputError(*mistakes)

    @property
    def head_width(self) -> int:
        """Features of one attention head."""
        return self.width // self.num_heads

    @property
    def attention_span(self) -> int:
        """Most tokens that a token attends to."""
        return self.sequence if self.window is None else self.window


def _not_positive(spec: ModelSpec) -> Iterable[Mistake]:
    for name in ("width", "depth", "num_heads", "vocabulary", "sequence", "window"):
        value = getattr(spec, name)
        if value is not None and value < 1:
            yield Mistake(where=f"model.{name}", found=str(value), allowed="1 or more")


def _misfits(spec: ModelSpec) -> Iterable[Mistake]:
    if spec.num_heads >= 1 and spec.width % spec.num_heads:
        yield Mistake(where="model.width", found=str(spec.width), allowed=f"a multiple of the {spec.num_heads} heads")
    elif spec.num_heads >= 1 and spec.positions == "rotary" and spec.head_width % 2:
        yield Mistake(
            where="model.width",
            found=f"heads of {spec.head_width} features",
            allowed="an even number, since rotary positions rotate pairs",
        )
    if spec.window is not None and spec.window > spec.sequence:
        yield Mistake(
            where="model.window",
            found=str(spec.window),
            allowed=f"at most the sequence, {spec.sequence}",
            next_step="leave it out for full attention",
        )


def _unknown_kinds(spec: ModelSpec) -> Iterable[Mistake]:
    kinds: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("block", spec.block, get_args(Block)),
        ("positions", spec.positions, get_args(Positions)),
    )
    for name, found, allowed in kinds:
        if found not in allowed:
            yield Mistake(
                where=f"model.{name}",
                found=repr(found),
                allowed=", ".join(allowed),
                nearest=nearest_name(found, allowed),
            )


MODELS: dict[str, ModelSpec] = {
    "tiny": ModelSpec(width=64, depth=4, num_heads=4, vocabulary=256, sequence=64, window=16),
    "small": ModelSpec(width=256, depth=4, num_heads=4, vocabulary=1024, sequence=128, window=64),
    "175B": ModelSpec(width=12288, depth=96, num_heads=128, vocabulary=64_000, sequence=2048),
    "530B": ModelSpec(width=20480, depth=105, num_heads=160, vocabulary=64_000, sequence=2048),
}


FORWARD_AND_BACKWARD = 3  # forward passes


def published_parameters(spec: ModelSpec) -> int:
    """Return 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)), the papers' count.

    It counts the serial block with learned positions, the embedding shared with the head, and no last norm.
    """
    width, depth = spec.width, spec.depth
    return 12 * depth * width**2 + 13 * depth * width + (spec.vocabulary + spec.sequence) * width


def num_parameters(spec: ModelSpec) -> int:
    """Return the number of weights trained here: the head has its own, and there is a norm before it."""
    width = spec.width
    positions = spec.sequence * width if spec.positions == "learned" else 0
    return 2 * spec.vocabulary * width + positions + spec.depth * layer_parameters(spec) + 2 * width


def layer_parameters(spec: ModelSpec) -> int:
    """Return a layer's number of weights: 12 h^2 + 13 h, in the parallel block less a norm of 2 h and a bias of h."""
    width = spec.width
    matrices = (4 + 2 * FEED_FORWARD) * width**2
    input_biases = (3 + FEED_FORWARD) * width
    norm_and_output_bias = 3 * width * (2 if spec.block == "serial" else 1)
    return matrices + input_biases + norm_and_output_bias


def flops_per_token(spec: ModelSpec) -> float:
    """Return 72 l h^2 (1 + s/(6 h) + V/(12 h l)), with the window in place of s where there is one.

    MegaScale's own figures count the window's operations only; the window is not published.
    """
    products = 2 * (4 + 2 * FEED_FORWARD) * spec.width**2
    attention = 4 * spec.attention_span * spec.width  # scores, and the weighted sum of values
    head = 2 * spec.width * spec.vocabulary
    return float(FORWARD_AND_BACKWARD * (spec.depth * (products + attention) + head))


def flops_per_token_recomputed(spec: ModelSpec) -> float:
    """Return 96 l h^2 (1 + s/(6 h) + V/(16 l h)), with each layer's forward pass run twice."""
    head = 2 * spec.width * spec.vocabulary
    forward = flops_per_token(spec) / FORWARD_AND_BACKWARD
    return flops_per_token(spec) + forward - head


def model_flops_utilisation(spec: ModelSpec, *, tokens_per_s: float, num_gpus: int, peak_flops_per_s: float) -> float:
    """Return the share of the GPUs' peak that the model's operations take (MFU), 0 to 1."""
    return tokens_per_s * flops_per_token(spec) / (num_gpus * peak_flops_per_s)
