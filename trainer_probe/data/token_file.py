"""Token files: a header with number of ids and vocabulary, the ids of a text one after another, checksums of blocks.

The header is 64 bytes, all little endian: `FTTOKENS`, version (u32), bytes of an id (u32: 2 or 4), vocabulary size,
number of ids, largest id (u64 each), CRC-32 of the ids (u32), CRC-32 of the table (u32), zeros, CRC-32 of the 60 bytes
before (u32). The table behind the ids has the CRC-32 (u32) of each 4096 of them. With the largest id, ids beyond the
vocabulary are refused without reading the file; `read` checks the blocks that it reads each time, and `verify` checks
all. Files of version 1 have no table, so that only `verify` and the vocabulary show damage to them.

Shapes: T tokens.
"""

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.errors import Mistake, TokenFileError

MAGIC = b"FTTOKENS"
VERSION = 2  # 1 is read too
BLOCK_IDS = 4096  # that one entry of the table is of
HEADER_BYTES = 64
_FIELDS = struct.Struct("<8sIIQQQII12x")  # all but the header's own checksum
_CHECKSUM = struct.Struct("<I")
_ENTRY = _CHECKSUM  # of the table
_BLOCK_TOKENS = 2**20  # in memory during `verify`


@dataclass(frozen=True, kw_only=True)
class TokenFile:
    """A token file with a checked header; ids stay on disk until they are read."""

    path: Path
    id_bytes: int
    vocabulary_size: int
    num_tokens: int
    largest_id: int
    checksum: int  # CRC-32 of the ids
    version: int
    table_checksum: int  # CRC-32 of the table; 0 of version 1

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read and check the header; raises TokenFileError with all its mistakes."""
        try:
            with path.open("rb") as file:
                header, num_bytes = file.read(HEADER_BYTES), os.fstat(file.fileno()).st_size
        except OSError as error:
            raise TokenFileError(Mistake(where=str(path), found=error.strerror or str(error))) from None
        found = cls(path=path, **_parse(header, path))
        mistakes = list(found._mistakes(num_bytes))
        if mistakes:
            raise TokenFileError(*mistakes)
        return found

    @cached_property
    def ids_T(self) -> NDArray[Any]:
        """All ids, mapped from the file, read only."""
        return np.memmap(self.path, dtype=f"<u{self.id_bytes}", mode="r", offset=HEADER_BYTES, shape=(self.num_tokens,))

    @cached_property
    def _table(self) -> NDArray[Any] | None:
        """The CRC-32 of each block, checked; None in files of version 1. Raises TokenFileError."""
        if self.version == 1:
            return None
        begin = HEADER_BYTES + self.num_tokens * self.id_bytes
        table = np.fromfile(self.path, dtype="<u4", offset=begin)
        if zlib.crc32(table.tobytes()) != self.table_checksum:
            raise TokenFileError(self._damage("a damaged table of checksums"))
        return table

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Return the ids from `first` to before `last`; raises TokenFileError where their blocks are damaged."""
        table = self._table
        if table is not None:
            for block in range(first // BLOCK_IDS, -(-last // BLOCK_IDS)):
                ids = self.ids_T[block * BLOCK_IDS : (block + 1) * BLOCK_IDS]
                if zlib.crc32(ids.data) != table[block]:
                    end = block * BLOCK_IDS + len(ids) - 1
                    raise TokenFileError(self._damage(f"ids {block * BLOCK_IDS} to {end} with another checksum"))
        return self.ids_T[first:last]

    def verify(self) -> None:
        """Read all ids, block by block; raises TokenFileError where they are not the ids that were written."""
        checksum, largest_id = _summarize(self.ids_T[first : first + _BLOCK_TOKENS] for first in self._block_starts())
        if (checksum, largest_id) != (self.checksum, self.largest_id):
            raise TokenFileError(
                Mistake(
                    where=str(self.path),
                    found=f"ids with checksum {checksum:08x}, the largest {largest_id}",
                    allowed=f"checksum {self.checksum:08x}, the largest {self.largest_id}, as its header says",
                    next_step="the file is damaged: tokenize the text again",
                )
            )

    def _damage(self, found: str) -> Mistake:
        return Mistake(where=str(self.path), found=found, next_step="the file is damaged: tokenize the text again")

    def _block_starts(self) -> range:
        return range(0, self.num_tokens, _BLOCK_TOKENS)

    def _mistakes(self, num_bytes: int) -> Iterator[Mistake]:
        table_bytes = _ENTRY.size * -(-self.num_tokens // BLOCK_IDS) if self.version > 1 else 0
        expected_bytes = HEADER_BYTES + self.num_tokens * self.id_bytes + table_bytes
        if num_bytes != expected_bytes:
            yield Mistake(
                where=str(self.path),
                found=f"{'cut short: ' if num_bytes < expected_bytes else ''}{num_bytes} bytes",
                allowed=f"{expected_bytes} bytes: a header and {self.num_tokens} ids of {self.id_bytes} bytes"
                + (", and their checksums" if table_bytes else ""),
                next_step="copy the file again, or tokenize the text again",
            )
        if self.largest_id >= self.vocabulary_size:
            yield Mistake(
                where=str(self.path),
                found=f"id {self.largest_id}, beyond the vocabulary",
                allowed=f"0 to {self.vocabulary_size - 1}",
                next_step="tokenize the text again",
            )


class TokenWriter:
    """Writes a token file id by id; the file gets its name once it is complete. A context manager."""

    def __init__(self, path: Path, vocabulary_size: int) -> None:
        assert 1 <= vocabulary_size <= 2**32, "ids have 4 bytes at most"
        self._path, self._partial = path, path.with_name(f"{path.name}.partial")
        self._vocabulary_size = vocabulary_size
        self._id_bytes = 2 if vocabulary_size <= 2**16 else 4
        self._num_tokens, self._largest_id, self._checksum = 0, 0, 0
        self._table, self._pending = bytearray(), b""  # ids of a block that is not full

    def __enter__(self) -> Self:
        """Create the file; raises TokenFileError where that fails."""
        try:
            self._file = self._partial.open("wb")
        except OSError as error:
            raise TokenFileError(Mistake(where=str(self._path), found=error.strerror or str(error))) from None
        self._file.write(bytes(HEADER_BYTES))
        return self

    def append(self, ids_T: NDArray[Any]) -> None:
        """Add ids; raises TokenFileError where one is beyond the vocabulary."""
        if not len(ids_T):
            return
        low, high = int(ids_T.min()), int(ids_T.max())
        if low < 0 or high >= self._vocabulary_size:
            raise TokenFileError(
                Mistake(
                    where=str(self._path),
                    found=f"id {low if low < 0 else high}, beyond the vocabulary",
                    allowed=f"0 to {self._vocabulary_size - 1}",
                )
            )
        block = ids_T.astype(f"<u{self._id_bytes}").tobytes()
        self._file.write(block)
        self._add_to_table(block)
        self._num_tokens += len(ids_T)
        self._largest_id = max(self._largest_id, high)
        self._checksum = zlib.crc32(block, self._checksum)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete the file, or remove it where the block failed."""
        with self._file:
            if kind is None:
                if self._pending:
                    self._table += _ENTRY.pack(zlib.crc32(self._pending))
                self._file.write(self._table)
                self._file.seek(0)
                self._file.write(self._header())
                self._file.flush()
                os.fsync(self._file.fileno())
        if kind is None:
            self._partial.replace(self._path)
        else:
            self._partial.unlink()

    def _add_to_table(self, block: bytes) -> None:
        size, content = BLOCK_IDS * self._id_bytes, self._pending + block
        num_full = len(content) // size
        for number in range(num_full):
            self._table += _ENTRY.pack(zlib.crc32(content[number * size : (number + 1) * size]))
        self._pending = content[num_full * size :]

    def _header(self) -> bytes:
        header = _FIELDS.pack(
            MAGIC,
            VERSION,
            self._id_bytes,
            self._vocabulary_size,
            self._num_tokens,
            self._largest_id,
            self._checksum,
            zlib.crc32(self._table),
        )
        return header + _CHECKSUM.pack(zlib.crc32(header))


def _parse(header: bytes, path: Path) -> dict[str, int]:
    """Return the fields of a header; raises TokenFileError where it is none, or damaged."""
    if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
        raise TokenFileError(
            Mistake(
                where=str(path),
                found="not a token file" if header[: len(MAGIC)] != MAGIC else "cut short inside its header",
                next_step="make one from text with fabrictune.trainer_probe.data.tokenization",
            )
        )
    _, version, id_bytes, vocabulary_size, num_tokens, largest_id, checksum, table = _FIELDS.unpack_from(header)
    (expected,) = _CHECKSUM.unpack_from(header, _FIELDS.size)
    if zlib.crc32(header[: _FIELDS.size]) != expected:
        raise TokenFileError(Mistake(where=str(path), found="a damaged header", next_step="tokenize the text again"))
    if version not in (1, VERSION) or id_bytes not in (2, 4):
        raise TokenFileError(
            Mistake(
                where=str(path),
                found=f"version {version} with ids of {id_bytes} bytes",
                allowed=f"version 1 or {VERSION} with ids of 2 or 4 bytes",
            )
        )
    return {
        "id_bytes": id_bytes,
        "vocabulary_size": vocabulary_size,
        "num_tokens": num_tokens,
        "largest_id": largest_id,
        "checksum": checksum,
        "version": version,
        "table_checksum": table,
    }


def _summarize(blocks: Iterable[NDArray[Any]]) -> tuple[int, int]:
    """Return the CRC-32 and the largest of all ids."""
    checksum, largest_id = 0, 0
    for ids_T in blocks:
        checksum = zlib.crc32(ids_T.tobytes(), checksum)
        largest_id = max(largest_id, int(ids_T.max()))
    return checksum, largest_id
