"""An operated job of a test: the command as a process, its events as they come, and its processes."""

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fabrictune.foundation.children import module_command
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.operation.journal import open_journal
from fabrictune.trainer_probe.operation.process_table import GONE, read_process

RECIPE = """\
name: small
model: {{preset: tiny, vocabulary: 258, depth: 2}}
degrees:
  layout: {layout}
  num_batches: {num_batches}
  batch_size: 1
optimizer: {{beta2: 0.95}}
schedule: {{peak: 3.0e-3, num_warmup_steps: 4, num_steps: 20}}
data: {{source: synthetic, num_tokens: 65536}}
num_steps: {num_steps}
"""
LIMIT_S = 150.0


@dataclass(kw_only=True)
class Operated:
    """A job that `train operate` runs. `arguments` stay the same for each start."""

    folder: Path
    arguments: Sequence[str]
    process: subprocess.Popen[str] | None = None
    lines: "queue.SimpleQueue[str | None]" = field(default_factory=queue.SimpleQueue)
    output: list[str] = field(default_factory=list)

    def start(self) -> None:
        """Start the driver, for the first time or again."""
        self.lines = queue.SimpleQueue()
        process = subprocess.Popen(
            [*module_command("fabrictune", "train", "operate"), *self.arguments, "--run", str(self.run)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.process = process

        def read(lines: "queue.SimpleQueue[str | None]") -> None:
            assert process.stdout is not None
            with process.stdout as output:
                for line in output:
                    lines.put(line.rstrip())
            lines.put(None)

        threading.Thread(target=read, args=(self.lines,), daemon=True).start()

    @property
    def run(self) -> Path:
        """The job's folder."""
        return self.folder / "run"

    def until(self, is_there: Callable[[str], bool]) -> str:
        """Return the first new line of the driver for which that is so."""
        deadline_s = time.monotonic() + scaled(LIMIT_S)
        while True:
            line = self.lines.get(timeout=max(0.1, deadline_s - time.monotonic()))
            assert line is not None, "\n".join([*self.output, *self.logs()])
            self.output.append(line)
            if is_there(line):
                return line

    def until_step(self, step: int) -> None:
        """Return when a step has been recorded."""
        self.until(lambda line: " step " in line and f" step {step} " in f"{line} ")

    def kill_driver(self) -> None:
        """Kill the driver, and nothing else."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def finish(self) -> int:
        """Return the driver's exit code, once it has ended."""
        assert self.process is not None
        deadline_s = time.monotonic() + scaled(LIMIT_S)
        while (line := self.lines.get(timeout=max(0.1, deadline_s - time.monotonic()))) is not None:
            self.output.append(line)
        return self.process.wait(scaled(LIMIT_S))

    def processes(self, node: str) -> dict[str, dict[str, int]]:
        """Return the processes of a node."""
        values: dict[str, dict[str, int]] = json.loads((self.run / "nodes" / node / "processes.json").read_text())
        return values

    def pid_of_rank(self, rank: int) -> int:
        """Return the process of a rank."""
        for node in sorted(path.name for path in (self.run / "nodes").iterdir()):
            ranks = self.processes(node)["ranks"]
            if str(rank) in ranks:
                return ranks[str(rank)]
        raise AssertionError(f"rank {rank} does not run")

    def all_pids(self) -> set[int]:
        """Return every process of the job that its nodes have written down."""
        pids: set[int] = set()
        for path in (self.run / "nodes").glob("*/processes.json"):
            values = json.loads(path.read_text())
            pids |= {values["executor"], values["fork server"], *values["ranks"].values(), *values["services"].values()}
        return pids

    def events(self) -> list[Event]:
        """Return what is in the journal."""
        journal = open_journal(str(self.run))
        try:
            return list(journal.read())
        finally:
            journal.close()

    def kinds(self) -> list[str]:
        """Return the kinds of the events, but for steps and saves."""
        return [event.kind for event in self.events() if event.kind not in ("step", "saved")]

    def losses(self) -> dict[int, float]:
        """Return the loss of each step, the last one where it was run twice."""
        return {event.values["step"]: event.values["loss"] for event in self.events() if event.kind == "step"}

    def logs(self) -> list[str]:
        """Return what executors and ranks have printed."""
        return [
            f"{path}:\n{path.read_text()}" for path in sorted(self.run.glob("nodes/**/*.log")) if path.stat().st_size
        ]


@contextmanager
def operated(
    folder: Path, *arguments: str, num_steps: int, layout: str = "{dp: 2}", num_batches: int = 1
) -> Iterator[Operated]:
    """Yield a job that has been started; afterwards nothing of it is left, whatever became of it."""
    recipe = folder / "small.yaml"
    recipe.write_text(RECIPE.format(num_steps=num_steps, layout=layout, num_batches=num_batches))
    job = Operated(folder=folder, arguments=[str(recipe), *arguments])
    job.start()
    try:
        yield job
    finally:
        assert job.process is not None
        job.process.kill()
        job.process.wait()
        for path in (job.run / "nodes").glob("*/executor.json"):
            pid = json.loads(path.read_text())["pid"]
            if read_process(pid).state != GONE:
                os.kill(pid, signal.SIGTERM)
