"""A log of NCCL as evidence: where ranks run, collectives that they issued (subsystem COLL), and completion errors.

A line of COLL has the collective's number (`opCount`), which counts all operations of a communicator alike; where it
stays 0, as in communicators of one host since 2.27, the lines themselves are counted.

Source: NCCL, src/enqueue.cc (the line of COLL), src/init.cc.
Left out: messages, whose numbers are not those of a pair.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from fabrictune.collectives.nccl.completion_errors import completion_errors
from fabrictune.collectives.nccl.log import NcclLog, read_nccl_log
from fabrictune.collectives.nccl.log_lines import MAX_LINE_BYTES, NO_HOST, LogLine, split_line
from fabrictune.foundation.foreign_files import open_foreign, read_head
from fabrictune.observability.hangs.evidence import (
    MAX_REQUESTS,
    UNKNOWN,
    Evidence,
    Group,
    Progress,
    Request,
    Sign,
    SignKind,
    Who,
)

SOURCE = "NCCL log"
MAX_FILE_BYTES = 2**40
_HEAD_BYTES = 2**20
_MARK = b" NCCL INFO "
_COLLECTIVE = re.compile(
    r"^(?P<kind>\w{1,40}): opCount (?P<number>[0-9a-f]{1,16}) sendbuff .{1,80}? count (?P<size>\d{1,18}) "
    r"datatype \d{1,3} op \d{1,3} root -?\d{1,9} comm (?P<pointer>0x[0-9a-f]{1,16}) \[nranks=(?P<num_ranks>\d{1,7})\]"
)
_POINTER = re.compile(
    r"\bcomm (?P<pointer>0x[0-9a-f]{1,16}) rank (?P<rank>\d{1,7}) n[rR]anks (?P<num_ranks>\d{1,7}) .*"
    r"commId (?P<communicator>0x[0-9a-f]{1,16})"
)
_MESSAGES = ("Send", "Recv")

Process = tuple[str, int]  # host and process
Pointer = tuple[str, int, str]  # and the address of a communicator


def is_nccl_log(path: Path) -> bool:
    """Return whether a file has messages of NCCL near its beginning."""
    return _MARK in read_head(path, _HEAD_BYTES)


def read_log_evidence(paths: Sequence[Path]) -> tuple[Evidence, NcclLog]:
    """Return what the logs of a job say, and the log itself, which has the connections; raises InputError."""
    log = read_nccl_log(paths)
    reader = _Reader()
    for path in paths:
        for line in _lines_of_collectives(path):
            if line.host != NO_HOST:
                reader.read(line)
    progress = tuple(reader.progress())
    evidence = Evidence(
        source=SOURCE,
        groups=tuple(_groups(log)),
        progress=progress,
        signs=tuple(_signs(log)),
        num_files=len(paths),
        notes=tuple(reader.notes()),
    )
    return evidence, log


class _Reader:
    """Collects the last collective of each process in each communicator."""

    def __init__(self) -> None:
        self.num_messages = self.num_unnamed = 0
        self._communicator: dict[Pointer, str] = {}
        self._last: dict[Pointer, tuple[int, int, LogLine]] = {}  # own count, NCCL's number
        self._requests: defaultdict[Pointer, deque[Request]] = defaultdict(lambda: deque(maxlen=MAX_REQUESTS))

    def read(self, line: LogLine) -> None:
        """Take what a message says."""
        if match := _COLLECTIVE.search(line.message):
            if match["kind"] in _MESSAGES:
                self.num_messages += 1
                return
            key = (line.host, line.pid, match["pointer"])
            count = self._last[key][0] + 1 if key in self._last else 1
            self._requests[key].append(Request(kind=match["kind"], size=int(match["size"])))
            self._last[key] = count, int(match["number"], 16), line
        elif match := _POINTER.search(line.message):
            self._communicator[line.host, line.pid, match["pointer"]] = match["communicator"]

    def progress(self) -> Iterator[Progress]:
        """Yield the last collectives that each process issued."""
        counts_itself = {
            name for key, (_, number, _) in self._last.items() if number and (name := self._communicator.get(key))
        }
        for key, (count, number, line) in self._last.items():
            name = self._communicator.get(key)
            if name is None:
                self.num_unnamed += 1
                continue
            issued = number + 1 if name in counts_itself else count
            requests = self._requests[key]
            yield Progress(
                who=Who(host=line.host, pid=line.pid, gpu=line.gpu),
                group=name,
                where=line.where,
                issued=issued,
                requests=dict(enumerate(requests, issued + 1 - len(requests))),
            )

    def notes(self) -> Iterator[str]:
        """Yield what was left out."""
        if self.num_messages:
            yield f"NCCL log: messages between two ranks, left out: {self.num_messages:,}"
        if self.num_unnamed:
            yield f"NCCL log: collectives of communicators without a name, left out: {self.num_unnamed:,}"


def _lines_of_collectives(path: Path) -> Iterator[LogLine]:
    """Yield the messages of lines about collectives and communicators; a log has many others."""
    with open_foreign(path, max_bytes=MAX_FILE_BYTES) as file:
        number, is_continued = 0, False
        while raw := file.readline(MAX_LINE_BYTES):
            number += not is_continued
            is_continued = not raw.endswith(b"\n")
            if b" opCount " in raw or b" commId " in raw:
                yield from split_line(raw.decode(errors="replace").rstrip("\r\n"), f"{path}:{number}")


def _groups(log: NcclLog) -> Iterator[Group]:
    members: dict[str, dict[int, Who]] = {}
    sizes: dict[str, int] = {}
    for fact in log.ranks:
        if fact.communicator:
            members.setdefault(fact.communicator, {})[fact.rank] = Who(host=fact.host, pid=fact.pid, gpu=fact.gpu)
            sizes[fact.communicator] = max(fact.num_ranks, sizes.get(fact.communicator, UNKNOWN))
    for name, found in members.items():
        yield Group(name=name, communicator=name, size=sizes[name], members=found)


def _signs(log: NcclLog) -> Iterator[Sign]:
    pid_of = {(fact.host, fact.gpu): fact.pid for fact in log.ranks}
    for error in completion_errors(log):
        who = Who(host=error.host, pid=pid_of.get((error.host, error.gpu), UNKNOWN), gpu=error.gpu)
        text = f"completion error {error.status} (vendor {error.vendor_error}) at {error.local}, towards {error.peer}"
        yield Sign(who=who, kind=SignKind.FAILED, text=text, where=error.where)
