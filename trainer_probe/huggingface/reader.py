"""Weights of a Hugging Face checkpoint as a source of pieces, read range by range.

Only what a piece needs is read, at most MAX_BYTES of it at a time, and takes the piece's precision. All that does not
fit the model is reported at once, before anything is read.

Source: safetensors' format (huggingface/safetensors, README): a header of names, precisions, shapes and places.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import read_foreign, shown
from fabrictune.trainer_probe.huggingface.blocks import Block, Box, blocks_of
from fabrictune.trainer_probe.huggingface.config import CONFIG_FILE, configuration_of, unmapped
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.state.pieces import VALUE, Piece

INDEX_FILE, SINGLE_FILE = "model.safetensors.index.json", "model.safetensors"
MAX_JSON_BYTES = 64 * 2**20
MAX_BYTES = 2**26  # of a piece read at a time
MAX_NAMED = 16  # tensors that a mistake lists
PRECISIONS = ("F64", "F32", "F16", "BF16")
BUFFERS = (".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias")  # of older checkpoints: no weights
BASE = "transformer."  # begins the names of GPT-2's tensors, or does not


@dataclass(frozen=True, kw_only=True)
class _Tensor:
    path: Path
    name: str
    shape: tuple[int, ...]
    precision: str


class Checkpoint:
    """An open checkpoint that fits a model; a source of values for pieces of any layout."""

    def __init__(self, spec: ModelSpec, folder: Path) -> None:
        """Open the checkpoint in a folder; raises InputError with all that does not fit."""
        mistakes = list(unmapped(spec))
        if mistakes:
            raise InputError(*mistakes)
        self._stack = ExitStack()
        self._files: dict[Path, Any] = {}
        try:
            config = _read_json(folder / CONFIG_FILE)
            tensors = self._tensors(folder)
            blocks = blocks_of(spec)
            mistakes = [*configuration_of(spec).mistakes(config, str(folder / CONFIG_FILE))]
            mistakes += _tensor_mistakes(blocks, tensors, folder)
            if mistakes:
                raise InputError(*mistakes)
        except BaseException:
            self.close()
            raise
        self._places = tensors
        self._blocks: dict[str, list[Block]] = {}
        for block in blocks:
            self._blocks.setdefault(block.weight, []).append(block)

    def __enter__(self) -> Self:
        """Return this checkpoint, which the block's end closes."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._stack.close()

    def missing(self, piece: Piece, weight: WeightSpec, tp: int) -> Sequence[str]:
        """Return what of a piece is not there: everything but master values."""
        return tuple(f"{weight.name}: {name}" for name in sorted(piece.tensors.keys() - {VALUE}))

    def fill(self, piece: Piece, weight: WeightSpec, tp: int) -> None:
        """Overwrite the values of a piece of a division by `tp`."""
        values_E, shape = piece.tensors[VALUE], weight.local_shape(tp)
        row_size = math.prod(shape[1:])
        step = max(1, MAX_BYTES // (row_size * values_E.element_size()))
        for begin in range(piece.begin // row_size, -(-piece.end // row_size), step):
            rows = begin, min(begin + step, shape[0])
            part = self._read(weight, _box(weight, tp, piece.part, rows), values_E.dtype).flatten()
            first = max(piece.begin, begin * row_size)
            end = min(piece.end, begin * row_size + len(part))
            own_E = part[first - begin * row_size : end - begin * row_size]
            values_E[first - piece.begin : end - piece.begin].copy_(own_E)

    def _read(self, weight: WeightSpec, box: Box, dtype: torch.dtype) -> torch.Tensor:
        """Return a box of a weight."""
        result = torch.empty([end - begin for begin, end in box], dtype=dtype)
        for block in self._blocks[weight.name]:
            shared = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, block.box, strict=True))
            if all(begin < end for begin, end in shared):
                place = self._places[block.name]
                their = self._files[place.path].get_slice(place.name)
                found = their[tuple(slice(begin, end) for begin, end in block.their_box(shared))]
                within = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(shared, box, strict=True))
                result[within] = to_ours(found, block, shared)
        return result

    def _tensors(self, folder: Path) -> dict[str, _Tensor]:
        """Return all tensors by the names that blocks give them."""
        found = {}
        for path in _files(folder):
            try:
                file = self._files[path] = self._stack.enter_context(safe_open(path, framework="pt"))
                for name in file.keys():  # noqa: SIM118  # no mapping
                    part = file.get_slice(name)
                    found[name] = _Tensor(
                        path=path, name=name, shape=tuple(part.get_shape()), precision=part.get_dtype()
                    )
            except (SafetensorError, OSError) as error:
                raise InputError(Mistake(where=str(path), found=f"not readable as safetensors ({error})")) from error
        if "wte.weight" in found:
            return {name if name == "lm_head.weight" else BASE + name: tensor for name, tensor in found.items()}
        return found


def to_ours(found: torch.Tensor, block: Block, box: Box) -> torch.Tensor:
    """Return a part of their tensor as a box of our weight."""
    order = [axis for merged in block.axes for axis in merged]
    split = found.reshape([box[axis][1] - box[axis][0] for axis in order])
    ours = split.permute(sorted(range(len(order)), key=lambda place: order[place]))
    for axis in range(len(box)):
        if axis not in order:
            ours = ours.unsqueeze(axis)
    return ours


def _box(weight: WeightSpec, tp: int, part: int, rows: tuple[int, int]) -> Box:
    """Return the box of a part's rows in the whole weight."""
    shape = weight.local_shape(tp)
    firsts = [part * size if axis == weight.split else 0 for axis, size in enumerate(shape)]
    box = [(first, first + size) for first, size in zip(firsts, shape, strict=True)]
    box[0] = firsts[0] + rows[0], firsts[0] + rows[1]
    return tuple(box)


def _files(folder: Path) -> list[Path]:
    """Return the files with tensors: those of the index, or the only one."""
    if not (folder / INDEX_FILE).exists():
        return [folder / SINGLE_FILE]
    names = _read_json(folder / INDEX_FILE).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise InputError(Mistake(where=str(folder / INDEX_FILE), found="no weight_map of tensors and files"))
    outside = sorted({name for name in names.values() if Path(name).name != name})
    if outside:
        raise InputError(
            Mistake(where=str(folder / INDEX_FILE), found=shown(outside[0]), allowed="names of files beside it")
        )
    return [folder / name for name in sorted(set(names.values()))]


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(read_foreign(path, max_bytes=MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise InputError(Mistake(where=str(path), found=f"not readable ({error})")) from error
    if not isinstance(content, dict):
        raise InputError(Mistake(where=str(path), found=shown(content), allowed="a JSON object"))
    return content


def _tensor_mistakes(blocks: Sequence[Block], tensors: Mapping[str, _Tensor], folder: Path) -> Iterator[Mistake]:
    """Yield which tensors are missing, too many, of another shape, or of no precision that weights have."""
    shapes = {block.name: block.shape for block in blocks}
    missing = sorted(shapes.keys() - tensors.keys())
    unknown = sorted(name for name in tensors.keys() - shapes.keys() if not name.endswith(BUFFERS))
    if missing:
        yield Mistake(where=str(folder), found=f"lacks {_list(missing)}")
    if unknown:
        yield Mistake(where=str(folder), found=f"{_list(unknown)}, which the recipe's model does not have")
    for name in sorted(shapes.keys() & tensors.keys()):
        tensor = tensors[name]
        where = f"{tensor.path}: {tensor.name}"
        if tensor.shape != shapes[name]:
            yield Mistake(where=where, found=f"shape {list(tensor.shape)}", allowed=f"{list(shapes[name])}")
        if tensor.precision not in PRECISIONS:
            yield Mistake(where=where, found=f"precision {tensor.precision}", allowed=", ".join(PRECISIONS))


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"
