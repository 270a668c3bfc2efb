"""Measured collectives of NCCL Inspector: one JSON object a line for each collective of each rank.

Inspector is a profiler plug-in of NCCL (2.28 and later) and writes a file for each process. A rank's time ends when the
last rank's data are there, so ranks that came early measure more than the last one: of a collective the longest time is
taken, and what lies between it and the shortest is the first rank's wait for the last, where several ranks are at hand.
A size has thousands of collectives; their medians stand for it.

Inspector's size of an all-gather and a reduce-scatter is one rank's share, nccl-tests' the whole buffer; the latter is
used here.

Source: NVIDIA/nccl v2.30.7, plugins/profiler/inspector/inspector_json.cc (keys) and inspector.cc (bandwidths).
Left out: point-to-point operations, and collectives that have no measurement here; both are counted. Event traces.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from fabrictune.collectives.measurement.measurements import MAX_RANKS, Measurement
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import open_foreign, read_head
from fabrictune.foundation.units import NS_PER_US
from fabrictune.foundation.wording import count, some

MAX_FILE_BYTES = 2**40
MAX_LINE_BYTES = 2**20
MAX_COLLECTIVES = 2_000_000
MAX_FILES = 100_000
NAMES: Mapping[str, str] = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "AlltoAll": "all_to_all",
}
_IN_SHARES = ("AllGather", "ReduceScatter")  # whose size is that of one rank's part
_GPU_CLOCK = "kernel_gpu"
_MARKS = (b'"coll_perf"', b'"p2p_perf"')
_HEAD_BYTES = 2**16
_MOST_US = 10**13  # of a collective: 115 days

Key = tuple[str, str, int, int, int]  # operation, communicator, its number, bytes, ranks


@dataclass(frozen=True, kw_only=True)
class InspectorResults:
    """Measured collectives of one job."""

    rows: tuple[Measurement, ...]
    hosts: tuple[str, ...]
    notes: tuple[str, ...]  # what was left out, and what the times are


def is_inspector(path: Path) -> bool:
    """Return whether a file, or the first file of a folder, has lines of Inspector."""
    first = next(iter(_files(path)), None) if path.is_dir() else path
    return first is not None and any(mark in read_head(first, _HEAD_BYTES) for mark in _MARKS)


def read_inspector(path: Path) -> InspectorResults:
    """Read a file, or all files of a folder; raises InputError where no collective is in them."""
    reader = _Reader()
    for file in _files(path) if path.is_dir() else (path,):
        reader.read(file)
    rows = tuple(reader.measurements())
    if not rows:
        found = "; ".join(["no collective with a size and a time", *reader.notes(())])
        allowed = f"lines with coll_perf of {', '.join(NAMES)}"
        raise InputError(Mistake(where=str(path), found=found, allowed=allowed))
    return InspectorResults(rows=rows, hosts=tuple(reader.hosts), notes=tuple(reader.notes(rows)))


def _files(folder: Path) -> Sequence[Path]:
    """Return the files that Inspector writes into a folder."""
    return sorted(folder.glob("*.log"))[:MAX_FILES]


class _Reader:
    """Collects the times of all ranks, collective by collective."""

    def __init__(self) -> None:
        self.times_us: dict[Key, tuple[float, float, int]] = {}  # shortest, longest, and how many ranks
        self.hosts: dict[str, None] = {}
        self.communicators: dict[str, str] = {}  # each name once, for millions of keys
        self.left_out: Counter[str] = Counter()
        self.num_damaged = 0
        self.num_cpu_timed = 0

    def read(self, path: Path) -> None:
        with open_foreign(path, max_bytes=MAX_FILE_BYTES) as file:
            is_continued = False
            while raw := file.readline(MAX_LINE_BYTES):
                is_whole = raw.endswith(b"\n") or len(raw) < MAX_LINE_BYTES
                if is_whole and not is_continued:
                    self._read_line(raw)
                elif not is_continued:
                    self.num_damaged += 1
                is_continued = not raw.endswith(b"\n")
                if len(self.times_us) > MAX_COLLECTIVES:
                    found = f"more than {MAX_COLLECTIVES:,} collectives"
                    raise InputError(Mistake(where=str(path), found=found, next_step="give the files of fewer steps"))

    def _read_line(self, raw: bytes) -> None:
        if not raw.strip():
            return
        try:
            record = json.loads(raw)
            header, metadata = record["header"], record["metadata"]
            if "p2p_perf" in record:
                self.left_out["point-to-point"] += 1
                return
            self._add(header, metadata, record["coll_perf"])
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            self.num_damaged += 1

    def _add(self, header: Mapping[str, Any], metadata: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
        """Add one rank's time of a collective; raises one of the errors above for what is none."""
        name, num_ranks = str(measured["coll"]), _whole(header["n_ranks"], 2, MAX_RANKS - 1)
        if name not in NAMES:
            self.left_out[name[:40]] += 1
            return
        size = _whole(measured["coll_msg_size_bytes"], 1, 2**60) * (num_ranks if name in _IN_SHARES else 1)
        time_us = float(_whole(measured["coll_exec_time_us"], 1, _MOST_US))
        communicator = str(header["id"])[:40]
        communicator = self.communicators.setdefault(communicator, communicator)
        key = NAMES[name], communicator, _whole(measured["coll_sn"], 0, 2**63), size, num_ranks
        shortest, longest, seen = self.times_us.get(key, (time_us, time_us, 0))
        self.times_us[key] = min(shortest, time_us), max(longest, time_us), seen + 1
        self.hosts[str(metadata["hostname"])[:255]] = None
        self.num_cpu_timed += measured.get("coll_timing_source", _GPU_CLOCK) != _GPU_CLOCK

    def measurements(self) -> Iterator[Measurement]:
        """Yield one measurement for each operation, size and number of ranks."""
        groups = defaultdict[tuple[str, int, int], list[tuple[float, float]]](list)
        for (name, _, _, size, num_ranks), (shortest, longest, _) in self.times_us.items():
            groups[name, num_ranks, size].append((shortest, longest))
        for (name, num_ranks, size), times in sorted(groups.items()):
            yield Measurement(
                name=name,
                is_in_place=False,
                size_bytes=size,
                num_ranks=num_ranks,
                mean_ns=median(longest for _, longest in times) * NS_PER_US,
                skew_ns=median(longest - shortest for shortest, longest in times) * NS_PER_US,
            )

    def notes(self, rows: Iterable[Measurement]) -> Iterator[str]:
        if any(True for _ in rows):
            most = max(seen for _, _, seen in self.times_us.values())
            yield (
                f"NCCL Inspector: medians of {count(len(self.times_us), 'collective')}, each the longest of up to "
                f"{count(most, 'rank')}; whether they were in place is not logged"
            )
        if self.left_out:
            kinds = some(f"{name} {number:,}" for name, number in sorted(self.left_out.items()))
            yield f"operations without a measurement here, left out: {kinds}"
        if self.num_damaged:
            yield f"lines that are no record of Inspector, left out: {self.num_damaged:,}"
        if self.num_cpu_timed:
            yield f"times by the processor's clock instead of the GPU's: {self.num_cpu_timed:,}"


def _whole(value: Any, least: int, most: int) -> int:
    """Return a whole number within bounds; raises ValueError for anything else."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(value)
    return value
