"""Schedules in GOAL, as LogGOPSim and ATLAHS take them: work, sends and receives of each rank, and their order.

`requires` waits for the end of another line of the rank, `irequires` for its beginning. Work is in nanoseconds. A send
meets the receive of the same two ranks and the same tag, in the order of each rank's schedule. Where tags of two ranks
come in one order on both sides they share a group of the trace, else each tag has one of its own.

Source: spcl/LogGOPSim, src/LogGOPSim/txt2bin.re (grammar); Hoefler et al., "Group operation assembly language - a
flexible way to express collective communication", ICPP 2009.
Left out: which core and which NIC a line takes (`cpu`, `nic`), counted in a note; receives from any rank or of any tag
are refused.
"""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np

from fabrictune.collectives.traces.builder import TraceBuilder
from fabrictune.collectives.traces.request_graph import Graph, Ordered, requests_in_order
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import open_foreign, read_head, shown
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_NS

MAX_BYTES = 2**30
MAX_LINES = 5_000_000  # of all ranks
MAX_RANKS = 2**20
MAX_LINE = 4096  # characters
BLOCK_BYTES = 2**20
_SHORTER = "make a schedule of fewer steps"
_ALLOWED = "send SIZEb to RANK, recv SIZEb from RANK, calc NANOSECONDS, LABEL requires LABEL, }"
_HEAD = re.compile(rb"\A\s*(?:(?://[^\n]*|/\*.*?\*/)\s*)*num_ranks[ \t]+\d+\s", re.DOTALL)
_LABEL = r"(?:([a-zA-Z]\w*)\s*:\s*)?"
_PLACES = r"((?:\s+(?:cpu|nic)\s+\d{1,3})*)"
_MESSAGE = re.compile(
    rf"{_LABEL}(send|recv)\s+(\d{{1,15}})b\s+(?:to|from)\s+(-?\d{{1,9}})(?:\s+tag\s+(-?\d{{1,10}}))?{_PLACES}", re.ASCII
)
_WORK = re.compile(rf"{_LABEL}calc\s+(\d{{1,15}}){_PLACES}", re.ASCII)
_ORDER = re.compile(r"([a-zA-Z]\w*)\s+(i?)requires\s+([a-zA-Z]\w*)", re.ASCII)
_RANK = re.compile(r"rank\s+(\d{1,9})\s*\{", re.ASCII)
_NUM_RANKS = re.compile(r"num_ranks\s+(\d{1,9})", re.ASCII)

Edge = tuple[int, int]  # the rank that sends, and the one that receives


@dataclass(frozen=True, kw_only=True)
class _Schedule:
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


@dataclass(frozen=True, kw_only=True)
class _Requests:
    """The requests of a rank in order, as columns of R."""

    rank: int
    operation_R: IntArray
    bytes_R: IntArray
    peer_R: IntArray
    tag_R: IntArray
    ordered: Ordered


def is_goal(path: Path) -> bool:
    """Return whether the file begins as a schedule."""
    return _HEAD.match(read_head(path, 2**12)) is not None


def read_goal(path: Path) -> CommTrace:
    """Return the messages of all ranks; raises TraceError with file and line."""
    reading = _Reading(path)
    requests: dict[int, _Requests] = {}
    num_rows = 0
    for schedule in reading.schedules():
        if schedule.rank in requests:
            raise TraceError(Mistake(where=str(path), found=f"a second schedule of rank {schedule.rank}"))
        requests[schedule.rank] = _requests(path, schedule, num_rows)
        num_rows += len(requests[schedule.rank].operation_R)
    if not num_rows:
        raise TraceError(Mistake(where=str(path), found="no message", allowed="a rank that sends or receives"))
    builder, crossing = TraceBuilder(), _crossing(requests.values())
    for own in requests.values():
        _add(builder, own, crossing)
    return builder.finish(tuple(reading.notes()))


class _Reading:
    """A file, read rank by rank."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._num_placed = 0
        self._num_ranks = 0

    def notes(self) -> Iterator[str]:
        """Yield what is left out."""
        if self._num_placed:
            yield f"lines whose core or NIC is left out: {self._num_placed}"

    def schedules(self) -> Iterator[_Schedule]:
        """Yield each rank's schedule."""
        schedule: _Schedule | None = None
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
                    self._refuse(number, f"more than {MAX_LINES:,} lines of ranks", _SHORTER)
        if schedule is not None:
            self._refuse(number, f"no end of rank {schedule.rank}", "a }, and a file that was copied whole")

    def _begin(self, line: str, number: int) -> _Schedule | None:
        """Return the schedule that a line outside all ranks begins, None where it has the number of ranks."""
        if match := _NUM_RANKS.fullmatch(line):
            self._num_ranks = min(int(match[1]), MAX_RANKS)
        elif match := _RANK.fullmatch(line):
            return _Schedule(rank=self._rank(match[1], number))
        else:
            self._refuse(number, shown(line), "num_ranks N, or rank N {")
        return None

    def _take(self, schedule: _Schedule, line: str, number: int) -> None:
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

    def _place(self, schedule: _Schedule, label: str, number: int) -> int:
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


def _requests(path: Path, schedule: _Schedule, first_row: int) -> _Requests:
    """Return a rank's messages in order. A line whose beginning is waited for has a node before it, of no work."""
    size_L = np.frombuffer(schedule.size, np.int64)
    operation_L = np.frombuffer(schedule.operation, np.int64)
    begun = sorted({awaited for _, awaited, is_begin in schedule.waits if is_begin})
    begin_of = {line: len(size_L) + place for place, line in enumerate(begun)}
    waits = set(begin_of.items())
    for line, awaited, is_begin in schedule.waits:
        waits.add((begin_of.get(line, line), begin_of[awaited] if is_begin else awaited))
    pairs = np.array(sorted(waits), np.int64).reshape(-1, 2)
    num_nodes = len(size_L) + len(begun)
    line_of = [*range(len(size_L)), *begun]
    graph = Graph(
        where_of_row=partial(_where, path, schedule.number, line_of),
        shorter=_SHORTER,
        row_N=np.arange(num_nodes),
        offset_N1=np.searchsorted(pairs[:, 0], np.arange(num_nodes + 1)),
        wait_W=pairs[:, 1],
    )
    is_request_N = np.zeros(num_nodes, bool)
    is_request_N[: len(size_L)] = operation_L != UNKNOWN
    work_ps_N = np.zeros(num_nodes, np.int64)
    work_ps_N[: len(size_L)] = np.where(operation_L == UNKNOWN, size_L * PS_PER_NS, 0)
    ordered = requests_in_order(graph, is_request_N, work_ps_N, first_row)
    columns = (operation_L, size_L, np.frombuffer(schedule.peer, np.int64), np.frombuffer(schedule.tag, np.int64))
    operation_R, bytes_R, peer_R, tag_R = (column[ordered.node_R] for column in columns)
    return _Requests(
        rank=schedule.rank, operation_R=operation_R, bytes_R=bytes_R, peer_R=peer_R, tag_R=tag_R, ordered=ordered
    )


def _where(path: Path, numbers: Sequence[int], line_of: Sequence[int], node: int) -> str:
    return f"{path}:{numbers[line_of[node]]}"


def _crossing(requests: Iterable[_Requests]) -> frozenset[Edge]:
    """Return the edges on which tags come in another order where they are sent than where they are received."""
    sent, received = defaultdict[Edge, "array[int]"](_numbers), defaultdict[Edge, "array[int]"](_numbers)
    for own in requests:
        for operation, peer, tag in zip(own.operation_R.tolist(), own.peer_R.tolist(), own.tag_R.tolist(), strict=True):
            if operation == Operation.SEND:
                sent[own.rank, peer].append(tag)
            else:
                received[peer, own.rank].append(tag)
    edges = sent.keys() & received.keys()
    return frozenset(
        edge for edge in edges if sent[edge] != received[edge] and Counter(sent[edge]) == Counter(received[edge])
    )


def _numbers() -> "array[int]":
    return array("q")


def _add(builder: TraceBuilder, own: _Requests, crossing: frozenset[Edge]) -> None:
    """Add a rank's requests to the trace."""
    is_send_R = own.operation_R == Operation.SEND
    crosses_R = [
        ((own.rank, peer) if is_send else (peer, own.rank)) in crossing
        for peer, is_send in zip(own.peer_R.tolist(), is_send_R.tolist(), strict=True)
    ]
    label_R = np.where(crosses_R, own.tag_R + 1, 0)
    pairs, group_R = np.unique(np.stack([own.peer_R, label_R], axis=1), axis=0, return_inverse=True)
    peers, labels = pairs[:, 0].tolist(), pairs[:, 1].tolist()
    builder.add_rank(
        own.rank,
        {
            "operation": own.operation_R,
            "peer": own.peer_R,
            "bytes": own.bytes_R,
            "compute_before_ps": own.ordered.work_ps_R,
        },
        groups=[(min(own.rank, peer), max(own.rank, peer)) for peer in peers],
        group_R=group_R.ravel(),
        tags=[f"tag {tag}" for tag in own.tag_R.tolist()],
        waits=own.ordered.waits,
        labels=labels,
    )
