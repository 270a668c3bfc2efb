"""Lines of NCCL Inspector as evidence: the last collective that each rank completed, and when it was written.

Left out: messages, whose numbers are not those of a pair.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from fabrictune.collectives.nccl.inspector import MAX_FILE_BYTES, MAX_LINE_BYTES, is_inspector
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import open_foreign
from fabrictune.observability.hangs.evidence import Evidence, Group, Progress, Request, Who

SOURCE = "NCCL Inspector"
MAX_PLACES = 1_000_000  # ranks of all communicators
_MOST = 2**62

__all__ = ["is_inspector", "read_inspector_evidence"]


def read_inspector_evidence(path: Path) -> Evidence:
    """Return what a file's lines say; raises InputError where none is a collective."""
    last: dict[tuple[str, int], Progress] = {}
    size_of: dict[str, int] = {}
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
                _keep(record, f"{path}:{number}", last, size_of)
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
        notes=tuple(notes),
        tells_all=False,
    )


def _keep(record: Any, where: str, last: dict[tuple[str, int], Progress], size_of: dict[str, int]) -> None:
    """Keep a collective if it is the newest of its rank; raises one of the errors above for what is none."""
    header, metadata, measured = record["header"], record["metadata"], record["coll_perf"]
    name, place = str(header["id"])[:40], _whole(header["rank"])
    number = _whole(measured["coll_sn"])
    before = last.get((name, place))
    if before is not None and before.completed is not None and before.completed >= number:
        return
    size_of[name] = _whole(header["n_ranks"])
    request = Request(kind=str(measured["coll"])[:40], size=_whole(measured["coll_msg_size_bytes"]))
    last[name, place] = Progress(
        who=Who(host=str(metadata["hostname"])[:255], pid=_whole(metadata["pid"])),
        group=name,
        where=where,
        completed=number,
        requests={number: request},
        time_us=_whole(metadata["dump_timestamp_us"]) if "dump_timestamp_us" in metadata else None,
    )


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST:
        raise ValueError(value)
    return value
