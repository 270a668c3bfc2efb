"""A large file through a command: the command runs as a program, and its memory and time are measured.

A file of a few rows is written first, and from its size follows how many rows the large one has. A fault is a
traceback, more memory or processor time than allowed, and an error without a next step.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.big_files.readings import FILE, OUT, Reading

MAX_CPU_S = 10.0  # in user mode
MAX_BYTES = 2**30  # of memory
MAX_ADDRESSES = 2**33  # for the machine's sake
ENDED_AFTER = 12  # times the processor time allowed
FEW_ROWS = 64
GOOD, INPUT_ERROR, UNAVAILABLE = (0, 1), 2, 3


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of a reading."""

    num_bytes: int
    exit_code: int
    cpu_s: float  # in user mode
    peak_bytes: int
    said: str  # on stderr
    fault: str

    @property
    def ending(self) -> str:
        """The result for people: `read`, or the refusal."""
        return "read" if self.exit_code in GOOD else " ".join(self.said.split())


def write_large(reading: Reading, folder: Path, num_bytes: int) -> Path:
    """Write a file of about so many bytes, at least, into an empty folder; returns its path."""
    path = folder / reading.file
    count, size = FEW_ROWS, 0
    for wanted in (num_bytes // 20, num_bytes):  # the second time from a file whose rows are about as long
        while size < wanted:
            reading.write(path, count)
            size = (path / reading.measured).stat().st_size
            count = max(count + 1, int(1.005 * count * wanted / size)) if size < wanted else count
        count = int(1.005 * count * num_bytes / size)
    return path


def command_line(reading: Reading, path: Path) -> list[str]:
    """Return the arguments of the command that reads the file; a scenario is written beside it."""
    if reading.scenario:
        scenario = path.with_name("scenario.yaml")
        scenario.write_text(reading.scenario.replace(FILE, path.name))
        path = scenario
    out = str(path.with_name("out"))
    return [str(path) if word == FILE else word.replace(OUT, out) for word in reading.words]


def try_reading(reading: Reading, folder: Path, num_bytes: int) -> Result:
    """Write the file, run its command as a program, and remove nothing."""
    path = write_large(reading, folder, num_bytes)
    named = {reading.environment: str(path)} if reading.environment else {}
    errors = folder / "errors"
    exit_code, cpu_s, peak_bytes = _run(command_line(reading, path), named, errors)
    said = errors.read_text(errors="replace")
    result = Result(
        num_bytes=(path / reading.measured).stat().st_size,
        exit_code=exit_code,
        cpu_s=cpu_s,
        peak_bytes=peak_bytes,
        said=said,
        fault="",
    )
    return Result(**{**vars(result), "fault": ", ".join(faults(result, path))})


_LAUNCHER = """
import json, os, resource, sys
for kind, limit in json.loads(sys.argv[1]):
    resource.setrlimit(kind, (limit, limit))
words = [sys.executable, "-P", "-m", "fabrictune", *sys.argv[3:]]
_, status, usage = os.wait4(os.posix_spawn(words[0], words, os.environ), 0)
with open(sys.argv[2], "w") as file:
    json.dump([os.waitstatus_to_exitcode(status), usage.ru_utime, usage.ru_maxrss * 1024], file)
"""


def _run(words: list[str], environment: Mapping[str, str], errors: Path) -> tuple[int, float, int]:
    """Run the program to its end; returns its exit code, seconds in user mode and most memory in bytes.

    A process counts as its own the memory that its parent had when it was started: a small one starts it.
    """
    limits = ((resource.RLIMIT_AS, MAX_ADDRESSES), (resource.RLIMIT_CPU, int(ENDED_AFTER * MAX_CPU_S)))
    used = errors.with_name("used")
    with errors.open("wb") as stream:
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, json.dumps(limits), str(used), *words],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            cwd=errors.parent,
            check=True,
        )
    exit_code, cpu_s, peak_bytes = json.loads(used.read_text())
    return exit_code, cpu_s, peak_bytes


def faults(result: Result, path: Path) -> list[str]:
    """Return what is wrong with a reading of a file."""
    found = []
    if "Traceback" in result.said or result.exit_code not in (*GOOD, INPUT_ERROR, UNAVAILABLE):
        found.append(f"ended with {result.exit_code}")
    if result.exit_code == INPUT_ERROR and not (path.name in result.said and "next:" in result.said):
        found.append("refused without its name or a next step")
    if result.cpu_s > MAX_CPU_S:
        found.append(f"more than {MAX_CPU_S:.0f} s")
    if result.peak_bytes > MAX_BYTES:
        found.append(f"more than {MAX_BYTES >> 20} MiB")
    return found
