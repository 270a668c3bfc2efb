"""The parameters in a checkpoint, read without the product: names, types and bytes of all its safetensors files."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.damage import tensor_files


def digest(folder: Path) -> str:
    """Return a digest of all tensors, whatever the files that hold them are called."""
    tensors = sorted(tensor for path in tensor_files(folder) for tensor in _tensors(path))
    assert tensors, f"{folder}: no tensors"
    total = hashlib.sha256()
    for name, kind, content in tensors:
        total.update(f"{name} {kind} {content}\n".encode())
    return total.hexdigest()


def _tensors(path: Path) -> Iterator[tuple[str, str, str]]:
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8:end]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            content = hashlib.sha256(data[end + first : end + last]).hexdigest()
            yield name, f"{entry['dtype']} {entry['shape']}", content
