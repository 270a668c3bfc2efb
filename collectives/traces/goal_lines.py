"""Lines of a schedule in GOAL, rank by rank, as columns.

A statement is one line; a comment may span several. Receives from any rank or of any tag are refused, since nothing
says which send they meet.

Source: spcl/LogGOPSim, src/LogGOPSim/txt2bin.re (grammar).

Shapes: L lines of a rank.
"""

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import open_foreign, shown
from fabrictune.foundation.traces import UNKNOWN, Operation

MAX_BYTES = 2**30
MAX_LINES = 5_000_000  # of all ranks
MAX_RANKS = 2**20
MAX_LINE = 4096  # characters
BLOCK_BYTES = 2**20
SHORTER = "make a schedule of fewer steps"
_ALLOWED = "send SIZEb to RANK, recv SIZEb from RANK, calc NANOSECONDS, LABEL requires LABEL, }"
_LABEL = r"(?:([a-zA-Z]\w*)\s*:\s*)?"
_PLACES = r"((?:\s+(?:cpu|nic)\s+\d{1,3})*)"
_MESSAGE = re.compile(
    rf"{_LABEL}(send|recv)\s+(\d{{1,15}})b\s+(?:to|from)\s+(-?\d{{1,9}})(?:\s+tag\s+(-?\d{{1,10}}))?{_PLACES}", re.ASCII
)
_WORK = re.compile(rf"{_LABEL}calc\s+(\d{{1,15}}){_PLACES}", re.ASCII)
_ORDER = re.compile(r"([a-zA-Z]\w*)\s+(i?)requires\s+([a-zA-Z]\w*)", re.ASCII)
_RANK = re.compile(r"rank\s+(\d{1,9})\s*\{", re.ASCII)
_NUM_RANKS = re.compile(r"num_ranks\s+(\d{1,9})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The lines of a rank, as columns."""

    rank: int
    operation: "array[int]" = field(default_factory=lambda: array("q"))  # UNKNOWN for work
    size: "array[int]" = field(default_factory=lambda: array("q"))  # bytes, or nanoseconds of work
    peer: "array[int]" = field(default_factory=lambda: array("q"))
    tag: "array[int]" = field(default_factory=lambda: array("q"))
    number: "array[int]" = field(default_factory=lambda: array("q"))  # of the line in its file
    place_of: dict[str, int] = field(default_factory=dict)  # of a label
    waits: list[tuple[int, int, bool]] = field(default_factory=list)  # who waits, for whom, whether for its beginning

    def add(self, operation: int, size: int, peer: int, tag: int, number: int) -> None:
        self.operation.append(operation)
        self.size.append(size)
        self.peer.append(peer)
        self.tag.append(tag)
        self.number.append(number)


class GoalFile:
    """A file, read rank by rank."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._num_placed = 0
        self._num_ranks = 0

    def notes(self) -> Iterator[str]:
        """Yield what is left out."""
        if self._num_placed:
            yield f"lines whose core or NIC is left out: {self._num_placed}"

    def schedules(self) -> Iterator[Schedule]:
        """Yield each rank's schedule."""
        schedule: Schedule | None = None
        number = num_lines = 0
        for number, line in _lines(self._path):
            if schedule is None:
                schedule = self._begin(line, number)
            elif line == "}":
                yield schedule
                schedule = None
            else:
                num_lines += 1
                self._take(schedule, line, number)
                if num_lines > MAX_LINES:
                    self._refuse(number, f"more than {MAX_LINES:,} lines of ranks", SHORTER)
        if schedule is not None:
            self._refuse(number, f"no end of rank {schedule.rank}", "a }, and a file that was copied whole")

    def _begin(self, line: str, number: int) -> Schedule | None:
        """Return the schedule that a line outside all ranks begins, None where it has the number of ranks."""
        if match := _NUM_RANKS.fullmatch(line):
            self._num_ranks = min(int(match[1]), MAX_RANKS)
        elif match := _RANK.fullmatch(line):
            return Schedule(rank=self._rank(match[1], number))
        else:
            self._refuse(number, shown(line), "num_ranks N, or rank N {")
        return None

    def _take(self, schedule: Schedule, line: str, number: int) -> None:
        """Add a line inside a rank."""
        if match := _MESSAGE.fullmatch(line):
            label, kind, size, peer, tag, placed = match.groups()
            if peer == "-1" or tag == "-1":
                self._refuse(number, "a receive from any rank, or of any tag", "a rank and a tag")
            operation = int(Operation.SEND if kind == "send" else Operation.RECEIVE)
            other = self._rank(peer, number)
            if other == schedule.rank:
                self._refuse(number, f"a message of rank {other} to itself", "another rank")
            row = (operation, int(size), other, int(tag or 0), number)
        elif match := _WORK.fullmatch(line):
            label, size, placed = match.groups()
            row = (UNKNOWN, int(size), UNKNOWN, 0, number)
        elif match := _ORDER.fullmatch(line):
            ends = (self._place(schedule, name, number) for name in (match[1], match[3]))
            schedule.waits.append((*ends, bool(match[2])))  # type: ignore[arg-type]  # two of them
            return
        else:
            self._refuse(number, shown(line), _ALLOWED)
        if label:
            schedule.place_of[label] = len(schedule.operation)
        self._num_placed += bool(placed)
        schedule.add(*row)

    def _place(self, schedule: Schedule, label: str, number: int) -> int:
        if label not in schedule.place_of:
            self._refuse(number, f"the label {shown(label)}, which no line before has", "a label of this rank")
        return schedule.place_of[label]

    def _rank(self, written: str, number: int) -> int:
        rank = int(written)
        if not 0 <= rank < self._num_ranks:
            self._refuse(number, f"rank {written}", f"0 to {self._num_ranks - 1}, of num_ranks")
        return rank

    def _refuse(self, number: int, found: str, allowed: str) -> NoReturn:
        raise TraceError(Mistake(where=f"{self._path}:{number}", found=found, allowed=allowed))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that has more than comments."""
    is_comment, number, rest = False, 0, ""
    with open_foreign(path, max_bytes=MAX_BYTES, error=TraceError) as file:
        while block := file.read(BLOCK_BYTES):
            text = rest + block.decode("ascii", "backslashreplace")
            has_comments = is_comment or "/" in text
            *lines, rest = text.split("\n")
            if len(rest) > MAX_LINE:
                found = f"a line of more than {MAX_LINE:,} characters"
                raise TraceError(Mistake(where=f"{path}:{number + len(lines) + 1}", found=found, allowed=_ALLOWED))
            for line in lines:
                number += 1
                if has_comments:
                    line, is_comment = _without_comments(line, is_comment)
                if line := line.strip():
                    yield number, line
    if last := _without_comments(rest, is_comment)[0].strip():
        yield number + 1, last


def _without_comments(line: str, is_comment: bool) -> tuple[str, bool]:
    """Return what of a line is no comment, and whether one goes on behind it."""
    kept = ""
    while line:
        if is_comment:
            _, end, line = line.partition("*/")
            is_comment = not end
        else:
            found = re.search(r"//|/\*", line)
            kept += line[: found.start()] if found else line
            line = line[found.end() :] if found and found[0] == "/*" else ""
            is_comment = found is not None and found[0] == "/*"
    return kept, is_comment
