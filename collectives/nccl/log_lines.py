"""Lines of a log with NCCL_DEBUG set: the writer of each message, its place in the file, and its text.

A message begins with `host:pid:tid [gpu] NCCL INFO`. Anything may stand before it: a time in any format that
NCCL_DEBUG_TIMESTAMP_FORMAT allows, the tag of a launcher. Processes that share a terminal write into each other's
lines, so one line may hold several messages; lines without any belong to somebody else and are handed on as they are.

Source: NCCL 2.30, src/debug.cc; NCCL user guide, NCCL_DEBUG and NCCL_DEBUG_TIMESTAMP_FORMAT.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake

MAX_LINE_BYTES = 2**16  # what is longer is cut into pieces of this length
NO_HOST = ""

_PREFIX = re.compile(  # a host begins where a word does, so that a long word is tried once and not at each letter
    r"(?<![^\s:<>\[\]])(?P<host>[^\s:<>\[\]]{1,255}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) \[(?P<gpu>-?\d{1,4})\] "
    r"(?:\S{1,200}:\d{1,6} (?:\(\w{1,200}\) )?)?NCCL (?P<level>INFO|WARN|TRACE|ABORT) "
)
_MARK = " NCCL "  # in every prefix


@dataclass(frozen=True, kw_only=True, slots=True)
class LogLine:
    """One message of NCCL, or one line of another program with `host` NO_HOST."""

    host: str
    pid: int
    tid: int
    gpu: int  # CUDA device of the thread
    level: str
    message: str
    where: str  # file:line


def read_log_lines(path: Path) -> Iterator[LogLine]:
    """Yield the messages of a file in order; raises InputError where it cannot be read."""
    try:
        if path.is_char_device() or path.is_block_device():
            raise InputError(Mistake(where=str(path), found="a device", allowed="a file, or a pipe that ends"))
        with path.open("rb") as file:
            number = 0
            is_continued = False
            while raw := file.readline(MAX_LINE_BYTES):
                number += not is_continued
                is_continued = not raw.endswith(b"\n")
                yield from split_line(raw.decode(errors="replace").rstrip("\r\n"), f"{path}:{number}")
    except OSError as error:
        raise InputError(Mistake(where=str(path), found=f"not readable ({error.strerror})")) from error


def _prefixes(text: str) -> list[re.Match[str]]:
    """Return where messages begin; what follows the only one is not searched for another."""
    most = text.count(_MARK)
    if most == 1:
        match = _PREFIX.search(text)
        return [match] if match else []
    return list(_PREFIX.finditer(text)) if most else []


def split_line(text: str, where: str) -> Iterator[LogLine]:
    """Yield what a line holds: the text before the first prefix, and each message up to the next prefix."""
    matches = _prefixes(text)
    ends = [*(match.start() for match in matches), len(text)]
    if before := text[: ends[0]].strip():
        yield LogLine(host=NO_HOST, pid=0, tid=0, gpu=0, level="", message=before, where=where)
    for match, end in zip(matches, ends[1:], strict=True):
        yield LogLine(
            host=match["host"],
            pid=int(match["pid"]),
            tid=int(match["tid"]),
            gpu=int(match["gpu"]),
            level=match["level"],
            message=text[match.end() : end].strip(),
            where=where,
        )
