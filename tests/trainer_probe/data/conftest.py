"""Token files small enough to know by heart."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fabrictune.trainer_probe.data.token_file import HEADER_BYTES, TokenFile, TokenWriter

MakeFile = Callable[..., Path]


def make_first_version(path: Path) -> None:
    """Turn a token file into one of version 1, which has no checksums of blocks."""
    found, content = TokenFile.open(path), bytearray(path.read_bytes())
    del content[HEADER_BYTES + found.num_tokens * found.id_bytes :]
    struct.pack_into("<I", content, 8, 1)
    struct.pack_into("<I", content, 44, 0)
    struct.pack_into("<I", content, 60, zlib.crc32(content[:60]))
    path.write_bytes(content)


@pytest.fixture
def make_file(tmp_path: Path) -> MakeFile:
    """Return a function that writes a token file of the ids 0, 1, 2, ..., each modulo the vocabulary."""

    def make(num_tokens: int, vocabulary_size: int = 1000) -> Path:
        path = tmp_path / f"{num_tokens}.tokens"
        with TokenWriter(path, vocabulary_size) as writer:
            writer.append(np.arange(num_tokens) % vocabulary_size)
        return path

    return make
