"""Damage to files that a job rests on: checkpoints cut short or with one byte flipped, and a shard of the data."""

import random
from collections.abc import Iterable
from pathlib import Path

HEADER_BYTES = 64  # of a token file


def newest_checkpoint(top: Path, *, is_memory: bool = False) -> Path | None:
    """Return the folder of the highest step below a place that is complete; None where there is none.

    In storage it has a manifest then; in a node's memory each of its files has an index.
    """
    folders = [path for path in top.rglob("step-*") if path.is_dir()] if top.exists() else []
    is_complete = _has_indices if is_memory else _has_manifest
    return max(filter(is_complete, folders), key=_step_and_generation, default=None)


def flip_byte(path: Path, chance: random.Random, *, first: int = 0) -> None:
    """Change one bit of a byte in a file, which keeps its length and its times' order."""
    with path.open("r+b") as file:
        place = chance.randrange(first, path.stat().st_size)
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << chance.randrange(8)]))


def tear(path: Path, chance: random.Random) -> None:
    """Cut a file short at a random place, as a machine that loses power does."""
    with path.open("r+b") as file:
        file.truncate(chance.randrange(path.stat().st_size))


def put_foreign_id(path: Path, num_bytes: int) -> None:
    """Overwrite the second half of a token file's ids with the largest number, which no vocabulary has."""
    size = path.stat().st_size
    first = HEADER_BYTES + (size - HEADER_BYTES) // 2
    with path.open("r+b") as file:
        file.seek(first - first % num_bytes)
        file.write(b"\xff" * (size - file.tell()))


def flip_shard(path: Path) -> None:
    """Flip a bit of every 64th id in the second half of a token file: all stay ids of the vocabulary."""
    size = path.stat().st_size
    first = HEADER_BYTES + (size - HEADER_BYTES) // 4 * 2
    with path.open("r+b") as file:
        for place in range(first, size, 128):
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 1]))


def step_of(folder: Path) -> int:
    """Return the step in a checkpoint folder's name; -1 where it has none."""
    return _step_and_generation(folder)[0]


def tensor_files(folder: Path) -> tuple[Path, ...]:
    """Return a checkpoint's files of tensors, in order of name."""
    return tuple(sorted(path for path in _files(folder) if path.suffix == ".safetensors"))


def _has_manifest(folder: Path) -> bool:
    return (folder / "manifest.json").exists()


def _has_indices(folder: Path) -> bool:
    files = tensor_files(folder)
    return bool(files) and all(path.with_suffix(".json").exists() for path in files)


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _step_and_generation(folder: Path) -> tuple[int, int]:
    """Return the numbers in a name such as step-00000010.g3; those of another form come first."""
    step, _, generation = folder.name.removeprefix("step-").partition(".g")
    return (int(step), int(generation or 0)) if step.isdecimal() and (generation or "0").isdecimal() else (-1, -1)
