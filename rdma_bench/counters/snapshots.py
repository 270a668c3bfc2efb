"""Snapshots: counters of NICs as they stood at one moment, and settings that the same files hold.

A snapshot is a file, or a folder of files, one a host; or the live folder of a host's devices, `/sys/class/infiniband`.
What is no counter of a form below is counted, and the first of it is named in a note.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fabrictune.foundation.documents import MAX_BYTES, read_text
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.rdma_bench.counters.catalog import CounterClass, CounterMeaning, meaning_of
from fabrictune.rdma_bench.counters.json_forms import read_json_counters
from fabrictune.rdma_bench.counters.readings import MAX_COUNTERS, Reading
from fabrictune.rdma_bench.counters.sysfs import is_sysfs, sysfs_lines
from fabrictune.rdma_bench.counters.text_forms import read_lines

FORMS = "ethtool -S, perfquery, rdma statistic (text or -j), counters of /sys as `grep . *` prints them, mlnx_qos"

_JSON = re.compile(r"\s*(\[\s*[{\[\]]|\{)")
MAX_FILES = 10_000
MAX_NAMED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Counter:
    """One counter."""

    device: str  # "" where the file does not name it
    name: str
    value: int
    meaning: CounterMeaning
    where: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Counters by device and name, settings by device and name, and notes on what was left out."""

    counters: dict[tuple[str, str], Counter] = field(default_factory=dict)
    settings: dict[tuple[str, str], str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_snapshot(path: Path) -> Snapshot:
    """Return the counters in a file or folder; raises InputError."""
    if is_sysfs(path):
        return merge_readings([("", read_lines(sysfs_lines(path), path))], str(path))
    files = _files_at(path)
    if len(files) == 1:
        return merge_readings([("", _read_file(files[0]))], str(path))
    return merge_readings([(file.name.split(".")[0], _read_file(file)) for file in files], str(path))


def _files_at(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    if not files or len(files) > MAX_FILES:
        found = f"a folder with {len(files)} files"
        next_step = "give a file, or a folder with one a host"
        raise InputError(Mistake(where=str(path), found=found, allowed=f"1 to {MAX_FILES:,}", next_step=next_step))
    return files


def _read_file(path: Path) -> Reading:
    text = read_text(path, max_bytes=MAX_BYTES)
    return read_json_counters(path) if _JSON.match(text) else read_lines(text.split("\n"), path)


def merge_readings(readings: Iterable[tuple[str, Reading]], where: str) -> Snapshot:
    """Return the counters of all hosts, each with its name; raises InputError where there is none."""
    counters: dict[tuple[str, str], Counter] = {}
    settings: dict[tuple[str, str], str] = {}
    notes: list[str] = []
    for host, reading in readings:
        num_repeated = 0
        for value in reading.values:
            device = f"{host}/{value.device}".strip("/")
            num_repeated += (device, value.name) in counters
            meaning = meaning_of(value.name, is_extended=value.is_extended)
            counters[device, value.name] = Counter(
                device=device, name=value.name, value=value.value, meaning=meaning, where=value.where
            )
        if len(counters) > MAX_COUNTERS:
            found, allowed = f"more than {MAX_COUNTERS:,} counters", "fewer devices at a time"
            raise InputError(Mistake(where=where, found=found, allowed=allowed))
        for (device, name), text in reading.settings.items():
            settings[f"{host}/{device}".strip("/"), name] = text
        notes += reading.notes
        if num_repeated:
            notes.append(f"{reading.path}: counters that the file has again, of which the last counts: {num_repeated}")
    if not counters and not settings:
        raise InputError(Mistake(where=where, found="no counter", allowed=FORMS))
    notes += _unknown(counters.values())
    return Snapshot(counters=counters, settings=settings, notes=tuple(notes))


def _unknown(counters: Iterable[Counter]) -> list[str]:
    """Return a note of the counters that rose and whose name has no known meaning."""
    names = dict.fromkeys(
        counter.name
        for counter in counters
        if counter.meaning.counter_class == CounterClass.NOT_KNOWN and counter.value
    )
    if not names:
        return []
    more = ", ..." if len(names) > MAX_NAMED else ""
    return [f"counters of unknown meaning, not judged: {len(names)} ({', '.join([*names][:MAX_NAMED])}{more})"]
