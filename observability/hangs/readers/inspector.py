"""Lines of NCCL Inspector as evidence: the last collective that each rank completed, when, and how long the last took.

Left out: messages, whose numbers are not those of a pair.
"""

import json
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

from fabrictune.collectives.nccl.inspector import MAX_FILE_BYTES, MAX_LINE_BYTES, is_inspector
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import open_foreign
from fabrictune.foundation.traces import Operation
from fabrictune.observability.hangs.evidence import (
    MAX_TIMINGS,
    UNKNOWN,
    Evidence,
    Group,
    Progress,
    Request,
    Timing,
    Who,
)
from fabrictune.observability.hangs.operations import operation_of

SOURCE = "NCCL Inspector"
MAX_PLACES = 1_000_000  # ranks of all communicators
_MOST = 2**62
_MOST_US = 1e13

__all__ = ["is_inspector", "read_inspector_evidence"]


def read_inspector_evidence(path: Path) -> Evidence:
    """Return what a file's lines say; raises InputError where none is a collective."""
    last: dict[tuple[str, int], Progress] = {}
    size_of: dict[str, int] = {}
    timings: dict[tuple[str, int], deque[Timing]] = {}
    num_damaged = num_messages = 0
    with open_foreign(path, max_bytes=MAX_FILE_BYTES) as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            if not raw.strip():
                continue
            try:
                record = json.loads(raw)
                if "p2p_perf" in record:
                    num_messages += 1
                    continue
                _keep(record, f"{path}:{number}", last, size_of, timings)
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
                num_damaged += 1
            if len(last) > MAX_PLACES:
                found = f"more than {MAX_PLACES:,} ranks of communicators"
                raise InputError(Mistake(where=str(path), found=found, next_step="give the files of fewer hosts"))
    if not last:
        found, allowed = "no collective of NCCL Inspector", "lines with header, metadata and coll_perf"
        raise InputError(Mistake(where=str(path), found=found, allowed=allowed))
    notes = [f"{path}: lines that are no record of Inspector, left out: {num_damaged:,}"] if num_damaged else []
    notes += [f"{path}: messages, left out: {num_messages:,}"] if num_messages else []
    members = defaultdict[str, dict[int, Who]](dict)
    for (name, place), row in last.items():
        members[name][place] = row.who
    return Evidence(
        source=SOURCE,
        groups=tuple(
            Group(name=name, communicator=name, size=size_of[name], members=found) for name, found in members.items()
        ),
        progress=tuple(last.values()),
        timings=tuple(timing for kept in timings.values() for timing in kept),
        notes=tuple(notes),
        tells_all=False,
    )


def _keep(
    record: Any,
    where: str,
    last: dict[tuple[str, int], Progress],
    size_of: dict[str, int],
    timings: dict[tuple[str, int], deque[Timing]],
) -> None:
    """Keep a collective if it is the newest of its rank; raises one of the errors above for what is none."""
    header, metadata, measured = record["header"], record["metadata"], record["coll_perf"]
    name, place = str(header["id"])[:40], _whole(header["rank"])
    number = _whole(measured["coll_sn"])
    before = last.get((name, place))
    if before is not None and before.completed is not None and before.completed >= number:
        return
    size_of[name] = _whole(header["n_ranks"])
    request = _request(str(measured["coll"])[:40], _whole(measured["coll_msg_size_bytes"]), size_of[name])
    who = Who(host=str(metadata["hostname"])[:255], pid=_whole(metadata["pid"]))
    elapsed_us = measured.get("coll_exec_time_us")
    if isinstance(elapsed_us, int | float) and 0 < elapsed_us <= _MOST_US:
        kept = timings.setdefault((name, place), deque(maxlen=MAX_TIMINGS))
        kept.append(Timing(who=who, group=name, number=number, request=request, elapsed_us=float(elapsed_us)))
    last[name, place] = Progress(
        who=who,
        group=name,
        where=where,
        completed=number,
        requests={number: request},
        time_us=_whole(metadata["dump_timestamp_us"]) if "dump_timestamp_us" in metadata else None,
    )


def _request(kind: str, size: int, num_ranks: int) -> Request:
    """Return a request; Inspector's size of a gather and of a reduce-scatter is one rank's share."""
    is_share = operation_of(kind) in (Operation.ALL_GATHER, Operation.REDUCE_SCATTER)
    num_bytes = size * num_ranks if is_share else size
    return Request(kind=kind, size=size, num_bytes=num_bytes if num_bytes <= _MOST else UNKNOWN)


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST:
        raise ValueError(value)
    return value
