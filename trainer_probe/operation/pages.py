"""A rank's page: what it does now, in a small shared file that others read without its help.

The rank writes each change as a record of its own, by turns into two places; a record has its number and a CRC-32. The
reader takes the one with the higher number whose CRC holds. A rank that is stopped, killed or hangs in the middle of a
write has left the record before it whole, and a record that is written while it is read fails its CRC.

A record has by group how many requests were issued, up to which one they are complete, and operation and size of the
last one. A request counts as complete when the rank has waited for it. A page has room for 500 groups; requests of
further ones are counted together.
"""

import os
import struct
import threading
import time
import zlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from mmap import mmap
from pathlib import Path
from typing import Final, Self, cast, get_args

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.redaction import redact_secrets
from fabrictune.foundation.visible_text import printable
from fabrictune.trainer_probe.operation.observations import Section

MAX_GROUPS = 500
MAX_TAG_BYTES = 64
MAX_ERROR_BYTES = 1000

_SECTIONS: Final = cast("tuple[Section, ...]", get_args(Section))
_MAGIC = b"fabrictune page2"
_HEADER = struct.Struct("<16sQ")  # and the process's id
_ERROR = struct.Struct("<IH")  # CRC and length
_WORD_BYTES = 8
# A record's words: CRC, number, section, step, whether it waits, group, request, bytes, groups, further requests
_CRC, _NUMBER, _SECTION, _STEP, _WAITS, _GROUP, _REQUEST, _SENT, _NUM_GROUPS, _UNCOUNTED = range(10)
_TAG = 10  # its words
_COUNTS = _TAG + MAX_TAG_BYTES // _WORD_BYTES  # the groups' words
_GROUP_WORDS = 4  # group, requests issued, requests up to the last complete one, operation and bytes of the last one
_ISSUED, _COMPLETED, _LAST = 1, 2, 3
_NUM_OPERATIONS = 16  # that the bytes of a last request are multiplied with, before its operation is added
_RECORD_BYTES = (_COUNTS + _GROUP_WORDS * MAX_GROUPS) * _WORD_BYTES
_READ_AT_ONCE = 30 * _GROUP_WORDS  # words of groups that are nearly always all
_ERROR_AT, _RECORDS_AT = 64, 2048
_PAGE_BYTES = _RECORDS_AT + 2 * _RECORD_BYTES
_FOR_REQUEST, _FOR_SERVICE = 1, 2  # what a rank waits for; 0 for nothing
_MAX_READS = 10_000  # of a page whose rank writes at each of them
_NO_TAG = b"\0" * MAX_TAG_BYTES


@dataclass(frozen=True, kw_only=True)
class PageReading:
    """A page at one moment; the fields are those of `RankStatus`, and what is known of each group's requests."""

    pid: int
    section: Section
    step: int
    num_changes: int
    issued: Mapping[int, int] = field(default_factory=dict)
    completed: Mapping[int, int] = field(default_factory=dict)  # requests up to the last complete one, by group
    last: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # operation and bytes of the last one, by group
    num_uncounted: int = 0  # requests of groups that the page has no room for
    waits_for: tuple[int, int] | None = None
    tag: str = ""
    sent_bytes: int = 0
    error: str = ""


class RankPage:
    """The page of this process, which alone writes it, from any of its threads."""

    def __init__(self, memory: mmap) -> None:
        self._memory = memory
        self._lock = threading.RLock()  # a signal's handler may write in the middle of a write
        self._record = memoryview(bytearray(_RECORD_BYTES))
        self._words = self._record.cast("q")
        self._words[_STEP] = -1
        self._place: dict[int, int] = {}  # of a group's words
        self._tags: dict[str, memoryview] = {}
        self._size_up()
        self._publish()

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make the page of this process in the place of what is there; raises InputError where it cannot be written."""
        half = path.with_name(f".{path.name}-{os.getpid()}.half")
        try:
            half.unlink(missing_ok=True)
            descriptor = os.open(half, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, _PAGE_BYTES)  # a full /dev/shm is known now and not by a SIGBUS later
                memory = mmap(descriptor, _PAGE_BYTES)
            finally:
                os.close(descriptor)
            memory[: _HEADER.size] = _HEADER.pack(_MAGIC, os.getpid())
            page = cls(memory)
            half.replace(path)
        except OSError as error:
            raise InputError(Mistake(where=str(path), found=f"cannot be written ({error.strerror})")) from error
        return page

    def section(self, name: Section) -> None:
        """Write which section of the training begins."""
        with self._lock:
            self._words[_SECTION] = _SECTIONS.index(name)
            self._publish()

    def step(self, number: int) -> None:
        """Write which step runs, or runs next."""
        with self._lock:
            self._words[_STEP] = number
            self._publish()

    def issue(self, group: int, tag: str, num_bytes: int, operation: int = 0) -> int:
        """Count a request of a group; returns its number in it, -1 where the page has no room for the group."""
        with self._lock:
            words = self._words
            words[_SENT] += num_bytes
            place = self._place.get(group)
            if place is None:
                place = self._add(group)
            if place < 0:
                words[_UNCOUNTED] += 1
                number = -1
            else:
                number = words[place + _ISSUED]
                words[place + _ISSUED] = number + 1
                words[place + _LAST] = num_bytes * _NUM_OPERATIONS + operation
            self._publish()
            return number

    def wait(self, group: int, number: int, tag: str) -> None:
        """Write for which request of a group the rank waits."""
        with self._lock:
            words = self._words
            words[_WAITS] = _FOR_REQUEST
            words[_GROUP] = group
            words[_REQUEST] = number
            words[_TAG:_COUNTS] = self._tags.get(tag) or self._encode(tag)
            self._publish()

    def wait_for_service(self, name: str) -> None:
        """Write that the rank waits for what is no request: "loader", "store"."""
        with self._lock:
            self._words[_WAITS] = _FOR_SERVICE
            self._words[_TAG:_COUNTS] = self._encode(name)
            self._publish()

    def done_waiting(self) -> None:
        """Write that the rank waits for nothing."""
        with self._lock:
            self._words[_WAITS] = 0
            self._publish()

    def complete(self, group: int, number: int) -> None:
        """Write that a request of a group is complete, and that the rank waits for nothing."""
        with self._lock:
            words = self._words
            words[_WAITS] = 0
            place = self._place.get(group, -1)
            if place >= 0 and words[place + _COMPLETED] <= number:
                words[place + _COMPLETED] = number + 1
            self._publish()

    def fail(self, text: str) -> None:
        """Write the rank's error, in one line and without secrets, and that it has failed."""
        line = redact_secrets(printable(" ".join(text[: 4 * MAX_ERROR_BYTES].split())))
        content = line.encode(errors="replace")[:MAX_ERROR_BYTES]
        with self._lock:
            written = _ERROR.pack(zlib.crc32(content), len(content)) + content
            self._memory[_ERROR_AT : _ERROR_AT + len(written)] = written
            self._words[_SECTION] = _SECTIONS.index("failed")
            self._publish()

    def _add(self, group: int) -> int:
        """Return the place of a new group's words, -1 where there is no room."""
        words, number = self._words, self._words[_NUM_GROUPS]
        if number == MAX_GROUPS:
            return -1
        words[_NUM_GROUPS] = number + 1
        place = self._place[group] = _COUNTS + _GROUP_WORDS * number
        words[place] = group
        self._size_up()
        return place

    def _encode(self, tag: str) -> memoryview:
        """Return a tag's words; a run has few tags."""
        if len(self._tags) >= MAX_GROUPS:
            self._tags.clear()
        content = (tag.encode(errors="replace")[:MAX_TAG_BYTES] + _NO_TAG)[:MAX_TAG_BYTES]
        encoded = self._tags[tag] = memoryview(content).cast("q")
        return encoded

    def _size_up(self) -> None:
        """Take the part of the record that is in use, and its two places in the page."""
        size = (_COUNTS + _GROUP_WORDS * self._words[_NUM_GROUPS]) * _WORD_BYTES
        self._used, self._checked = self._record[:size], self._record[_WORD_BYTES:size]
        self._targets = [slice(begin, begin + size) for begin in (_RECORDS_AT, _RECORDS_AT + _RECORD_BYTES)]

    def _publish(self) -> None:
        words = self._words
        number = words[_NUMBER] = words[_NUMBER] + 1
        words[_CRC] = zlib.crc32(self._checked)
        self._memory[self._targets[number & 1]] = self._used


def read_page(path: Path) -> PageReading:
    """Return what a page shows now; raises InputError where it is none, or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(Mistake(where=str(path), found=f"cannot be read ({error.strerror})")) from error
    try:
        return _read(descriptor, path)
    except OSError as error:
        raise InputError(Mistake(where=str(path), found=f"cannot be read ({error.strerror})")) from error
    finally:
        os.close(descriptor)


def _read(descriptor: int, path: Path) -> PageReading:
    header = os.pread(descriptor, _HEADER.size, 0)
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        raise InputError(Mistake(where=str(path), found="not a page of a rank"))
    for attempt in range(_MAX_READS):
        records = [words for place in (0, 1) if (words := _read_record(descriptor, place)) is not None]
        if records:
            words = max(records, key=lambda words: words[_NUMBER])
            return _reading(words, pid=_HEADER.unpack(header)[1], error=_read_error(descriptor))
        if attempt > _MAX_READS // 10:
            time.sleep(1e-4)
    raise InputError(Mistake(where=str(path), found="damaged: no record of it is whole"))


def _read_record(descriptor: int, place: int) -> "array[int] | None":
    """Return the words of the record at one of the two places, or None where it is not whole."""
    begin = _RECORDS_AT + place * _RECORD_BYTES
    content = os.pread(descriptor, (_COUNTS + _READ_AT_ONCE) * _WORD_BYTES, begin)
    if len(content) < _COUNTS * _WORD_BYTES:
        return None
    words = array("q", content[: len(content) - len(content) % _WORD_BYTES])
    num_words = _COUNTS + _GROUP_WORDS * words[_NUM_GROUPS]
    if not _COUNTS <= num_words <= _COUNTS + _GROUP_WORDS * MAX_GROUPS:
        return None
    if num_words > len(words):
        content = os.pread(descriptor, num_words * _WORD_BYTES, begin)
        if len(content) < num_words * _WORD_BYTES:
            return None
        words = array("q", content)
    del words[num_words:]
    is_whole = zlib.crc32(memoryview(words).cast("B")[_WORD_BYTES:]) == words[_CRC]
    return words if is_whole and words[_NUMBER] > 0 and 0 <= words[_SECTION] < len(_SECTIONS) else None


def _reading(words: "array[int]", *, pid: int, error: str) -> PageReading:
    groups, issued, completed, last = (words[_COUNTS + place :: _GROUP_WORDS] for place in range(_GROUP_WORDS))
    return PageReading(
        pid=pid,
        section=_SECTIONS[words[_SECTION]],
        step=words[_STEP],
        num_changes=words[_NUMBER],
        issued=dict(zip(groups, issued, strict=True)),
        completed=dict(zip(groups, completed, strict=True)),
        last={group: divmod(word, _NUM_OPERATIONS)[::-1] for group, word in zip(groups, last, strict=True)},
        num_uncounted=words[_UNCOUNTED],
        waits_for=(words[_GROUP], words[_REQUEST]) if words[_WAITS] == _FOR_REQUEST else None,
        tag=words[_TAG:_COUNTS].tobytes().rstrip(b"\0").decode(errors="replace") if words[_WAITS] else "",
        sent_bytes=words[_SENT],
        error=error,
    )


def _read_error(descriptor: int) -> str:
    """Return the error of a page, "" where there is none or it is not whole."""
    content = os.pread(descriptor, _ERROR.size + MAX_ERROR_BYTES, _ERROR_AT)
    crc, length = _ERROR.unpack_from(content)
    text = content[_ERROR.size : _ERROR.size + length]
    return text.decode(errors="replace") if length and zlib.crc32(text) == crc else ""
