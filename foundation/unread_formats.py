"""Formats that a reader of foreign files knows and does not read: what a file is, and what to do instead.

Readers try these where none of their formats fits, so that a message names the file instead of asking for a format.
The first kilobytes are looked at, unpacked where they are packed.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.errors import FabrictuneError, Mistake
from fabrictune.foundation.foreign_files import read_head

_HEAD_BYTES = 2**14
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, kw_only=True)
class UnreadFormat:
    """A format that is recognised and not read."""

    pattern: re.Pattern[bytes]  # found in the head of its files
    what: str
    next_step: str


def refuse_unread(
    paths: Iterable[Path], formats: Sequence[UnreadFormat], *, error: type[FabrictuneError], reads_packed: bool
) -> None:
    """Raise `error` for each file that is empty, of one of `formats`, or packed where that is not read; return else."""
    mistakes = [mistake for path in paths if (mistake := _mistake(path, formats, reads_packed))]
    if mistakes:
        raise error(*mistakes)


def _mistake(path: Path, formats: Sequence[UnreadFormat], reads_packed: bool) -> Mistake | None:
    where = str(path)
    is_packed = read_head(path, len(_GZIP)) == _GZIP
    head = read_head(path, _HEAD_BYTES, is_unpacked=True)
    if not head.strip():
        found = "a packed file that is cut off or damaged at its beginning" if is_packed else "an empty file"
        return Mistake(where=where, found=found, next_step="check that it was copied whole")
    for one in formats:
        if one.pattern.search(head):
            return Mistake(where=where, found=one.what, next_step=one.next_step)
    return (
        Mistake(where=where, found="a packed file", next_step="unpack it") if is_packed and not reads_packed else None
    )
