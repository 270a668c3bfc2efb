"""Ownership of folders: what makes one a record of ours, which a new record may replace, or a sweep, which it may not.

A record's mark is its `run.json`, a head of ours, and that nothing lies beside it but files that records have. A
sweep's mark is the text in its `lock`. Whatever else lies in a folder is someone's, and stays.
"""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import Mistake, RecordError
from fabrictune.foundation.output_folders import check_output_folder
from fabrictune.foundation.run_tables.catalog import TABLES

HEAD, FINDINGS = "run.json", "findings.jsonl"
FOR_OTHER_TOOLS: Mapping[str, str] = {  # what each file is
    "capture.pcap": "packets of the captured ports",
    "comm_trace.parquet": "communication trace: a request of a rank in each row",
    "job_trace.parquet": "communication trace of the planned job: a template for each pipeline stage",
    "nic-settings.txt": "NIC settings of the Pareto-optimal points",
    "placement.csv": "host, GPU and NIC of each rank",
    "planned.yaml": "scenario with the plan applied",
    "switch-patches.json": "JSON patches of the switches for the Pareto-optimal points",
    "switch-settings.txt": "switch settings of the Pareto-optimal points",
    "source_ports.csv": "UDP source port of each queue pair",
}
PAGE = "report.html"
GROWING = {"training.jsonl": "training"}  # files with the rows of a table while its run goes on
NAMES = frozenset((HEAD, FINDINGS, PAGE, *FOR_OTHER_TOOLS, *GROWING, *(f"{name}.parquet" for name in TABLES)))
MAX_JSON_BYTES = 64 * 2**20
SWEEP_LOCK = "lock"
SWEEP_MARK = b"fabrictune sweep 1\n"


def record_place(directory: Path) -> Path:
    """Return `directory` if a record can be written there; raises RecordError. Asked before the work."""
    check_output_folder(directory, check=check_replaceable)
    return directory


def check_replaceable(directory: Path) -> None:
    """Raise RecordError where a record must not take the place of what is there: anything but a record of ours."""
    mode = _mode(directory)
    if mode is None:
        return
    if stat.S_ISLNK(mode):
        _refuse(directory, "a link", "name the folder it leads to")
    if not stat.S_ISDIR(mode):
        _refuse(directory, "not an empty folder, and no run record", "name another")
    entries = {entry.name: entry.is_file(follow_symlinks=False) for entry in os.scandir(directory)}
    if is_sweep(directory):
        _refuse(directory, "the folder of a sweep", "name another")
    if entries and not (entries.get(HEAD) and _is_head(directory / HEAD)):
        _refuse(directory, "not an empty folder, and no run record", "name another")
    foreign = sorted(name for name, is_file in entries.items() if not is_file or name not in NAMES)
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        _refuse(directory, f"a run record with {foreign[0]!r}{more}, not written by a run", "move it, or name another")


def read_text_of(directory: Path) -> str | None:
    """Return the scenario that the record in a folder answers, "" for none, and None where no record is."""
    path = directory / HEAD
    if _mode(path) is None or not _is_head(path):
        return None
    scenario = json.loads(path.read_bytes()).get("scenario", "")
    return scenario if isinstance(scenario, str) else ""


def is_sweep(directory: Path) -> bool:
    """Return whether a folder carries the mark of a sweep."""
    lock = directory / SWEEP_LOCK
    mode = _mode(lock)
    if mode is None or not stat.S_ISREG(mode):
        return False
    with lock.open("rb") as file:
        return file.read(len(SWEEP_MARK) + 1) == SWEEP_MARK


def _is_head(path: Path) -> bool:
    if path.stat().st_size > MAX_JSON_BYTES:
        return False
    try:
        head: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(head, dict) and type(head.get("format")) is int and isinstance(head.get("kind"), str)


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return None


def _refuse(directory: Path, found: str, next_step: str) -> None:
    raise RecordError(Mistake(where=str(directory), found=found, next_step=next_step))
