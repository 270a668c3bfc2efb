"""Where each tensor of a Hugging Face checkpoint lies in this trainer's weights.

A block is a box of one of our weights and a range of one of their tensors with the same numbers: their dimensions are
ours in another order, some of ours merged into one of theirs. Queries and keys of Llama and Mixtral need no other order
of features: both sides rotate feature i with feature i + E/2. (Meta's own files rotate neighbours; converted to this
form, their rows have been permuted.)

Source: Hugging Face transformers 5, `modeling_llama`, `modeling_mistral`, `modeling_mixtral`, `modeling_gpt2`.
Left out: a head that shares the embedding's weights; the parallel block and rotary positions of a GPT, for which no
architecture there has the same layer.

Letters of our dimensions: D width, V vocabulary, S sequence, H heads, G groups, J query heads of a group, I parts of a
column matrix, E features of a head, F features of the feed-forward part, X experts.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fabrictune.trainer_probe.model.gpt import FEED_FORWARD, QUERY_KEY_VALUE, GptSpec
from fabrictune.trainer_probe.model.llama import LlamaSpec
from fabrictune.trainer_probe.model.moe import MoeSpec
from fabrictune.trainer_probe.model.spec import ModelSpec

Box = tuple[tuple[int, int], ...]  # first and end of each dimension


@dataclass(frozen=True, kw_only=True)
class Block:
    """A box of our weight, and where their tensor has it."""

    weight: str
    box: Box
    name: str  # of their tensor
    shape: tuple[int, ...]  # of their whole tensor
    axes: tuple[tuple[int, ...], ...]  # for each of their dimensions, ours that it merges, the outermost first
    first: tuple[int, ...]  # where the box begins in their tensor

    def their_box(self, box: Box) -> Box:
        """Return where their tensor has a box within this one; only an outermost dimension may be a part."""
        result = []
        for merged, first in zip(self.axes, self.first, strict=True):
            inner = math.prod(self._size(axis) for axis in merged[1:])
            assert all(box[axis] == self.box[axis] for axis in merged[1:]), "a part of an inner dimension"
            begin, end = (place - self.box[merged[0]][0] for place in box[merged[0]])
            result.append((first + begin * inner, first + end * inner))
        return tuple(result)

    def _size(self, axis: int) -> int:
        return self.box[axis][1] - self.box[axis][0]


def blocks_of(spec: ModelSpec) -> tuple[Block, ...]:
    """Return the blocks of all weights of a model of a family in FAMILIES."""
    return tuple(_FAMILIES[spec.family](spec))


def _matrix(weight: str, name: str, rows: int, columns: int) -> Block:
    """Return the block of a whole matrix that is stored transposed, output features first."""
    box = ((0, rows), (0, columns))
    return Block(weight=weight, box=box, name=name, shape=(columns, rows), axes=((1,), (0,)), first=(0, 0))


def _same(weight: str, name: str, *shape: int) -> Block:
    """Return the block of a whole tensor that both sides store alike."""
    box, axes = tuple((0, size) for size in shape), tuple((axis,) for axis in range(len(shape)))
    return Block(weight=weight, box=box, name=name, shape=shape, axes=axes, first=(0,) * len(shape))


def _llama(spec: ModelSpec) -> Iterator[Block]:
    assert isinstance(spec, LlamaSpec)
    width = spec.width
    yield _same("embedding.weight", "model.embed_tokens.weight", spec.vocabulary, width)
    for layer in range(spec.depth):
        own, their = f"layers.{layer}", f"model.layers.{layer}"
        yield _same(f"{own}.attention.norm.gain", f"{their}.input_layernorm.weight", width)
        yield from _grouped_attention(spec, f"{own}.attention", f"{their}.self_attn")
        part = "experts" if isinstance(spec, MoeSpec) else "feed_forward"
        yield _same(f"{own}.{part}.norm.gain", f"{their}.post_attention_layernorm.weight", width)
        if isinstance(spec, MoeSpec):
            yield from _experts(spec, f"{own}.experts", f"{their}.block_sparse_moe")
        else:
            yield from _feed_forward(spec, f"{own}.feed_forward", f"{their}.mlp")
    yield _same("last_norm.gain", "model.norm.weight", width)
    yield _matrix("head.weight", "lm_head.weight", width, spec.vocabulary)


def _grouped_attention(spec: LlamaSpec, own: str, their: str) -> Iterator[Block]:
    """Yield the blocks of D G I E, whose first J parts are queries, and of G J E D."""
    groups, queries, features = spec.num_key_value_heads, spec.group_size, spec.head_width
    width, parts = spec.width, {"q": (0, queries), "k": (queries, queries + 1), "v": (queries + 1, queries + 2)}
    for letter, (begin, end) in parts.items():
        yield Block(
            weight=f"{own}.input.weight",
            box=((0, width), (0, groups), (begin, end), (0, features)),
            name=f"{their}.{letter}_proj.weight",
            shape=(groups * (end - begin) * features, width),
            axes=((1, 2, 3), (0,)),
            first=(0, 0),
        )
    yield Block(
        weight=f"{own}.output.weight",
        box=((0, groups), (0, queries), (0, features), (0, width)),
        name=f"{their}.o_proj.weight",
        shape=(width, width),
        axes=((3,), (0, 1, 2)),
        first=(0, 0),
    )


def _feed_forward(spec: LlamaSpec, own: str, their: str) -> Iterator[Block]:
    """Yield the blocks of D 2 F, gate and up, and of F D."""
    width, features = spec.width, spec.feed_forward_width
    for number, name in enumerate(("gate", "up")):
        yield Block(
            weight=f"{own}.input.weight",
            box=((0, width), (number, number + 1), (0, features)),
            name=f"{their}.{name}_proj.weight",
            shape=(features, width),
            axes=((2,), (0,)),
            first=(0, 0),
        )
    yield _matrix(f"{own}.output.weight", f"{their}.down_proj.weight", features, width)


def _experts(spec: MoeSpec, own: str, their: str) -> Iterator[Block]:
    """Yield the blocks of the router, D X, and for each expert of X D 2 F and X F D."""
    width, features = spec.width, spec.feed_forward_width
    yield _matrix(f"{own}.router.weight", f"{their}.gate.weight", width, spec.num_experts)
    for expert in range(spec.num_experts):
        for number, name in enumerate(("w1", "w3")):
            yield Block(
                weight=f"{own}.input.weight",
                box=((expert, expert + 1), (0, width), (number, number + 1), (0, features)),
                name=f"{their}.experts.{expert}.{name}.weight",
                shape=(features, width),
                axes=((3,), (1,)),
                first=(0, 0),
            )
        yield Block(
            weight=f"{own}.output.weight",
            box=((expert, expert + 1), (0, features), (0, width)),
            name=f"{their}.experts.{expert}.w2.weight",
            shape=(width, features),
            axes=((2,), (1,)),
            first=(0, 0),
        )


def _gpt(spec: ModelSpec) -> Iterator[Block]:
    """Yield GPT-2's blocks; its matrices have input features first, as ours have."""
    assert isinstance(spec, GptSpec)
    width, vocabulary = spec.width, spec.vocabulary
    yield _same("embedding.weight", "transformer.wte.weight", vocabulary, width)
    yield _same("positions.weight", "transformer.wpe.weight", spec.sequence, width)
    for layer in range(spec.depth):
        own, their = f"layers.{layer}", f"transformer.h.{layer}"
        yield from _norm(f"{own}.attention.norm", f"{their}.ln_1", width)
        yield from _heads(spec, f"{own}.attention", f"{their}.attn")
        yield from _norm(f"{own}.feed_forward.norm", f"{their}.ln_2", width)
        yield from _hidden(spec, f"{own}.feed_forward", f"{their}.mlp")
    yield from _norm("last_norm", "transformer.ln_f", width)
    yield _matrix("head.weight", "lm_head.weight", width, vocabulary)


def _norm(own: str, their: str, width: int) -> Iterator[Block]:
    yield _same(f"{own}.gain", f"{their}.weight", width)
    yield _same(f"{own}.shift", f"{their}.bias", width)


def _heads(spec: GptSpec, own: str, their: str) -> Iterator[Block]:
    """Yield the blocks of D H 3 E and H 3 E, where theirs have all queries, all keys, all values; and of H 1 E D."""
    width, heads, features = spec.width, spec.num_heads, spec.head_width
    for number in range(QUERY_KEY_VALUE):
        part, first = (number, number + 1), number * width
        yield Block(
            weight=f"{own}.input.weight",
            box=((0, width), (0, heads), part, (0, features)),
            name=f"{their}.c_attn.weight",
            shape=(width, QUERY_KEY_VALUE * width),
            axes=((0,), (1, 3)),
            first=(0, first),
        )
        yield Block(
            weight=f"{own}.input.bias",
            box=((0, heads), part, (0, features)),
            name=f"{their}.c_attn.bias",
            shape=(QUERY_KEY_VALUE * width,),
            axes=((0, 2),),
            first=(first,),
        )
    yield from _row_matrix(spec, own, f"{their}.c_proj", 1)


def _hidden(spec: GptSpec, own: str, their: str) -> Iterator[Block]:
    """Yield the blocks of D H 4 E, H 4 E, H 4 E D and D: hidden features have no order of their own."""
    width, heads, features = spec.width, spec.num_heads, spec.head_width
    hidden = ((0, heads), (0, FEED_FORWARD), (0, features))
    yield Block(
        weight=f"{own}.input.weight",
        box=((0, width), *hidden),
        name=f"{their}.c_fc.weight",
        shape=(width, FEED_FORWARD * width),
        axes=((0,), (1, 2, 3)),
        first=(0, 0),
    )
    yield Block(
        weight=f"{own}.input.bias",
        box=hidden,
        name=f"{their}.c_fc.bias",
        shape=(FEED_FORWARD * width,),
        axes=((0, 1, 2),),
        first=(0,),
    )
    yield from _row_matrix(spec, own, f"{their}.c_proj", FEED_FORWARD)


def _row_matrix(spec: GptSpec, own: str, their: str, parts: int) -> Iterator[Block]:
    yield Block(
        weight=f"{own}.output.weight",
        box=((0, spec.num_heads), (0, parts), (0, spec.head_width), (0, spec.width)),
        name=f"{their}.weight",
        shape=(parts * spec.width, spec.width),
        axes=((0, 1, 2), (3,)),
        first=(0, 0),
    )
    yield _same(f"{own}.output.bias", f"{their}.bias", spec.width)


_FAMILIES: Mapping[str, Callable[[ModelSpec], Iterator[Block]]] = {"llama": _llama, "moe": _llama, "gpt": _gpt}
FAMILIES = tuple(_FAMILIES)
