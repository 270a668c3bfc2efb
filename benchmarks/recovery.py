"""Recovery of an operated job: with a warm spare, without one, and from nothing; and the speed of copies on the way.

One job of four ranks on two nodes, tensor and data parallel, that loses a node by SIGKILL of its executor in the midst
of a step, again and again. With a spare the lost node's ranks start on a node that has torch imported, from copies in
another's memory; without one a node is started first. A cold start is that of the whole job: it ends with a checkpoint
in storage, and the same command is given again. Each time runs from the kill, or the command, to the first step that is
complete again; the time without a kill counts in steps of the same job.

Copies go between two processes in a network namespace of their own, whose loopback device counts their bytes: those of
tensors, and what frames, acknowledgements and IP add.

Left out: several hosts; a network slower than loopback.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from fabrictune.foundation.children import module_command
from fabrictune.foundation.errors import FabrictuneError
from fabrictune.trainer_probe.checkpoint.names import CheckpointId, data_file, index_file
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.operation.journal import open_journal
from fabrictune.trainer_probe.operation.memory_pull import pull
from fabrictune.trainer_probe.operation.nic_counters import read_nic_bytes
from fabrictune.trainer_probe.operation.node_memory import NodeMemory
from fabrictune.trainer_probe.operation.peer_copies import PeerCopies

NUM_ROUNDS = 5
RECIPE = """name: recovery
model: {preset: tiny, width: 128, depth: 4, num_heads: 4, vocabulary: 2048, sequence: 128}
degrees: {layout: {tp: 2, dp: 2}, num_batches: 2, batch_size: 2}
schedule: {peak: 3.0e-3, num_warmup_steps: 4, num_steps: 1000000}
data: {source: synthetic, num_tokens: 65536}
num_steps: 1000000
"""
STEPS_BETWEEN = 12  # two losses; a save in memory every second
LIMIT_S = 600.0
POLL_S = 0.01
COPIED_BYTES = 256 << 20
Row = dict[str, Any]


def benchmarks(*, is_quick: bool = False) -> list[Row]:
    """Return recovery times in seconds and in steps, and the speed and bytes of copies between nodes' memories."""
    num_rounds = 2 if is_quick else NUM_ROUNDS
    with tempfile.TemporaryDirectory() as top:
        measured = {
            "with a warm spare": _node_losses(Path(top) / "spare", num_rounds, num_spares=1),
            "without a spare": _node_losses(Path(top) / "none", num_rounds, num_spares=0),
            "cold start of the job": _cold_starts(Path(top) / "cold", num_rounds),
        }
    rows = []
    for name, (times_s, step_s) in measured.items():
        rows.append(_row(f"operation.recovery, {name}", times_s, "s"))
        rows.append(_row(f"operation.recovery, {name}", [time_s / step_s for time_s in times_s], "step times"))
    rows.append(_row("operation.step", [step_s for _, step_s in measured.values()], "s"))
    return rows + _copy_rows(num_rounds)


@dataclass(kw_only=True)
class _Job:
    """A job in a folder; the same command starts it again."""

    folder: Path
    num_spares: int
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start the driver."""
        words = [*module_command("fabrictune", "train", "operate"), str(self.folder / "recipe.yaml")]
        words += ["--run", str(self.run), "--nodes", "2", "--slots", "2", "--spares", str(self.num_spares), "--quiet"]
        words += ["--checkpoint", str(self.folder / "saves"), "--save-every", "100", "--memory-every", "2"]
        with (self.folder / "console").open("ab") as console:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=console, stderr=console)

    @property
    def run(self) -> Path:
        """The job's own folder."""
        return self.folder / "run"

    def events(self) -> list[Event]:
        """Return what is in the journal by now."""
        try:
            journal = open_journal(str(self.run), is_read_only=True)
        except FabrictuneError:  # not made yet
            return []
        try:
            return list(journal.read())
        finally:
            journal.close()

    def until(self, is_there: Callable[[list[Event]], bool]) -> list[Event]:
        """Return the events once that is so of them."""
        deadline_s = time.monotonic() + LIMIT_S
        while not is_there(events := self.events()):
            assert self.process is not None, "started"
            if time.monotonic() > deadline_s or self.process.poll() is not None:
                raise RuntimeError(f"the job does not go on: {(self.folder / 'console').read_text()[-2000:]}")
            time.sleep(POLL_S)
        return events

    def end(self) -> None:
        """Let the job end after a step, with a checkpoint."""
        assert self.process is not None, "started"
        self.process.send_signal(signal.SIGINT)
        self.process.wait(LIMIT_S)


@contextmanager
def _job(folder: Path, num_spares: int) -> Iterator[_Job]:
    folder.mkdir()
    (folder / "recipe.yaml").write_text(RECIPE)
    job = _Job(folder=folder, num_spares=num_spares)
    job.start()
    try:
        yield job
    finally:
        job.end()


def _node_losses(folder: Path, num_rounds: int, *, num_spares: int) -> tuple[list[float], float]:
    """Return the times from a node's loss to the first step after it, and the median of steps."""
    times_s = []
    with _job(folder, num_spares) as job:
        for number in range(num_rounds):
            events = job.until(lambda events: _is_settled(events, 2 + num_spares))
            lost = _last(events, "generation started").values["nodes"][1]
            executor = json.loads((job.run / "nodes" / lost / "processes.json").read_text())["executor"]
            at_s = time.monotonic() - events[0].values["settings"]["clock"]["clock_s"]
            os.kill(executor, signal.SIGKILL)
            events = job.until(partial(_has_begun, number + 2))
            times_s.append(_last(events, "training").elapsed_s - at_s)
        return times_s, _step_s(job.events())


def _cold_starts(folder: Path, num_rounds: int) -> tuple[list[float], float]:
    """Return the times from a job's command to its first step, with torch and checkpoint to be read."""
    times_s = []
    with _job(folder, 0) as job:
        for number in range(num_rounds):
            events = job.until(lambda events: _is_settled(events, 2))
            job.end()
            at_s = time.monotonic() - events[0].values["settings"]["clock"]["clock_s"]
            job.start()
            events = job.until(partial(_has_begun, number + 2))
            times_s.append(_last(events, "training").elapsed_s - at_s)
        return times_s, _step_s(job.events())


def _is_settled(events: list[Event], num_nodes: int) -> bool:
    """Return whether a generation has had some steps, and all nodes with the spare are there."""
    started = max((event.number for event in events if event.kind == "generation started"), default=0)
    num_steps = sum(event.kind == "step" and event.number > started for event in events)
    nodes: set[str] = set()
    for event in events:
        if event.kind == "node joined":
            nodes.add(event.values["node"])
        elif event.kind == "node ended":
            nodes.discard(event.values["node"])
    return bool(started) and num_steps >= STEPS_BETWEEN and len(nodes) >= num_nodes


def _has_begun(num_generations: int, events: list[Event]) -> bool:
    """Return whether so many generations have completed a step."""
    return sum(event.kind == "training" for event in events) >= num_generations


def _step_s(events: list[Event]) -> float:
    return float(median(event.values["elapsed_ns"] / 1e9 for event in events if event.kind == "step"))


def _last(events: list[Event], kind: str) -> Event:
    return next(event for event in reversed(events) if event.kind == kind)


# Copies


def _copy_rows(num_rounds: int) -> list[Row]:
    """Return the speed and the bytes of copies, measured in a namespace; none where none can be made."""
    setup = 'ip link set lo up && exec "$0" -m benchmarks.recovery "$@"'
    command = ["unshare", "--net", "--map-root-user", "sh", "-c", setup, sys.executable, str(num_rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"copies are not measured: {done.stderr.strip()[-200:]}")
        return []
    measured: Mapping[str, list[float]] = json.loads(done.stdout)
    return [
        _row("operation.copy to a peer", measured["put"], "MB/s"),
        _row("operation.copies taken from a peer", measured["get"], "MB/s"),
        _row("operation.bytes on the wire of a copy's", measured["wire"], "%"),
    ]


def measure_copies(num_rounds: int) -> Mapping[str, list[float]]:
    """Return MB/s of copies to a peer and from it, and the device's bytes of the tensors' in per cent."""
    measured: dict[str, list[float]] = {"put": [], "get": [], "wire": []}
    key = secrets.token_bytes(32)
    for _ in range(num_rounds):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as top, _peer(Path(top) / "peer", key) as address:
            own = NodeMemory(Path(top) / "own", max_bytes=4 * COPIED_BYTES)
            copies = PeerCopies(own, key)
            name = _write_checkpoint(own.folder)
            sent = read_nic_bytes("lo")["lo"][1]
            began_s = time.perf_counter()
            copies.send_to(address, generation=1, ranks=(0,))
            while not (Path(top) / "peer" / name / index_file(0)).exists():
                time.sleep(POLL_S / 10)
            measured["put"].append(COPIED_BYTES / 1e6 / (time.perf_counter() - began_s))
            measured["wire"].append(100 * (read_nic_bytes("lo")["lo"][1] - sent) / COPIED_BYTES)
            copies.close()
            empty = NodeMemory(Path(top) / "empty", max_bytes=4 * COPIED_BYTES)
            began_s = time.perf_counter()
            taken = pull(empty, key, [address], ranks=(0,), generation=2)
            measured["get"].append(taken.num_bytes / 1e6 / (time.perf_counter() - began_s))
    return measured


def _write_checkpoint(folder: Path) -> str:
    name = str(CheckpointId(step=1, generation=1))
    (folder / name).mkdir()
    (folder / name / data_file(0)).write_bytes(os.urandom(COPIED_BYTES))
    (folder / name / index_file(0)).write_text("{}")
    return name


@contextmanager
def _peer(folder: Path, key: bytes) -> Iterator[tuple[str, int]]:
    """Yield the address of a process that serves its memory."""
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            address = PeerCopies(NodeMemory(folder, max_bytes=4 * COPIED_BYTES), key).address
            os.write(sender, json.dumps(address).encode())
            signal.pause()
        os._exit(1)
    try:
        host, port = json.loads(os.read(receiver, 4096))
        yield str(host), int(port)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(receiver)
        os.close(sender)


def _row(name: str, values: list[float], unit: str) -> Row:
    ordered = sorted(values)
    spread = f"{len(ordered)} values, {ordered[0]:.3g} to {ordered[-1]:.3g}"
    return {"name": name, "value": median(ordered), "unit": unit, "spread": spread}


if __name__ == "__main__":
    print(json.dumps(measure_copies(int(sys.argv[1]))))
