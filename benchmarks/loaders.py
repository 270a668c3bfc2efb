"""One loader for a machine against one for each of its workers: bytes read, processor time and time of a step.

Eight workers, as of TP 4 and DP 2, whose batches this process takes one after another as fast as they come, from a file
of 200 MB that the page cache holds. Nothing is computed, so a step is what loading takes. Rounds of the two alternate.

Run: `python -m benchmarks.run loaders`
"""

import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.seeds import stream
from fabrictune.trainer_probe.data.batches import BatchSpec
from fabrictune.trainer_probe.data.loader import Loader, LoaderProcess
from fabrictune.trainer_probe.data.service import Service
from fabrictune.trainer_probe.data.token_file import TokenWriter

LAYOUT = ParallelLayout(tp=4, dp=2)
SEQUENCE_LENGTH, BATCH_SIZE, VOCABULARY_SIZE = 2048, 32, 64_000
NUM_TOKENS = 100_000_000
NUM_STEPS, NUM_ROUNDS = 300, 5


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a step cost in one round."""

    bytes_read: float  # by all loaders, a few batches ahead
    loader_cpu_ms: float  # of all loaders
    wall_ms: float


def benchmarks() -> list[dict[str, Any]]:
    """Return medians over the rounds, as rows of benchmarks/results.json."""
    with tempfile.TemporaryDirectory() as folder:
        spec = _write_tokens(Path(folder) / "random.tokens")
        for_machine = [Service(batches=spec, replicas=tuple(range(LAYOUT.dp)), num_workers=LAYOUT.world_size)]
        for_each = [Service(batches=spec, replicas=(replica,), num_workers=1) for replica in _replicas()]
        rounds = [(_measure(for_machine), _measure(for_each)) for _ in range(NUM_ROUNDS)]
    machine, each = zip(*rounds, strict=True)
    return [*_rows("one-for-the-machine", machine), *_rows("one-for-each-worker", each)]


def _write_tokens(path: Path) -> BatchSpec:
    random = stream(1, "benchmark", "tokens")
    with TokenWriter(path, VOCABULARY_SIZE) as writer:
        for _ in range(NUM_TOKENS // 10**6):
            writer.append(random.integers(VOCABULARY_SIZE, size=10**6, dtype=np.uint16))
    return BatchSpec(
        path=str(path),
        sequence_length=SEQUENCE_LENGTH,
        batch_size=BATCH_SIZE,
        vocabulary_size=VOCABULARY_SIZE,
        num_replicas=LAYOUT.dp,
    )


def _replicas() -> list[int]:
    """Return the replica of each rank."""
    replicas: list[int] = LAYOUT.coordinates(np.arange(LAYOUT.world_size))["dp"].tolist()
    return replicas


def _measure(services: Sequence[Service]) -> Cost:
    """Take all steps from one loader that all workers share, or from one for each."""
    with ExitStack() as stack:
        loaders = [stack.enter_context(LoaderProcess(service)) for service in services]
        addresses = [loader.address for loader in loaders] * (LAYOUT.world_size // len(loaders))
        workers = [
            stack.enter_context(Loader(address, replica))
            for address, replica in zip(addresses, _replicas(), strict=True)
        ]
        _take(workers, 10)  # past the start of the processes
        cpu_s, started_s = _cpu_s(loaders), time.perf_counter()
        _take(workers, NUM_STEPS)
        wall_s, cpu_s = time.perf_counter() - started_s, _cpu_s(loaders) - cpu_s
        bytes_read = sum(worker.bytes_read for worker in workers[: len(loaders)])
    return Cost(
        bytes_read=bytes_read / (10 + NUM_STEPS),
        loader_cpu_ms=cpu_s / NUM_STEPS * 1e3,
        wall_ms=wall_s / NUM_STEPS * 1e3,
    )


def _take(workers: Sequence[Loader], num_steps: int) -> None:
    for _ in range(num_steps):
        for worker in workers:
            worker.take()


def _cpu_s(loaders: Sequence[LoaderProcess]) -> float:
    """Return the processor time of loaders so far, in the kernel and outside."""
    ticks = 0
    for loader in loaders:
        fields = Path(f"/proc/{loader.process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # utime and stime, the 14th and 15th of all
    return ticks / os.sysconf("SC_CLK_TCK")


def _rows(name: str, costs: Sequence[Cost]) -> list[dict[str, Any]]:
    columns = (("bytes-read", "bytes_read", "B"), ("loader-cpu", "loader_cpu_ms", "ms"), ("wall", "wall_ms", "ms"))
    rows = []
    for label, column, unit in columns:
        values = sorted(getattr(cost, column) for cost in costs)
        rows.append(
            {
                "name": f"trainer_probe.loader-{name}.{label}-per-step",
                "value": statistics.median(values),
                "unit": unit,
                "spread": f"{values[0]:,.2f} to {values[-1]:,.2f} over {len(values)} rounds",
            }
        )
    return rows
