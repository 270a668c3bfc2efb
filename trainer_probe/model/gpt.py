"""GPT: layer norms, GELU, biases; the serial block, or the parallel one that large models are trained faster with.

Serial: y = x + Attention(Norm(x)), then z = y + FeedForward(Norm(y)). Parallel: z = x + Attention(Norm(x)) +
FeedForward(Norm(x)), whose two column matrices are one, as are its two row matrices: half the collectives of tensor
parallelism, on products twice as large. Feed-forward features are divided among heads too, so that both matrices of a
pair are stored by heads.

Shapes: P a rank's part of the sequence, S the whole, B batch, D width, H heads of this rank, E features of a head, I
parts of E features that a column matrix gives each head.

Source: Radford et al., "Language models are unsupervised multitask learners" (GPT-2), 2019; Wang and Komatsuzaki,
GPT-J-6B, 2021; MegaScale (NSDI'24), section 3.1 (parallel block, sliding-window attention), Table 1 and section 6.1
(presets; the window it used is not published); Narayanan et al., SC 2021, equation 2.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from fabrictune.foundation.errors import Mistake, nearest_name
from fabrictune.trainer_probe.model.attention_costs import attention_flops, banded_bytes, is_banded, log_sum_bytes
from fabrictune.trainer_probe.model.attention_costs import rotary_factors_bytes as factors_bytes
from fabrictune.trainer_probe.model.norms import LayerNorm
from fabrictune.trainer_probe.model.spec import ModelSpec, Technique, unpaired_features
from fabrictune.trainer_probe.model.sublayers import Share, Sublayer, Volumes, pair_volumes, ring_volumes
from fabrictune.trainer_probe.model.weights import Weights, WeightSpec, normal_weight

if TYPE_CHECKING:
    import torch

    from fabrictune.trainer_probe.model.operators import Operators

Block = Literal["serial", "parallel"]
Positions = Literal["learned", "rotary"]

FEED_FORWARD = 4  # width of the feed-forward part over that of the model, as in every GPT the sources count
QUERY_KEY_VALUE = 3
EPSILON = 1e-5  # of the norms


@dataclass(frozen=True, kw_only=True)
class GptSpec(ModelSpec):
    """GPT: layer norms, GELU, biases, learned or rotary positions."""

    family: ClassVar[str] = "gpt"
    techniques: ClassVar[tuple[Technique, ...]] = (
        Technique(name="parallel block", plain_name="serial block", key="block", plain="serial", used="parallel"),
    )

    block: Block = field(
        default="parallel", metadata={"help": "serial or parallel: feed-forward after attention, or beside it"}
    )
    positions: Positions = field(
        default="learned", metadata={"help": "learned or rotary: a vector per place, or rotated queries and keys"}
    )

    @property
    def norm(self) -> LayerNorm:
        """Layer norms."""
        return LayerNorm(self.width, EPSILON)

    def sublayers(self, layer: int) -> Mapping[str, Sublayer]:
        """Return attention and the feed-forward part, or both as one; all layers are alike."""
        if self.block == "parallel":
            return {"": ParallelBlock(self)}
        return {"attention": Attention(self), "feed_forward": FeedForward(self)}

    def embedding_weights(self) -> Iterator[WeightSpec]:
        """Return the weights of the first chunk besides its layers, with a vector per place where those are learned."""
        yield from super().embedding_weights()
        if self.positions == "learned":
            yield normal_weight("positions.weight", (self.sequence, self.width), split=0)

    def mistakes(self) -> Iterator[Mistake]:
        """Return what is wrong with the keys."""
        yield from super().mistakes()
        if self.positions == "rotary":
            yield from unpaired_features(self)
        kinds: tuple[tuple[str, str, tuple[str, ...]], ...] = (
            ("block", self.block, get_args(Block)),
            ("positions", self.positions, get_args(Positions)),
        )
        for name, found, allowed in kinds:
            if found not in allowed:
                yield Mistake(
                    where=f"model.{name}",
                    found=repr(found),
                    allowed=", ".join(allowed),
                    nearest=nearest_name(found, allowed),
                )


PRESETS: dict[str, GptSpec] = {
    "tiny": GptSpec(width=64, depth=4, num_heads=4, vocabulary=256, sequence=64, window=16),
    "small": GptSpec(width=256, depth=4, num_heads=4, vocabulary=1024, sequence=128, window=64),
    "175B": GptSpec(width=12288, depth=96, num_heads=128, vocabulary=64_000, sequence=2048),
    "530B": GptSpec(width=20480, depth=105, num_heads=160, vocabulary=64_000, sequence=2048),
}


def published_parameters(spec: ModelSpec) -> int:
    """Return 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)), the papers' count of a GPT.

    It counts the serial block with learned positions, the embedding shared with the head, and no last norm.
    """
    width, depth = spec.width, spec.depth
    return 12 * depth * width**2 + 13 * depth * width + (spec.vocabulary + spec.sequence) * width


@dataclass(frozen=True)
class _Pair(Sublayer):
    """A norm, a column matrix that gives each head I parts of its features, and a row matrix that takes O of them."""

    spec: GptSpec
    num_inputs: ClassVar[int]
    num_outputs: ClassVar[int]

    def weights(self, name: str) -> Iterator[WeightSpec]:
        """Return the norm's weights, and both matrices with a bias; every rank has the row matrix's bias."""
        heads, features, width = self.spec.num_heads, self.spec.head_width, self.spec.width
        yield from self.spec.norm.weights(f"{name}.norm")
        yield normal_weight(f"{name}.input.weight", (width, heads, self.num_inputs, features), split=1)
        yield WeightSpec(name=f"{name}.input.bias", shape=(heads, self.num_inputs, features), split=0, start="zeros")
        yield normal_weight(
            f"{name}.output.weight",
            (heads, self.num_outputs, features, width),
            split=0,
            deviation=self.spec.output_deviation,
        )
        yield WeightSpec(name=f"{name}.output.bias", shape=(width,), split=None, start="zeros")

    def volumes(self, share: Share) -> Volumes:
        """Return the bytes of a pair of products."""
        return pair_volumes(share, self.spec.width)

    def _read(
        self, weights: Weights, operators: "Operators", x_PBD: "torch.Tensor", name: str, tag: str
    ) -> "torch.Tensor":
        """Return the column product of the normalised activations, by head and part: S B H I E."""
        normal_PBD = self.spec.norm.run(weights, f"{name}.norm", x_PBD)
        weight_DHIE, bias_HIE = weights[f"{name}.input.weight"], weights[f"{name}.input.bias"]
        product = operators.column_linear(normal_PBD, weight_DHIE.flatten(1), bias_HIE.flatten(), f"{tag}.input")
        return product.view(*product.shape[:2], *bias_HIE.shape)

    def _write(
        self, weights: Weights, operators: "Operators", x_SBHIE: "torch.Tensor", name: str, tag: str
    ) -> "torch.Tensor":
        """Return the row product, P B D."""
        weight_OD = weights[f"{name}.output.weight"].flatten(0, 2)
        return operators.row_linear(x_SBHIE.flatten(2), weight_OD, weights[f"{name}.output.bias"], f"{tag}.output")

    def _attend(self, operators: "Operators", parts_SBH3E: "torch.Tensor", tag: str) -> "torch.Tensor":
        """Return attention's result from queries, keys and values, S B H 1 E."""
        from fabrictune.trainer_probe.model.attention import BASE

        base = BASE if self.spec.positions == "rotary" else None
        query, key, value = parts_SBH3E.unbind(3)
        return operators.context.attend(query, key, value, self.spec.window, base, tag).unsqueeze(3)

    def product_bytes(self, share: Share) -> int:
        """Return the inputs of both products, and their outputs' gradients."""
        units = 1 + self.num_inputs + self.num_outputs + 1
        return units * share.part * self.spec.width * share.element_bytes

    def product_flops(self) -> int:
        """Return the operations of both products."""
        return 2 * (self.num_inputs + self.num_outputs) * self.spec.width**2

    def _kept_bytes(self, share: Share, units: int) -> int:
        """Return the bytes of `units` activations divided by tp, and of the norm."""
        activation = share.part * self.spec.width * share.element_bytes
        return self.spec.norm.kept_bytes(share) + units * activation

    def _attention_bytes(self, share: Share) -> int:
        """Return the bytes that attention keeps besides its inputs and its result, unless it is computed again."""
        if share.recompute == "selective":
            return 0
        spec, heads = self.spec, self.spec.num_heads
        kept = banded_bytes(spec, share, heads) if is_banded(spec, share) else log_sum_bytes(spec, share, heads)
        if spec.positions == "rotary":
            kept += factors_bytes(spec, share)
            if not is_banded(spec, share):
                kept += 2 * share.part * spec.width * share.element_bytes  # what has been turned
        return kept


class Attention(_Pair):
    """Attention of the serial block."""

    num_inputs = QUERY_KEY_VALUE
    num_outputs = 1

    def volumes(self, share: Share) -> Volumes:
        """Return the bytes of a pair of products, and of the ring."""
        return super().volumes(share) + ring_volumes(share, self.spec.width)

    def run(
        self, weights: Weights, operators: "Operators", x_PBD: "torch.Tensor", name: str, tag: str
    ) -> "torch.Tensor":
        """Return what is added to the activations, P B D."""
        parts_SBH3E = self._read(weights, operators, x_PBD, name, tag)
        return self._write(weights, operators, self._attend(operators, parts_SBH3E, tag), name, tag)

    def flops(self) -> int:
        """Return 8 h^2 + 4 h times the span."""
        return self.product_flops() + attention_flops(self.spec)

    def kept_bytes(self, share: Share) -> int:
        """Return the result, and without a band, which copies what it needs of them, queries, keys and values."""
        is_copied = is_banded(self.spec, share) and share.recompute != "selective"
        units = 1 + (0 if is_copied else QUERY_KEY_VALUE)
        return self._kept_bytes(share, units) + self._attention_bytes(share)


class FeedForward(_Pair):
    """The feed-forward part of the serial block."""

    num_inputs = FEED_FORWARD
    num_outputs = FEED_FORWARD

    def run(
        self, weights: Weights, operators: "Operators", x_PBD: "torch.Tensor", name: str, tag: str
    ) -> "torch.Tensor":
        """Return what is added to the activations, P B D."""
        from fabrictune.trainer_probe.model.functions import gelu

        hidden_SBHIE = gelu(self._read(weights, operators, x_PBD, name, tag))
        return self._write(weights, operators, hidden_SBHIE, name, tag)

    def flops(self) -> int:
        """Return 16 h^2."""
        return self.product_flops()

    def kept_bytes(self, share: Share) -> int:
        """Return the inputs of GELU, and its results."""
        return self._kept_bytes(share, 2 * FEED_FORWARD)


class ParallelBlock(_Pair):
    """Attention and the feed-forward part beside one another, by one pair of products."""

    num_inputs = QUERY_KEY_VALUE + FEED_FORWARD
    num_outputs = 1 + FEED_FORWARD

    def volumes(self, share: Share) -> Volumes:
        """Return the bytes of a pair of products, and of the ring."""
        return super().volumes(share) + ring_volumes(share, self.spec.width)

    def run(
        self, weights: Weights, operators: "Operators", x_PBD: "torch.Tensor", name: str, tag: str
    ) -> "torch.Tensor":
        """Return what is added to the activations, P B D."""
        import torch

        from fabrictune.trainer_probe.model.functions import gelu

        parts_SBHIE = self._read(weights, operators, x_PBD, name, tag)
        attended_SBH1E = self._attend(operators, parts_SBHIE[..., :QUERY_KEY_VALUE, :], tag)
        hidden_SBHIE = gelu(parts_SBHIE[..., QUERY_KEY_VALUE:, :])
        joined_SBHIE = torch.cat([attended_SBH1E, hidden_SBHIE], dim=3)
        return self._write(weights, operators, joined_SBHIE, name, tag)

    def flops(self) -> int:
        """Return 24 h^2 + 4 h times the span."""
        return self.product_flops() + attention_flops(self.spec)

    def kept_bytes(self, share: Share) -> int:
        """Return both parts' inputs and outputs, and without a band attention's result, from which they are joined."""
        keeps_result = not is_banded(self.spec, share) and share.recompute != "selective"
        units = self.num_inputs + self.num_outputs + (1 if keeps_result else 0)
        return self._kept_bytes(share, units) + self._attention_bytes(share)
