"""The weights of a GPT and of its chunks: names, shapes, initial distribution, and the tensor-parallel split.

Weights that belong to heads have a dimension for them, and feed-forward features are divided among heads too, so that
a rank's share is always whole heads.

Source: Radford et al., "Language models are unsupervised multitask learners" (GPT-2), 2019, section 2.3, for the
initial weights.

Shapes: D width, H heads, E features of a head, V vocabulary, S sequence.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fabrictune.trainer_probe.model.spec import FEED_FORWARD, ModelSpec

if TYPE_CHECKING:
    import torch

Start = Literal["normal", "ones", "zeros"]

DEVIATION = 0.02  # of initial weights, the same for the embedding and for the layers that add to it


@dataclass(frozen=True, kw_only=True)
class WeightSpec:
    """One weight: its whole shape, and its split over a tensor-parallel group."""

    name: str
    shape: tuple[int, ...]
    split: int | None  # dimension that is split equally over ranks; None where every rank has the whole
    start: Start
    scale: float = 0.0  # standard deviation where the start is normal

    @property
    def decays(self) -> bool:
        """Whether weight decay applies: to matrices and embeddings, not to biases, gains and shifts."""
        return self.start == "normal"

    def local_shape(self, tp: int) -> tuple[int, ...]:
        """Return the shape of one rank's part."""
        return tuple(size // tp if dimension == self.split else size for dimension, size in enumerate(self.shape))

    def local_part(self, whole: "torch.Tensor", tp: int, place: int) -> "torch.Tensor":
        """Return the part of rank `place` of `tp`."""
        return whole if self.split is None else whole.chunk(tp, self.split)[place]


def embedding_weights(spec: ModelSpec) -> Iterator[WeightSpec]:
    """Return the weights of the first chunk besides its layers."""
    yield _normal("embedding.weight", (spec.vocabulary, spec.width), split=0, scale=DEVIATION)
    if spec.positions == "learned":
        yield _normal("positions.weight", (spec.sequence, spec.width), split=0, scale=DEVIATION)


def head_weights(spec: ModelSpec) -> Iterator[WeightSpec]:
    """Return the weights of the last chunk besides its layers."""
    yield from _norm("last_norm", spec.width)
    yield _normal("head.weight", (spec.width, spec.vocabulary), split=1, scale=DEVIATION)


def layer_weights(spec: ModelSpec, layer: int) -> Iterator[WeightSpec]:
    """Return the weights of one layer.

    Each pair of a column and a row matrix reads `parts` of E features a head. The serial block has two pairs (queries,
    keys, values to attention's output; the feed-forward part); the parallel block has both in one.
    """
    name = f"layers.{layer}"
    if spec.block == "parallel":
        yield from _norm(f"{name}.norm", spec.width)
        yield from _pair(spec, name, inputs=3 + FEED_FORWARD, outputs=1 + FEED_FORWARD)
    else:
        yield from _norm(f"{name}.attention.norm", spec.width)
        yield from _pair(spec, f"{name}.attention", inputs=3, outputs=1)
        yield from _norm(f"{name}.feed_forward.norm", spec.width)
        yield from _pair(spec, f"{name}.feed_forward", inputs=FEED_FORWARD, outputs=FEED_FORWARD)


def _pair(spec: ModelSpec, name: str, *, inputs: int, outputs: int) -> Iterator[WeightSpec]:
    """Return a column matrix with its bias, and a row matrix with a bias that every rank has."""
    heads, features, width = spec.num_heads, spec.head_width, spec.width
    yield _normal(f"{name}.input.weight", (width, heads, inputs, features), split=1, scale=DEVIATION)
    yield WeightSpec(name=f"{name}.input.bias", shape=(heads, inputs, features), split=0, start="zeros")
    scale = DEVIATION * (2 * spec.depth) ** -0.5  # so that the sum over layers keeps its size
    yield _normal(f"{name}.output.weight", (heads, outputs, features, width), split=0, scale=scale)
    yield WeightSpec(name=f"{name}.output.bias", shape=(width,), split=None, start="zeros")


def _norm(name: str, width: int) -> Iterator[WeightSpec]:
    yield WeightSpec(name=f"{name}.gain", shape=(width,), split=None, start="ones")
    yield WeightSpec(name=f"{name}.shift", shape=(width,), split=None, start="zeros")


def _normal(name: str, shape: tuple[int, ...], *, split: int, scale: float) -> WeightSpec:
    return WeightSpec(name=name, shape=shape, split=split, start="normal", scale=scale)


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
        """Whether its input is tokens."""
        return self.number == 0

    @property
    def is_last(self) -> bool:
        """Whether its output is the loss."""
        return self.number == self.num_chunks - 1

    def weights(self) -> list[WeightSpec]:
        """Return its weights in order of use."""
        return [
            *(embedding_weights(self.model) if self.is_first else ()),
            *(weight for layer in self.layers for weight in layer_weights(self.model, layer)),
            *(head_weights(self.model) if self.is_last else ()),
        ]
