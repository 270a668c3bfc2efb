"""Entries of a file of tensors (safetensors): ranges of weights' elements, each with one tensor of the optimizer's.

An entry is named `weight/part/begin/tensor`: the weight, its tensor-parallel part, the first element in that part, and
`value` or a moment's name. It is one-dimensional and of at most MAX_ENTRY_BYTES, so that a reader that needs a few
elements reads little, and can check all that it has read. Wide types go first, so that every element is aligned; each
tensor's entries follow one another as on the rank, so that a rank's storage is copied in few long runs.

Source: Hugging Face safetensors, "Format": header size (8 B), JSON header, contiguous data.

Shapes: E elements of an entry.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from fabrictune.trainer_probe.state.pieces import Piece

MAX_ENTRY_BYTES = 4 * 2**20
ITEM_BYTES: Mapping[str, int] = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
DTYPES: Mapping[str, str] = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}  # torch's names
_NAMES = {name: code for code, name in DTYPES.items()}
_ALIGNMENT = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A tensor of a range of a weight's part, and its place in the file's data."""

    weight: str
    part: int
    begin: int
    num_elements: int
    tensor: str
    dtype: str  # safetensors' name
    offset: int  # bytes from the beginning of the data

    @property
    def name(self) -> str:
        """The name in the file."""
        return f"{self.weight}/{self.part}/{self.begin}/{self.tensor}"

    @property
    def num_bytes(self) -> int:
        """Size of the data."""
        return self.num_elements * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, kw_only=True)
class Range:
    """A range of a rank's piece, counted in the weight's part."""

    piece: "Piece"
    begin: int
    end: int
    is_own: bool = True  # this rank's to write, of all that hold it


@dataclass(frozen=True, kw_only=True)
class View:
    """An entry, its elements on the rank (E), and whether it is this rank's to write."""

    entry: Entry
    elements_E: "torch.Tensor"
    is_own: bool


def lay_out(ranges: Sequence[Range]) -> list[View]:
    """Return the entries of ranges in the order of the file."""
    views = [(name, span, span.piece.tensors[name]) for span in ranges for name in span.piece.tensors]
    views.sort(key=lambda view: (-view[2].element_size(), view[0]))  # stable: ranges stay in order
    result, offset = [], 0
    for name, span, tensor_E in views:
        step = MAX_ENTRY_BYTES // tensor_E.element_size()
        for begin in range(span.begin, span.end, step):
            end = min(begin + step, span.end)
            entry = Entry(
                weight=span.piece.weight,
                part=span.piece.part,
                begin=begin,
                num_elements=end - begin,
                tensor=name,
                dtype=_NAMES[str(tensor_E.dtype).removeprefix("torch.")],
                offset=offset,
            )
            elements_E = tensor_E[begin - span.piece.begin : end - span.piece.begin]
            result.append(View(entry=entry, elements_E=elements_E, is_own=span.is_own))
            offset += entry.num_bytes
    return result


def data_bytes(entries: Iterable[Entry]) -> int:
    """Return the size of the data of a file."""
    return max((entry.offset + entry.num_bytes for entry in entries), default=0)


def header(entries: Sequence[Entry], metadata: Mapping[str, str]) -> bytes:
    """Return what a file of these entries begins with: the size of the header, and the header."""
    content: dict[str, object] = {"__metadata__": dict(metadata)}
    for entry in entries:
        place = [entry.offset, entry.offset + entry.num_bytes]
        content[entry.name] = {"dtype": entry.dtype, "shape": [entry.num_elements], "data_offsets": place}
    text = json.dumps(content, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def runs(views: Sequence[View]) -> Iterator[tuple[int, "torch.Tensor"]]:
    """Yield the elements of entries with the byte offset of the first, those that follow one another as one."""
    begin = 0
    while begin < len(views):
        first_E, count, end = views[begin].elements_E, 0, begin
        while end < len(views) and _follows(first_E, count, views[end].elements_E):
            count += len(views[end].elements_E)
            end += 1
        yield views[begin].entry.offset, first_E.as_strided((count,), (1,))
        begin = end


def _follows(first_E: "torch.Tensor", count: int, other_E: "torch.Tensor") -> bool:
    """Whether a tensor's elements lie behind `count` elements from the first one of another."""
    is_same = first_E.dtype == other_E.dtype
    place = first_E.data_ptr() + count * first_E.element_size()
    is_one_storage = first_E.untyped_storage().data_ptr() == other_E.untyped_storage().data_ptr()
    return is_same and is_one_storage and other_E.data_ptr() == place and other_E.is_contiguous()
