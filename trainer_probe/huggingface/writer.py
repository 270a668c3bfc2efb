"""Master values of a training as a Hugging Face checkpoint, gathered weight by weight and written by rank 0.

Files have at most MAX_FILE_BYTES, or one tensor that is larger. Rank 0 holds one weight while it is gathered, and the
tensors of one file.

Left out: writers in parallel.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load, save, save_file

from fabrictune.foundation.errors import InputError, Mistake, RecordError
from fabrictune.foundation.output_folders import check_output_folder, write_folder
from fabrictune.trainer_probe.huggingface.blocks import Block, blocks_of
from fabrictune.trainer_probe.huggingface.config import CONFIG_FILE, configuration_of, unmapped
from fabrictune.trainer_probe.huggingface.reader import INDEX_FILE
from fabrictune.trainer_probe.model.chunks import ChunkSpec
from fabrictune.trainer_probe.model.spec import ModelSpec
from fabrictune.trainer_probe.model.weights import WeightSpec
from fabrictune.trainer_probe.state.pieces import VALUE, Piece, PieceTable

if TYPE_CHECKING:
    from fabrictune.trainer_probe.comm import Comm

MAX_FILE_BYTES = 5 * 10**9
WRITER = "fabrictune"
_NAME = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_MAX_INDEX_BYTES = 64 * 2**20

Gather = Callable[[WeightSpec], torch.Tensor]  # a whole weight


def checkpoint_place(spec: ModelSpec, folder: Path) -> Path:
    """Return the folder of a checkpoint to be; raises InputError for a model without a counterpart, or RecordError."""
    mistakes = list(unmapped(spec))
    if mistakes:
        raise InputError(*mistakes)
    check_output_folder(folder, check=check_replaceable)
    return folder


def check_replaceable(folder: Path) -> None:
    """Raise RecordError where a checkpoint must not take the place of what is there: anything but one of ours."""
    if not folder.is_symlink() and not folder.exists():
        return
    names = [] if folder.is_symlink() or not folder.is_dir() else [path.name for path in folder.iterdir()]
    foreign = [name for name in names if name not in (CONFIG_FILE, INDEX_FILE) and not _NAME.fullmatch(name)]
    is_empty = folder.is_dir() and not folder.is_symlink() and not names
    if not is_empty and (foreign or not _is_ours(folder / INDEX_FILE)):
        raise RecordError(
            Mistake(
                where=str(folder), found="not an empty folder, and no weights written here", next_step="name another"
            )
        )


def write_checkpoint(spec: ModelSpec, pieces: Sequence[Piece], comm: "Comm", folder: Path) -> None:
    """Write the values of all ranks' pieces; every rank calls this, and rank 0 writes. Raises RecordError there."""

    def gather(weight: WeightSpec) -> torch.Tensor | None:
        return gather_weight(weight, pieces, comm)

    if comm.rank == 0:
        write_folder(folder, lambda new: _write(spec, gather, new), check=check_replaceable)
        return
    for weight in ChunkSpec(model=spec).weights():
        gather(weight)


def write_weights(spec: ModelSpec, read: Gather, folder: Path) -> None:
    """Write the whole weights that `read` returns, one after another; raises RecordError and what `read` raises."""
    write_folder(folder, lambda new: _write(spec, read, new), check=check_replaceable)


def gather_weight(weight: WeightSpec, pieces: Sequence[Piece], comm: "Comm") -> torch.Tensor | None:
    """Return a whole weight's master values on rank 0, None on the others; every rank calls this."""
    is_first = weight.split is not None or comm.members("tp")[0] == comm.rank  # others hold the same
    own = {
        f"{piece.part}/{piece.begin}": piece.tensors[VALUE].detach().cpu().contiguous()
        for piece in pieces
        if piece.weight == weight.name and is_first
    }
    contents = comm.gather_bytes(save(own))
    if contents is None:
        return None
    table = PieceTable((piece for content in contents for piece in _unpacked(weight.name, content)), comm.layout.tp)
    dtype = pieces[0].tensors[VALUE].dtype
    whole = Piece(
        weight=weight.name, part=0, begin=0, tensors={VALUE: torch.empty(math.prod(weight.shape), dtype=dtype)}
    )
    assert not table.missing(whole, weight, 1), "the ranks together have every element"
    table.fill(whole, weight, 1)
    return whole.tensors[VALUE].view(weight.shape)


def to_theirs(whole: torch.Tensor, block: Block) -> torch.Tensor:
    """Return what a block of a whole weight is in their tensor."""
    ours = whole[tuple(slice(begin, end) for begin, end in block.box)]
    order = [axis for merged in block.axes for axis in merged]
    ones = [axis for axis in range(ours.dim()) if axis not in order]
    turned = ours.permute(*ones, *order)
    return turned.reshape([end - begin for begin, end in block.their_box(block.box)])


def _unpacked(name: str, content: bytes) -> Iterator[Piece]:
    for key, tensor in load(content).items():
        part, begin = key.split("/")
        yield Piece(weight=name, part=int(part), begin=int(begin), tensors={VALUE: tensor})


def _write(spec: ModelSpec, gather: Callable[[WeightSpec], torch.Tensor | None], folder: Path) -> None:
    configuration = configuration_of(spec).to_json()
    files: list[dict[str, torch.Tensor]] = [{}]
    sizes, names, num_bytes = [0], dict[str, int](), 0
    for name, tensor in _tensors(spec, gather):
        size = tensor.numel() * tensor.element_size()
        if files[-1] and sizes[-1] + size > MAX_FILE_BYTES:
            _save(files[-1], folder / str(len(files) - 1))
            files[-1] = {}
            files.append({})
            sizes.append(0)
        files[-1][name] = tensor
        names[name] = len(files) - 1
        sizes[-1] += size
        num_bytes += size
        configuration["torch_dtype"] = str(tensor.dtype).removeprefix("torch.")
    _save(files[-1], folder / str(len(files) - 1))
    paths = [f"model-{number + 1:05}-of-{len(files):05}.safetensors" for number in range(len(files))]
    for number, path in enumerate(paths):
        (folder / str(number)).rename(folder / path)
    weight_map = {name: paths[number] for name, number in names.items()}
    metadata = {"total_size": num_bytes, "written_by": WRITER}
    _write_json(folder / INDEX_FILE, {"metadata": metadata, "weight_map": weight_map})
    _write_json(folder / CONFIG_FILE, configuration)


def _tensors(
    spec: ModelSpec, gather: Callable[[WeightSpec], torch.Tensor | None]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield their tensors, those of one of our weights after one another."""
    blocks: dict[str, list[Block]] = {}
    for block in blocks_of(spec):
        blocks.setdefault(block.weight, []).append(block)
    for weight in ChunkSpec(model=spec).weights():
        whole = gather(weight)
        assert whole is not None, "gathered on this rank"
        theirs: dict[str, torch.Tensor] = {}
        for block in blocks[weight.name]:
            if block.name not in theirs:
                theirs[block.name] = torch.empty(block.shape, dtype=whole.dtype)
            place = tuple(slice(begin, end) for begin, end in block.their_box(block.box))
            theirs[block.name][place] = to_theirs(whole, block)
        yield from theirs.items()


def _save(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    save_file(dict(tensors), path, metadata={"format": "pt"})


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")


def _is_ours(index: Path) -> bool:
    try:
        if index.is_symlink() or index.stat().st_size > _MAX_INDEX_BYTES:
            return False
        content = json.loads(index.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    metadata = content.get("metadata") if isinstance(content, dict) else None
    return isinstance(metadata, dict) and metadata.get("written_by") == WRITER
