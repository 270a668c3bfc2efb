"""Damaged inputs through all doors: a process for each door, watched from outside.

A door's process says the number of each input before it tries it. Where it dies, hangs, or takes too much memory,
that input is a fault, and another process goes on behind it.
"""

import contextlib
import os
import random
import resource
import select
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fabrictune.cli.main import run
from tests.fuzz.damage import damaged
from tests.fuzz.doors import FILE, OUT, Door
from tests.patience import patience

EMPTY = b" "  # damaged in place of a file without content
MAX_CPU_S = 10.0  # of one input
MAX_BYTES = 2**30  # of memory, of a process
MAX_ADDRESSES = 2**33  # for the machine's sake
ENDINGS = {0: "result", 1: "findings", 2: "input error", 3: "unavailable"}


@dataclass(kw_only=True)
class Tally:
    """What came of a door's inputs."""

    name: str
    endings: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    peak_bytes: int = 0

    def add(self, other: "Tally") -> None:
        """Count what came of more inputs."""
        self.endings += other.endings
        self.faults += other.faults
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)


def try_door(door: Door, folder: Path, *, inputs: range, seed: int) -> Tally:
    """Try damaged inputs, each numbered, in an empty folder."""
    tally, left = Tally(name=door.name), inputs
    while left:
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reader)
            _try_all(door, folder, left, seed, writer)
        os.close(writer)
        last, why = _watch(reader, process, tally, left)
        os.close(reader)
        if why:
            tally.faults.append(f"input {last}: {why}")
            kept = folder / f"fault-{last}"
            shutil.copytree(folder / "work", kept, dirs_exist_ok=True)
        left = range(last + 1, left.stop)
    return tally


def _watch(reader: int, process: int, tally: Tally, inputs: range) -> tuple[int, str]:
    """Follow a process to its end; returns the last input, and what was wrong with it or ""."""
    last, text = inputs.start - 1, b""
    while True:
        ready, _, _ = select.select([reader], [], [], patience(6 * MAX_CPU_S))
        if not ready:
            os.kill(process, 9)
            os.waitpid(process, 0)
            return last, "hangs"
        part = os.read(reader, 65536)
        if not part:
            break
        *lines, text = (text + part).split(b"\n")
        for line in lines:
            kind, _, rest = line.decode().partition(" ")
            if kind == "begin":
                last = int(rest)
            elif kind == "fault":
                tally.faults.append(f"input {last}: {rest}")
            else:
                ending, cpu_s, peak = rest.split()
                tally.endings[ending.replace("_", " ")] += 1
                tally.slowest_s = max(tally.slowest_s, float(cpu_s))
                tally.peak_bytes = max(tally.peak_bytes, int(peak))
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return last, "" if code == 0 else f"ended the process with {code}"


def _try_all(door: Door, folder: Path, inputs: range, seed: int, writer: int) -> None:
    """Try the inputs in this process, and leave it."""

    def say(line: str) -> None:
        os.write(writer, f"{line}\n".encode())

    code = 0
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESSES, MAX_ADDRESSES))
    try:
        with (folder / "console").open("w") as console, contextlib.chdir(folder):
            os.dup2(console.fileno(), 1)
            os.dup2(console.fileno(), 2)
            for number in inputs:
                say(f"begin {number}")
                os.truncate(console.name, 0)
                started = time.process_time()
                ending = _try(door, folder / "work", random.Random(f"{door.name} {number} {seed}"), say)
                cpu_s = time.process_time() - started
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
                say(f"end {ending} {cpu_s:.3f} {peak}")
                if cpu_s > MAX_CPU_S:
                    say(f"fault {cpu_s:.1f} s")
                if peak > MAX_BYTES:
                    say(f"fault {peak} B")
                    break  # the peak stays with the process
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        code = 70
    os._exit(code)


def _try(door: Door, work: Path, chance: random.Random, say: Callable[[str], None]) -> str:
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    path = _damaged_copy(door, work, chance)
    words = [str(path) if word == FILE else word.replace(OUT, str(work / "out")) for word in door.words]
    try:
        with _rules(door, path):
            return ENDINGS.get(run(words), "other").replace(" ", "_")
    except SystemExit as done:
        return ENDINGS.get(int(done.code or 0), "other").replace(" ", "_")
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        say(f"fault {type(error).__name__}: {str(error)[:200]!r} at {place.filename}:{place.lineno}")
        return "traceback"


def _damaged_copy(door: Door, work: Path, chance: random.Random) -> Path:
    """Copy one of the door's files and damage it; returns what the command is given."""
    original = chance.choice(door.files)
    path = work / original.name
    if original.is_dir():
        shutil.copytree(original, path)
        target = chance.choice(sorted(one for one in path.rglob("*") if one.is_file()))
    else:
        target = path
        shutil.copyfile(original, path)
    target.write_bytes(damaged(target.read_bytes() or EMPTY, chance))
    if not door.scenario:
        return path
    scenario = work / "scenario.yaml"
    scenario.write_text(door.scenario.replace(FILE, path.name))
    return scenario


@contextlib.contextmanager
def _rules(door: Door, path: Path) -> Iterator[None]:
    """Let the commands take a site's rules from the file, where this is what the door is for."""
    if door.rules:
        os.environ["FABRICTUNE_RULES"] = str(path)
    try:
        yield
    finally:
        os.environ.pop("FABRICTUNE_RULES", None)
