"""Writing the spans of one rank, in bounded space: the newest whole, and some steps of all that came before.

The newest spans are in two segments, `rank-00003.jsonl` and the one before it, `rank-00003.old.jsonl`: a full segment
takes the place of the old one, whose spans are counted as dropped. `rank-00003.sampled.jsonl` has every step at first;
each time it is full, every second of its steps goes, so that it spans the whole run at an even distance. A trend over a
week is seen in the latter, a request of the last minutes in the former.

A run does not end because its spans cannot be written: they end, and `failure` says why.
"""

import errno
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.output_files import replaced_file
from fabrictune.foundation.span_lines import SpanHeader

FOLDER = "spans"
NAME = re.compile(r"rank-(\d{5,7})(\.jsonl|\.old\.jsonl|\.sampled\.jsonl)")
SUFFIX, OLD, SAMPLED = ".jsonl", ".old.jsonl", ".sampled.jsonl"


@dataclass(frozen=True, kw_only=True)
class SpanLimits:
    """Bounds of a rank's files."""

    recent_bytes: int = 16 * 2**20  # of both segments
    sampled_bytes: int = 8 * 2**20


def spans_beside(record: Path) -> Path:
    """Return the folder of the spans of a run whose record is there: beside it, since a record is replaced whole."""
    return record.with_name(f"{record.name}-{FOLDER}")


def span_file(folder: Path, rank: int, suffix: str = SUFFIX) -> Path:
    """Return the path of a part of a rank's spans."""
    return folder / f"rank-{rank:05d}{suffix}"


class SpanWriter:
    """The files of one rank's spans; the folder is made.

    Earlier files of the rank go, and with rank 0 those of ranks that the job does not have.
    """

    def __init__(self, folder: Path, header: SpanHeader, limits: SpanLimits | None = None) -> None:
        self._limits = limits or SpanLimits()
        self._files: tuple[_Segments, _SampledSteps] | None = None
        self.failure: str | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.iterdir():
                if (match := NAME.fullmatch(path.name)) and _is_earlier(int(match[1]), header):
                    path.unlink(missing_ok=True)
            self._files = (
                _Segments(folder, header, self._limits.recent_bytes // 2),
                _SampledSteps(span_file(folder, header.rank, SAMPLED), header, self._limits.sampled_bytes),
            )
        except OSError as error:
            self._fail(error)

    def write(self, step: int, lines: str) -> None:
        """Append the lines of a step's spans."""
        if self._files is None:
            return
        content = lines.encode()
        try:
            for file in self._files:
                file.append(step, content)
        except (OSError, InputError) as error:
            self._fail(error)

    def close(self) -> None:
        """Close the files."""
        for file in self._files or ():
            file.close()
        self._files = None

    def _fail(self, error: Exception) -> None:
        self.failure = f"spans end here: {error}"
        self.close()


class _Segments:
    """The newest spans of a rank, in two files of a bounded size."""

    def __init__(self, folder: Path, header: SpanHeader, max_bytes: int) -> None:
        self._path, self._old = (span_file(folder, header.rank, suffix) for suffix in (SUFFIX, OLD))
        self._header, self._max_bytes = header, max_bytes
        self._num_old = 0  # spans in the old segment
        self._file = self._begin()

    def append(self, step: int, content: bytes) -> None:
        if self._num_bytes + len(content) > self._max_bytes and self._num_spans:
            self._file.close()
            self._path.replace(self._old)
            dropped = self._header.num_dropped + self._num_old
            self._header = replace(self._header, segment=self._header.segment + 1, num_dropped=dropped)
            self._num_old = self._num_spans
            self._file = self._begin()
        if self._num_bytes + len(content) > self._max_bytes:  # more than a segment holds: its last spans go
            content, left_out = _fitting(content, self._max_bytes - self._num_bytes)
            self._header = replace(self._header, num_dropped=self._header.num_dropped + left_out)
        _write(self._file, content)
        self._num_bytes += len(content)
        self._num_spans += content.count(b"\n")

    def close(self) -> None:
        self._file.close()

    def _begin(self) -> BinaryIO:
        file = self._path.open("xb", buffering=0)
        line = self._header.line()
        _write(file, line)
        self._num_bytes, self._num_spans = len(line), 0
        return file


class _SampledSteps:
    """The spans of every `stride`-th step; the stride doubles whenever the file is full."""

    def __init__(self, path: Path, header: SpanHeader, max_bytes: int) -> None:
        self._path, self._header, self._max_bytes = path, header, max_bytes
        self._file = path.open("xb", buffering=0)
        self._num_bytes = len(header.line())
        _write(self._file, header.line())

    def append(self, step: int, content: bytes) -> None:
        while step % self._header.stride == 0 and self._num_bytes + len(content) > self._max_bytes:
            if self._header.stride > step:  # its first step alone fills the file
                return
            self._thin()
        if step % self._header.stride == 0:
            _write(self._file, content)
            self._num_bytes += len(content)

    def close(self) -> None:
        self._file.close()

    def _thin(self) -> None:
        self._file.close()
        header = replace(self._header, stride=2 * self._header.stride)
        with replaced_file(self._path) as half, self._path.open("rb") as before, half.open("wb") as after:
            before.readline()
            after.write(header.line())
            after.writelines(line for line in before if int(line.split(b",", 2)[1]) % header.stride == 0)
        self._header = header
        self._file = self._path.open("ab", buffering=0)
        self._num_bytes = self._path.stat().st_size


def _is_earlier(rank: int, header: SpanHeader) -> bool:
    return rank == header.rank or (header.rank == 0 and rank >= header.layout.world_size)


def _fitting(content: bytes, num_bytes: int) -> tuple[bytes, int]:
    """Return the first whole lines of a content that fit, and how many do not."""
    end = content.rfind(b"\n", 0, max(0, num_bytes)) + 1
    return content[:end], content.count(b"\n", end)


def _write(file: BinaryIO, content: bytes) -> None:
    if file.write(content) != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file.name))
