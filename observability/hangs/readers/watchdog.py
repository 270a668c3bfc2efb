"""Lines of PyTorch's NCCL watchdog as evidence: requests that timed out, and ranks that had none open.

`[Rank 3]` is the rank in the process group, `[rank3]:` before it the rank of the job; without the latter, and in a
group that is not the default one, the job's rank is not known. A timeout's line names no group: the status line of the
same process that follows it does.

Source: PyTorch, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, versions 2.0 to 2.13.
Left out: the stacks that follow an error.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fabrictune.collectives.nccl.log_lines import MAX_LINE_BYTES
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import open_foreign
from fabrictune.observability.hangs.evidence import (
    UNKNOWN,
    Evidence,
    Group,
    Progress,
    Request,
    Sign,
    SignKind,
    Timing,
    Who,
)

SOURCE = "watchdog"
MAX_FILE_BYTES = 2**40
MAX_PLACES = 1_000_000
JOB_GROUP = "default_pg"
_MARKS = (b"ProcessGroupNCCL", b"WorkNCCL(", b"NCCL work:", b"exitcode", b"(local_rank", b"[rank")
_JOB_RANK = re.compile(r"\[rank(\d{1,7})\]")
_GROUP = re.compile(
    r"\[PG (?:ID )?(?P<id>\d{1,9})(?: PG GUID (?P<guid>[^\s(]{1,80})(?:\((?P<label>[^)]{0,80})\))?)? "
    r"Rank (?P<rank>\d{1,7})\]"
)
_TIMEOUT = re.compile(
    r"\[Rank (?P<rank>\d{1,7})\] .{0,80}?timeout: WorkNCCL\(SeqNum=(?P<number>\d{1,18}), OpType=(?P<kind>\w{1,40}), "
    r"NumelIn=(?P<size>\d{1,18}), NumelOut=\d{1,18}, Timeout\(ms\)=\d{1,12}\)"
    r"(?: ran for (?P<elapsed>\d{1,12}) milliseconds)?"
)
_STATUS = re.compile(
    r"last enqueued (?:NCCL )?work: (?P<issued>-?\d{1,18}),"
    r"(?: last started (?:NCCL )?work: (?P<started>-?\d{1,18})[^,]{0,60},)?"
    r" last completed (?:NCCL )?work: (?P<completed>-?\d{1,18})",
    re.IGNORECASE,
)
_AT = re.compile(r"(?:at (?:NCCL )?work(?: sequence id)?|Timeout at NCCL work): (?P<number>\d{1,18})")
_EXIT_RANK = re.compile(r"^\s{1,9}rank\s{1,9}: (?P<rank>\d{1,7}) \(local_rank")
_EXIT_CODE = re.compile(r"^\s{1,9}exitcode\s{1,9}: (?P<code>-?\d{1,4}) \(pid: (?P<pid>\d{1,10})\)")
_ABORTED = -6  # as the watchdog itself ends a process
_OBSERVED = "dump signal"


class _TimedOut(NamedTuple):
    """A request that timed out, until the line that names its group."""

    number: int
    request: Request
    where: str
    elapsed_ms: int


@dataclass(kw_only=True)
class _Seen:
    """What the lines of a process say of a group."""

    who: Who
    label: str = ""
    where: str = ""
    issued: int | None = None
    started: int | None = None
    completed: int | None = None
    requests: dict[int, Request] = field(default_factory=dict)
    open_ms: dict[int, int] = field(default_factory=dict)  # by request


def read_watchdog_evidence(path: Path) -> Evidence | None:
    """Return what a log's lines of the watchdog and of torchrun say, None where there are none; raises InputError."""
    reader = _Reader()
    with open_foreign(path, max_bytes=MAX_FILE_BYTES) as file:
        number, is_continued = 0, False
        while raw := file.readline(MAX_LINE_BYTES):
            number += not is_continued
            is_continued = not raw.endswith(b"\n")
            if any(mark in raw for mark in _MARKS) or reader.is_in_exit:
                reader.read(raw.decode(errors="replace"), f"{path}:{number}")
            if len(reader.seen) > MAX_PLACES:
                found = f"more than {MAX_PLACES:,} ranks of groups"
                raise InputError(Mistake(where=str(path), found=found, next_step="give the logs of fewer hosts"))
    if not reader.seen and not reader.signs:
        return None
    return Evidence(
        source=SOURCE,
        groups=tuple(reader.groups()),
        progress=tuple(reader.progress()),
        timings=tuple(reader.timings()),
        signs=tuple(reader.signs),
        notes=tuple(reader.notes(path)),
    )


class _Reader:
    """Collects what lines say, by group and place in it."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, int], _Seen] = {}
        self.signs: list[Sign] = []
        self.is_in_exit = False
        self._timeouts: dict[int, _TimedOut] = {}  # by rank in the group, until the group is known
        self._exit_rank = UNKNOWN
        self._num_assumed = Counter[str]()

    def read(self, line: str, where: str) -> None:
        """Take what a line says."""
        if match := _EXIT_RANK.search(line):
            self.is_in_exit, self._exit_rank = True, int(match["rank"])
        elif match := _EXIT_CODE.search(line):
            self._on_exit(int(match["code"]), int(match["pid"]), where)
        elif match := _TIMEOUT.search(line):
            request = Request(kind=match["kind"].lower(), size=int(match["size"]))
            place = int(match["rank"])
            if previous := self._timeouts.pop(_job_rank(line, place), None):
                self._add_timeout(JOB_GROUP, JOB_GROUP, place, _job_rank(line, place), previous)
            elapsed_ms = int(match["elapsed"] or 0)
            self._timeouts[_job_rank(line, place)] = _TimedOut(int(match["number"]), request, where, elapsed_ms)
        elif match := _GROUP.search(line):
            self._on_group(match, line, where)

    def _on_group(self, match: re.Match[str], line: str, where: str) -> None:
        status = _STATUS.search(line)
        if status is None:
            return
        label = match["label"] or ""
        is_default = label == JOB_GROUP or (not label and match["id"] == "0")
        name = JOB_GROUP if is_default else match["guid"] or match["id"]
        place = int(match["rank"])
        rank = _job_rank(line, place if is_default else UNKNOWN)
        seen = self._of(name, JOB_GROUP if is_default else label, place, rank, where)
        seen.issued = int(status["issued"])
        seen.completed = int(status["completed"])
        seen.started = None if status["started"] in (None, "-1") else int(status["started"])
        timeout = self._timeouts.get(_job_rank(line, place))
        at = _AT.search(line)
        if timeout is not None and at is not None and int(at["number"]) == timeout.number:
            seen.requests[timeout.number] = timeout.request
            seen.open_ms[timeout.number] = timeout.elapsed_ms
            del self._timeouts[_job_rank(line, place)]
        if _OBSERVED in line and seen.issued <= seen.completed:
            text = f"had no request open when others timed out (last issued {seen.issued}, complete)"
            self.signs.append(Sign(who=seen.who, kind=SignKind.ALIVE, text=text, where=where))

    def _add_timeout(self, name: str, label: str, place: int, rank: int, timeout: "_TimedOut") -> None:
        number, request, where, elapsed_ms = timeout
        seen = self._of(name, label, place, rank, where)
        seen.issued = max(number, UNKNOWN if seen.issued is None else seen.issued)
        seen.completed = number - 1 if seen.completed is None else seen.completed
        seen.requests[number] = request
        seen.open_ms[number] = elapsed_ms

    def _of(self, name: str, label: str, place: int, rank: int, where: str) -> _Seen:
        seen = self.seen.get((name, place))
        if seen is None:
            seen = self.seen[name, place] = _Seen(who=Who(rank=rank), label=label, where=where)
        return seen

    def _on_exit(self, code: int, pid: int, where: str) -> None:
        if self.is_in_exit and code != _ABORTED:
            who = Who(rank=self._exit_rank, pid=pid)
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            self.signs.append(Sign(who=who, kind=SignKind.GONE, text=f"ended {how}, says its launcher", where=where))
        self.is_in_exit = False

    def _close(self) -> None:
        """Put timeouts whose group no line names into the default group."""
        for rank, timeout in self._timeouts.items():
            self._num_assumed["timeouts without a group, taken as of the default group"] += 1
            self._add_timeout(JOB_GROUP, JOB_GROUP, rank, rank, timeout)
        self._timeouts.clear()

    def groups(self) -> Iterator[Group]:
        """Yield the groups of all lines."""
        self._close()
        members: dict[str, dict[int, Who]] = {}
        labels: dict[str, str] = {}
        for (name, place), seen in self.seen.items():
            members.setdefault(name, {})[place] = seen.who
            labels.setdefault(name, seen.label)
        for name, found in members.items():
            is_job = labels[name] == JOB_GROUP
            if is_job:
                found = {place: Who(rank=place) for place in range(max(found) + 1)} | found
            yield Group(name=name, label=labels[name], members=found, is_job=is_job)

    def progress(self) -> Iterator[Progress]:
        """Yield how far each rank has come."""
        for (name, _), seen in self.seen.items():
            yield Progress(
                who=seen.who,
                group=name,
                where=seen.where,
                issued=seen.issued,
                started=seen.started,
                completed=seen.completed,
                requests=seen.requests,
            )

    def timings(self) -> Iterator[Timing]:
        """Yield for how long requests have been open."""
        for (name, _), seen in self.seen.items():
            for number, elapsed_ms in seen.open_ms.items():
                if elapsed_ms:
                    yield Timing(
                        who=seen.who,
                        group=name,
                        number=number,
                        request=seen.requests[number],
                        elapsed_us=1000.0 * elapsed_ms,
                        is_complete=False,
                    )

    def notes(self, path: Path) -> Iterator[str]:
        """Yield what was assumed."""
        for what, number in self._num_assumed.items():
            yield f"{path}: {what}: {number:,}"


def _job_rank(line: str, otherwise: int) -> int:
    match = _JOB_RANK.search(line)
    return int(match[1]) if match else otherwise
