"""Kills: a command is started, ended at a random moment, and what it left is looked at.

    python -m tests.kills --kills 200 [--only "sim run"] [--seed 0]

Before each kill an earlier result is at the place, but now and then none. Afterwards there must be the earlier result
or the new one, whole; never half of one, a mixture, or none where one was. Files of others beside it stay as they are.
SIGTERM leaves nothing else; what SIGKILL leaves is gone after the next run, and no process outlives its command.
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fabrictune.cli.main import run, stop_like_ctrl_c
from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.record_folders import HEAD
from fabrictune.foundation.records import RunRecord
from tests.kills.commands import Writing
from tests.kills.inputs import Inputs
from tests.patience import patience

MARK = "FABRICTUNE_TEST_OF_KILLS"
MAX_STARTS = 4  # a kill, for commands that are over before it
ENDS_WITHIN_S = 30.0  # after SIGTERM
FOREIGN = {"mine.txt": b"x", ".result-notes": b"y", "results/run.json": b"{}"}
SIGNALS = (signal.SIGKILL, signal.SIGTERM)
MOST_LINES = 30  # of a traceback that is told
GONE, PARTIAL = "none", "partial record"


@dataclass(kw_only=True)
class Tally:
    """What came of the kills of one command."""

    name: str
    kills: int = 0
    too_late: int = 0  # the command was over before
    states: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def kill_often(writing: Writing, inputs: Inputs, top: Path, *, kills: int, seed: int) -> Tally:
    """Kill a command so many times, in the empty folder `top`; returns what was seen."""
    tally = Tally(name=writing.name)
    place = Place(top, writing, inputs)
    whole = place.reference_results()
    chance = random.Random(f"{writing.name} {seed}")
    number = 0
    while tally.kills < kills and number < MAX_STARTS * kills:
        number += 1
        if chance.random() < (0.8 if writing.is_sweep else 0.2):  # a sweep that is done is not done again
            place.clear()
        before, litter_before = place.state(whole), place.litter()
        after_s = chance.uniform(0, place.duration_s)
        if chance.random() < 0.5:  # most of what can go wrong is near the end
            after_s = max(after_s, chance.uniform(0.7, 1) * place.duration_s)
        end = SIGNALS[number % 2]
        was_running = place.run_and_end(number % 4 // 2, after_s, end)
        tally.kills += was_running
        tally.too_late += not was_running
        faults = place.faults(before, place.state(whole))
        if end == signal.SIGTERM:
            faults += [left for left in place.litter() if left not in litter_before]
        for fault in faults:
            tally.faults.append(f"{end.name} {number} after {after_s:.3f} s, exit code {place.exit_code}: {fault}")
        state = place.state(whole)
        tally.states[state] = tally.states.get(state, 0) + 1
    place.run_undisturbed(0)
    tally.faults += [f"after the next run: {fault}" for fault in place.litter()]
    if (state := place.state(whole)) != "0":
        tally.faults.append(f"the next run left {state}")
    return tally


class Place:
    """A folder with files of others in which a command writes its result."""

    def __init__(self, top: Path, writing: Writing, inputs: Inputs) -> None:
        self.writing, self.inputs = writing, inputs
        self.folder, self.temporary, self.console = top / "here", top / "tmp", top / "console"
        self.out = self.folder / writing.out
        self.result = self.out / writing.last
        self.duration_s = 0.0
        self.exit_code = 0
        for name, content in FOREIGN.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.temporary.mkdir()

    def reference_results(self) -> Mapping[str, str]:
        """Return the variant by fingerprint of its result; the second is left in place."""
        variants: dict[str, str] = {}
        durations_s = []
        for variant in (0, 1, 0, 1):
            if self.writing.is_sweep:
                self.clear()
            started = time.perf_counter()
            self.run_undisturbed(variant)
            durations_s.append(time.perf_counter() - started)
            variants.setdefault(self.fingerprint(), str(variant))
        self.duration_s = min(durations_s)
        return variants

    def run_undisturbed(self, variant: int) -> None:
        """Run the command to its end."""
        process = self.start(variant)
        code, console = wait(process), self.console.read_text(errors="replace")
        assert code in (0, 1), f"{self.writing.name}: {code}: {console[-2000:]}"
        assert "Traceback" not in console, f"{self.writing.name}: {console[-2000:]}"

    def run_and_end(self, variant: int, after_s: float, end: signal.Signals) -> bool:
        """Start the command and send it a signal later; returns whether it still ran."""
        process = self.start(variant)
        time.sleep(after_s)
        was_running = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        if was_running:
            os.kill(process, end)
        self.exit_code = wait(process)
        return was_running

    def start(self, variant: int) -> int:
        """Start the command in a process of its own; returns its number."""
        words = self.writing.arguments(self.inputs, variant, self.out)
        environment = {**os.environ, MARK: self.folder.parent.as_posix(), "TMPDIR": str(self.temporary)}
        if self.writing.starts_processes:
            with self.console.open("wb") as console:
                return subprocess.Popen(
                    [*self.writing.inside, sys.executable, "-P", "-m", "fabrictune", *words],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=console,
                    cwd=self.folder.parent,
                ).pid
        process = os.fork()
        if process == 0:
            self._run_here(words, environment)
        return process

    def _run_here(self, words: list[str], environment: Mapping[str, str]) -> None:
        try:
            os.environ.update(environment)
            os.chdir(self.folder.parent)
            console = os.open(self.console, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(console, 1)
            os.dup2(console, 2)
            stop_like_ctrl_c()
            code = run(words)
        except BaseException as error:
            os.write(2, repr(error).encode())
            code = 70
        os._exit(code)

    def clear(self) -> None:
        """Remove the result, so that there is no earlier one."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.unlink(missing_ok=True)

    def fingerprint(self) -> str:
        """Return a digest of what a result says, without times and versions of its run; raises RecordError."""
        digest = hashlib.sha256()
        if self.result.is_file():
            return hashlib.sha256(self.result.read_bytes()).hexdigest()
        is_record = (self.result / HEAD).exists()
        if is_record:
            run = RunRecord.read(self.result).run
            digest.update(
                repr([run.get(name) for name in ("name", "seed", "question", "arguments", "outcome")]).encode()
            )
        for path in sorted(self.result.iterdir()):
            if (path.suffix == ".parquet" and not self.writing.starts_processes) or not is_record:
                digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()

    def state(self, whole: Mapping[str, str]) -> str:
        """Return which variant the result is of, or that it is partial, or none, or what is wrong with it."""
        if not self.result.exists():
            return PARTIAL if self.out.exists() else GONE
        try:
            variant = whole.get(self.fingerprint())
            if variant is None and RunRecord.read(self.result).run.get("outcome") in ("interrupted", "incomplete"):
                return PARTIAL
        except (RecordError, OSError) as error:
            return f"broken: {error}"
        return variant or "neither of the two"

    def faults(self, before: str, after: str) -> list[str]:
        """Return what is wrong after a kill."""
        found = [] if after in ("0", "1", PARTIAL, GONE) else [f"the result is {after}"]
        if after == GONE and before != GONE:
            found.append(f"the earlier result ({before}) is lost")
        for name, content in FOREIGN.items():
            path = self.folder / name
            if not path.exists() or path.read_bytes() != content:
                found.append(f"{name} of another is touched")
        if self.writing.last:
            found += self.broken_records()
        if "Traceback" in (console := self.console.read_text(errors="replace")):
            lines = console[console.index("Traceback") :].splitlines()
            told = lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES // 2], "...", *lines[-MOST_LINES // 2 :]]
            found.append(f"a traceback: {' / '.join(line.strip() for line in told)}")
        return found + [f"process {number} lives on" for number in self.survivors()]

    def litter(self) -> list[str]:
        """Return what lies about that is neither the result nor another's."""
        known = {self.writing.out, *(name.split("/")[0] for name in FOREIGN)}
        beside = [path for path in self.folder.iterdir() if path.name not in known]
        inside = list(self.out.rglob(".*")) if self.out.is_dir() else []
        temporary = [path for path in self.temporary.iterdir() if not _is_probe(path)]
        places = [str(path.relative_to(self.folder.parent)) for path in (*beside, *inside, *temporary)]
        return [f"{place} is left" for place in (*places, *self.writing.leaves())]

    def broken_records(self) -> list[str]:
        """Return the records of a folder of several that are not whole."""
        found = []
        for record in (*self.out.glob("[!.]*/"), *self.out.glob("points/[!.]*/")):
            try:
                if record.name != "points":
                    RunRecord.read(record)
            except RecordError as error:
                found.append(str(error))
        return found

    def survivors(self) -> list[int]:
        """Return the processes of the command that are still there once they had time to end."""
        deadline = time.monotonic() + patience(ENDS_WITHIN_S)
        while (found := _marked(self.folder.parent)) and time.monotonic() < deadline:
            time.sleep(0.02)
        for number in found:
            os.kill(number, signal.SIGKILL)
        return found


def wait(process: int) -> int:
    """Return a process's exit code, negative for a signal; one that does not end is killed."""
    deadline = time.monotonic() + patience(4 * ENDS_WITHIN_S)
    while (ended := os.waitpid(process, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
            deadline = float("inf")
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(ended[1])


def _is_probe(path: Path) -> bool:
    """Return whether a file is Python's own, by which tempfile tries whether a folder can be written to."""
    return path.is_file() and b"blat".startswith(path.read_bytes())


def _marked(top: Path) -> list[int]:
    mark = f"{MARK}={top.as_posix()}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            continue
        if mark in environment and state != "Z" and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found
