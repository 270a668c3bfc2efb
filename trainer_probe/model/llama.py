"""Llama: RMS norms, SwiGLU, grouped-query attention with rotary positions, no biases.

y = x + Attention(Norm(x)), then z = y + FeedForward(Norm(y)). A key and a value head serve a group of query heads; a
group's queries, key and value lie together in one column matrix, so that a rank's share is whole groups.

Shapes: P a rank's part of the sequence, S the whole, B batch, D width, G groups of this rank, J query heads of a group,
E features of a head, F this rank's features of the feed-forward part.

Source: Touvron et al., "LLaMA: open and efficient foundation language models", 2023; Touvron et al., "Llama 2: open
foundation and fine-tuned chat models", 2023, Table 1 and appendix A.2.1; Grattafiori et al., "The Llama 3 herd of
models", 2024, Table 3 (presets, with the vocabulary of the published weights, and the 8,192 tokens of most of their
training); Ainslie et al., "GQA: training generalized multi-query transformer models from multi-head checkpoints", 2023.
Left out: positions rescaled for sequences longer than those trained on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fabrictune.foundation.errors import Mistake
from fabrictune.trainer_probe.model.attention_costs import (
    attention_flops,
    banded_bytes,
    is_banded,
    log_sum_bytes,
    rotary_factors_bytes,
)
from fabrictune.trainer_probe.model.norms import RmsNorm
from fabrictune.trainer_probe.model.spec import ModelSpec, not_positive, unpaired_features
from fabrictune.trainer_probe.model.sublayers import KEY_AND_VALUE, Share, Sublayer, Volumes, pair_volumes, ring_volumes
from fabrictune.trainer_probe.model.weights import Weights, WeightSpec, normal_weight

if TYPE_CHECKING:
    import torch

    from fabrictune.trainer_probe.model.operators import Operators

GATE_AND_UP = 2


@dataclass(frozen=True, kw_only=True)
class LlamaSpec(ModelSpec):
    """Llama: RMS norms, SwiGLU, grouped-query attention, rotary positions."""

    family: ClassVar[str] = "llama"
    split_keys: ClassVar[tuple[str, ...]] = ("num_key_value_heads", "feed_forward_width", "vocabulary")

    num_key_value_heads: int = field(
        default=2, metadata={"help": "heads of keys and values, each for a group of query heads"}
    )
    feed_forward_width: int = field(default=688, metadata={"help": "features of the feed-forward part"})
    rotary_base: float = field(default=10_000.0, metadata={"help": "base of the wavelengths of rotary positions"})
    norm_epsilon: float = field(default=1e-5, metadata={"help": "added to the mean square in a norm"})

    @property
    def norm(self) -> RmsNorm:
        """RMS norms."""
        return RmsNorm(self.width, self.norm_epsilon)

    @property
    def group_size(self) -> int:
        """Query heads of a group."""
        return self.num_heads // self.num_key_value_heads

    def sublayers(self, layer: int) -> Mapping[str, Sublayer]:
        """Return attention and the feed-forward part; all layers are alike."""
        return {"attention": GroupedQueryAttention(self), "feed_forward": FeedForward(self)}

    def mistakes(self) -> Iterator[Mistake]:
        """Return what is wrong with the keys."""
        yield from super().mistakes()
        yield from unpaired_features(self)
        yield from not_positive(self, ("num_key_value_heads", "feed_forward_width"))
        if self.num_key_value_heads >= 1 and self.num_heads % self.num_key_value_heads:
            yield Mistake(
                where="model.num_key_value_heads",
                found=str(self.num_key_value_heads),
                allowed=f"a divisor of the {self.num_heads} heads",
            )
        for name in ("rotary_base", "norm_epsilon"):
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                yield Mistake(where=f"model.{name}", found=f"{value:g}", allowed="a number above 0")


def _llama3(width: int, depth: int, num_heads: int, feed_forward_width: int) -> LlamaSpec:
    return LlamaSpec(
        width=width,
        depth=depth,
        num_heads=num_heads,
        num_key_value_heads=8,
        feed_forward_width=feed_forward_width,
        vocabulary=128_256,
        sequence=8192,
        rotary_base=500_000.0,
    )


PRESETS: dict[str, LlamaSpec] = {
    "llama-tiny": LlamaSpec(
        width=64, depth=4, num_heads=4, num_key_value_heads=2, feed_forward_width=176, vocabulary=256, sequence=64
    ),
    "llama-7b": LlamaSpec(  # Llama 2
        width=4096,
        depth=32,
        num_heads=32,
        num_key_value_heads=32,
        feed_forward_width=11_008,
        vocabulary=32_000,
        sequence=4096,
    ),
    "llama-8b": _llama3(4096, 32, 32, 14_336),
    "llama-70b": _llama3(8192, 80, 64, 28_672),
    "llama-405b": _llama3(16_384, 126, 128, 53_248),
}


@dataclass(frozen=True)
class GroupedQueryAttention(Sublayer):
    """Causal attention in which each head of keys and values serves a group of query heads."""

    spec: LlamaSpec

    def weights(self, name: str) -> Iterator[WeightSpec]:
        """Return the norm's weights and both matrices."""
        spec = self.spec
        parts = spec.group_size + KEY_AND_VALUE
        yield from spec.norm.weights(f"{name}.norm")
        yield normal_weight(
            f"{name}.input.weight", (spec.width, spec.num_key_value_heads, parts, spec.head_width), split=1
        )
        yield normal_weight(
            f"{name}.output.weight",
            (spec.num_key_value_heads, spec.group_size, spec.head_width, spec.width),
            split=0,
            deviation=spec.output_deviation,
        )

    def run(
        self, weights: Weights, operators: "Operators", x_PBD: "torch.Tensor", name: str, tag: str
    ) -> "torch.Tensor":
        """Return what is added to the activations, P B D."""
        spec, weight_DGIE = self.spec, weights[f"{name}.input.weight"]
        normal_PBD = spec.norm.run(weights, f"{name}.norm", x_PBD)
        product = operators.column_linear(normal_PBD, weight_DGIE.flatten(1), None, f"{tag}.input")
        parts_SBGIE = product.view(*product.shape[:2], *weight_DGIE.shape[1:])
        query_SBGJE, key_SBGE, value_SBGE = parts_SBGIE.split_with_sizes([spec.group_size, 1, 1], 3)
        result_SBHE = operators.context.attend(
            query_SBGJE, key_SBGE.squeeze(3), value_SBGE.squeeze(3), spec.window, spec.rotary_base, tag
        )
        weight_OD = weights[f"{name}.output.weight"].flatten(0, 2)
        return operators.row_linear(result_SBHE.flatten(2), weight_OD, None, f"{tag}.output")

    def flops(self) -> int:
        """Return 4 h^2 (1 + g/a) + 4 h times the span, of g heads of keys and values."""
        return self.product_flops() + attention_flops(self.spec)

    def product_flops(self) -> int:
        """Return 4 h^2 (1 + g/a)."""
        spec = self.spec
        return 2 * spec.width * (2 * spec.width + KEY_AND_VALUE * spec.num_key_value_heads * spec.head_width)

    def volumes(self, share: Share) -> Volumes:
        """Return the bytes of a pair of products, and of the ring."""
        spec = self.spec
        return pair_volumes(share, spec.width) + ring_volumes(share, spec.num_key_value_heads * spec.head_width)

    def kept_bytes(self, share: Share) -> int:
        """Return the result, and either the band's copies or queries, keys and values, before and after turning.

        Computed again, attention keeps them from before only.
        """
        spec = self.spec
        query = share.part * spec.width * share.element_bytes
        if share.recompute == "selective":
            return spec.norm.kept_bytes(share) + 2 * query + KEY_AND_VALUE * query // spec.group_size
        kept = spec.norm.kept_bytes(share) + rotary_factors_bytes(spec, share)
        if is_banded(spec, share):
            return kept + query + banded_bytes(spec, share, spec.num_heads)
        key = query // spec.group_size
        return kept + 3 * query + 3 * key + log_sum_bytes(spec, share, spec.num_heads)

    def product_bytes(self, share: Share) -> int:
        """Return the inputs of both products, and their outputs' gradients."""
        query = share.part * self.spec.width * share.element_bytes
        return 4 * query + KEY_AND_VALUE * query // self.spec.group_size


@dataclass(frozen=True)
class FeedForward(Sublayer):
    """SwiGLU: Down(silu(Gate(x)) * Up(x))."""

    spec: LlamaSpec

    def weights(self, name: str) -> Iterator[WeightSpec]:
        """Return the norm's weights, the matrix of gate and up, and that of down."""
        spec = self.spec
        yield from spec.norm.weights(f"{name}.norm")
        yield normal_weight(f"{name}.input.weight", (spec.width, GATE_AND_UP, spec.feed_forward_width), split=2)
        yield normal_weight(
            f"{name}.output.weight",
            (spec.feed_forward_width, spec.width),
            split=0,
            deviation=spec.output_deviation,
        )

    def run(
        self, weights: Weights, operators: "Operators", x_PBD: "torch.Tensor", name: str, tag: str
    ) -> "torch.Tensor":
        """Return what is added to the activations, P B D."""
        from fabrictune.trainer_probe.model.functions import swiglu

        normal_PBD = self.spec.norm.run(weights, f"{name}.norm", x_PBD)
        weight_D2F = weights[f"{name}.input.weight"]
        product = operators.column_linear(normal_PBD, weight_D2F.flatten(1), None, f"{tag}.input")
        gate_SBF, up_SBF = product.view(*product.shape[:2], *weight_D2F.shape[1:]).unbind(2)
        return operators.row_linear(swiglu(gate_SBF, up_SBF), weights[f"{name}.output.weight"], None, f"{tag}.output")

    def flops(self) -> int:
        """Return 6 h f, f the features of this part."""
        return self.product_flops()

    def product_flops(self) -> int:
        """Return 6 h f."""
        return 2 * (GATE_AND_UP + 1) * self.spec.width * self.spec.feed_forward_width

    def volumes(self, share: Share) -> Volumes:
        """Return the bytes of a pair of products."""
        return pair_volumes(share, self.spec.width)

    def kept_bytes(self, share: Share) -> int:
        """Return gate, up, the gate's silu, and the product."""
        hidden = share.part * self.spec.feed_forward_width * share.element_bytes
        return self.spec.norm.kept_bytes(share) + (GATE_AND_UP + 2) * hidden

    def product_bytes(self, share: Share) -> int:
        """Return the inputs of both products, and their outputs' gradients."""
        features = 2 * self.spec.width + (GATE_AND_UP + 1) * self.spec.feed_forward_width
        return share.part * features * share.element_bytes
