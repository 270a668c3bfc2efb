"""Measured times from files: nccl-tests, NCCL Inspector, perftest, and records of them and of our own bench.

The content of a file says what it is. A bandwidth of perftest is a time by message: many are under way at once, and
one is done after each time of that length. Both directions at once are another quantity, and are left out.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabrictune.collectives.measurement.files import ImportHints, read_measurements
from fabrictune.collectives.measurement.measurements import TABLE
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import open_foreign, read_head
from fabrictune.foundation.record_folders import HEAD
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.units import BITS_PER_BYTE, NS_PER_S
from fabrictune.rdma_bench.measurement.perftest_files import NOT_PRINTED, PerftestRow, read_perftest
from fabrictune.rdma_bench.measurement.perftest_record import KIND as PERFTEST_KIND
from fabrictune.rdma_bench.measurement.perftest_record import TABLE as PERFTEST_TABLE
from fabrictune.validate.fit.series import MeasuredTime, SeriesKey

ALLOWED = (
    "output of nccl-tests (text or -J), NCCL Inspector or perftest, or a record of coll bench, coll import or "
    "rdma import"
)
_PERFTEST = re.compile(rb"#bytes\s|RDMA_\w+ (?:BW|Latency) Test|Send (?:BW|Latency) Test|\"?test_info\"?\s*:")
_OTHERS = (
    (
        re.compile(rb"(?m)^(?:NIC statistics:|\s*\w+_phy: \d|# Port (?:extended )?counters|link \w+/\d+ )"),
        "counters of NICs",
    ),
    (re.compile(rb"\AHardware|(?m:^nvlink:)"), "a hardware profile"),
    (re.compile(rb"(?m)^fabric:|^traffic:"), "a scenario"),
    (re.compile(rb"\APAR1"), "a table of Parquet"),
)
_NEXT = {"counters of NICs": "give the snapshots before and after as --counters BEFORE AFTER"}
_HEAD_BYTES = 2**16
GLOO = "gloo"
MAX_FILE_BYTES = 2**40


@dataclass(frozen=True, kw_only=True)
class MeasuredFile:
    """Times of one file or record, and what was left out."""

    path: Path
    digest: str  # of its content, SHA-256
    times: tuple[MeasuredTime, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FitHints:
    """Facts that the user states because a file may not have them."""

    operation: str | None = None
    num_ranks: int | None = None
    num_hosts: int | None = None


def read_times(path: Path, hints: FitHints) -> MeasuredFile:
    """Return the times in a file or record; raises InputError, which names what a file of another kind is."""
    kind = _record_kind(path)
    if kind == PERFTEST_KIND or (kind is None and path.is_file() and _PERFTEST.search(read_head(path, _HEAD_BYTES))):
        return _from_perftest(path, is_record=kind is not None)
    if kind not in (None, "coll bench", "coll import"):
        raise InputError(Mistake(where=str(path), found=f"a record of {kind!r}", allowed=ALLOWED))
    if kind is None and path.is_file():
        _refuse_others(path)
    return _from_collectives(path, hints, kind)


def _record_kind(path: Path) -> str | None:
    """Return the kind of a record, None for what is none."""
    return RunRecord.read(path, tables=()).kind if path.is_dir() and (path / HEAD).exists() else None


def _refuse_others(path: Path) -> None:
    head = read_head(path, _HEAD_BYTES)
    for pattern, what in _OTHERS:
        if pattern.search(head):
            next_step = _NEXT.get(what, "")
            raise InputError(Mistake(where=str(path), found=what, allowed=ALLOWED, next_step=next_step))


def _from_collectives(path: Path, hints: FitHints, kind: str | None) -> MeasuredFile:
    read = read_measurements(path, ImportHints(name=hints.operation, num_ranks=hints.num_ranks))
    num_hosts = hints.num_hosts or read.num_hosts
    if not num_hosts:
        raise InputError(
            Mistake(where=str(path), found="a run that does not list its hosts", next_step="say it with --num-hosts")
        )
    is_local = kind == "coll bench" and backend_of(path) == GLOO
    medians = _medians(path) if kind == "coll bench" else None
    notes = (
        [] if medians is None else [f"{path}: times are the medians of iterations, which a busy machine moves least"]
    )
    for row in read.rows:
        if row.num_ranks < num_hosts:
            found, allowed = f"{row.num_ranks} ranks on {num_hosts} hosts", "a rank or more on each host"
            raise InputError(Mistake(where=str(path), found=found, allowed=allowed, next_step="check --num-hosts"))
    times = (
        MeasuredTime(
            key=SeriesKey(
                kind="collective",
                operation=row.name,
                num_ranks=row.num_ranks,
                num_hosts=num_hosts,
                is_local=is_local,
            ),
            size_bytes=row.size_bytes,
            time_ns=row.mean_ns if medians is None else medians[number],
            source=path,
        )
        for number, row in enumerate(read.rows)
    )
    return MeasuredFile(path=path, digest=_digest(path), times=tuple(times), notes=(*read.notes, *notes))


def _medians(path: Path) -> list[float] | None:
    """Return the medians of a bench's iterations, None where an older record has none, or not of each row."""
    medians = RunRecord.read(path, tables=(TABLE,)).tables[TABLE].get("median_ns")
    if medians is None or medians.dtype.kind not in "iuf" or not (medians > 0).all():
        return None
    return [float(time_ns) for time_ns in medians]


def backend_of(path: Path) -> str:
    """Return the backend of a bench's record, "" where it does not say."""
    configuration = RunRecord.read(path, tables=()).run.get("configuration")
    return str(configuration.get("backend", "")) if isinstance(configuration, dict) else ""


def _from_perftest(path: Path, *, is_record: bool) -> MeasuredFile:
    rows, notes = (_rows_of_record(path), list[str]()) if is_record else _rows_of_file(path)
    used = [time for row in rows if (time := _perftest_time(row, path)) is not None]
    num_both = sum(row.num_directions > 1 for row in rows)
    if num_both:
        notes.append(f"{path}: rows of both directions at once, which are another quantity, left out: {num_both}")
    if not used:
        found = f"{len(rows)} rows, none with a time or a bandwidth of one direction"
        raise InputError(Mistake(where=str(path), found=found, allowed=ALLOWED))
    return MeasuredFile(path=path, digest=_digest(path), times=tuple(used), notes=tuple(notes))


def _rows_of_file(path: Path) -> tuple[list[PerftestRow], list[str]]:
    file = read_perftest(path)
    return file.rows, list(file.notes)


def _rows_of_record(path: Path) -> list[PerftestRow]:
    columns = RunRecord.read(path, tables=(PERFTEST_TABLE,)).tables.get(PERFTEST_TABLE, {})
    names = [name for name in PerftestRow.__slots__ if name != "where"]
    column_of = {name: "queue_pairs" if name == "num_queue_pairs" else name for name in names}
    missing = [column for column in column_of.values() if column not in columns]
    if missing:
        found = f"a table {PERFTEST_TABLE} without {', '.join(missing)}"
        raise InputError(Mistake(where=str(path), found=found, next_step="import the measurement again"))
    lists = [columns[column_of[name]].tolist() for name in names]
    return [
        PerftestRow(where=f"{path}: row {number}", **dict(zip(names, values, strict=True)))
        for number, values in enumerate(zip(*lists, strict=True))
    ]


def _perftest_time(row: PerftestRow, path: Path) -> MeasuredTime | None:
    if row.num_directions > 1:
        return None
    time_ns = row.median_ns if row.median_ns > 0 else row.average_ns
    kind = "latency" if time_ns > 0 else "bandwidth"
    if row.bandwidth_bps > 0 and time_ns <= 0:
        time_ns = row.size_bytes * BITS_PER_BYTE / row.bandwidth_bps * NS_PER_S
    if time_ns == NOT_PRINTED or time_ns <= 0:
        return None
    return MeasuredTime(
        key=SeriesKey(
            kind="latency" if kind == "latency" else "bandwidth",
            operation=row.test or "perftest",
            device=row.device,
            num_queue_pairs=max(row.num_queue_pairs, 1),
        ),
        size_bytes=row.size_bytes,
        time_ns=time_ns,
        source=path,
    )


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the files of a folder by name."""
    digest = hashlib.sha256()
    for file in _files(path):
        with open_foreign(file, max_bytes=MAX_FILE_BYTES) as opened:
            while piece := opened.read(2**20):
                digest.update(piece)
    return digest.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(file for file in path.iterdir() if file.is_file())
    else:
        yield path
