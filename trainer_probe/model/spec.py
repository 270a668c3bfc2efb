"""The shape of a GPT.

Source: MegaScale (NSDI'24), section 3.1, for the parallel block and sliding-window attention.
Left out: dropout; grouped-query attention; a head that shares the embedding's weights.
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
    """A GPT. Raises InputError with all that is wrong with the numbers."""

    width: int = field(default=256, metadata={"help": "features of a token between layers (h)"})
    depth: int = field(default=4, metadata={"help": "number of layers (l)"})
    num_heads: int = field(default=4, metadata={"help": "attention heads of a layer (a)"})
    vocabulary: int = field(default=1024, metadata={"help": "number of token ids (V)"})
    sequence: int = field(default=128, metadata={"help": "tokens of a sample (s)"})
    window: int | None = field(
        default=None, metadata={"help": "latest tokens that a token attends to, itself among them; all without it"}
    )
    block: Block = field(
        default="parallel", metadata={"help": "attention and feed-forward one after another, or beside"}
    )
    positions: Positions = field(default="learned", metadata={"help": "a vector a place, or queries and keys turned"})
    seed: int = field(default=0, metadata={"help": "seed of the first weights"})

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
        """Most tokens that one attends to."""
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
            allowed="an even number, since rotary positions turn pairs",
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
