"""What a sweep costs beside its simulations, and what a second core gives.

Bookkeeping is all of a sweep's time on one worker that the engine's own runs do not account for (each record says
how long): reading and checking settings, identities, composing, metrics, records on disk, tables. The law is
compiled beforehand, once for a sweep of any size.

Run: `python -m benchmarks.run sweeps`
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from fabrictune.foundation.records import RunRecord
from fabrictune.sweeps.executors import Threads
from fabrictune.sweeps.runner import run_sweep
from fabrictune.sweeps.schema import load_sweep
from fabrictune.sweeps.store import open_folder

RUNS = 5
NUM_POINTS = 8
SCENARIO = """
name: permutation
fabric: {builder: fat_tree, radix: 8}
traffic: {workload: permutation, message: MESSAGE}
law: dcqcn
"""
SWEEP = f"""
name: timed
scenario: permutation.yaml
vary: [{{key: engine.ecn.kmin, low: 10 KB, high: 1 MB, scale: log, steps: {NUM_POINTS}}}]
seeds: 1
probe: false
objectives: [{{metric: completion_time.max}}]
"""
SHORT, LONG = "50 KB", "60 MB"  # some milliseconds a run, and about a second


def benchmarks() -> list[dict[str, Any]]:
    """Return milliseconds of bookkeeping a run, and the speed-up of two workers, as rows of benchmarks/results.json."""
    bookkeeping_ms = [_bookkeeping_ms() for _ in range(RUNS)]
    speed_ups = [_sweep_s(1, LONG)[0] / _sweep_s(2, LONG)[0] for _ in range(RUNS)]
    return [
        _row("sweep.bookkeeping", "ms a run", bookkeeping_ms),
        _row("sweep.speed-up.2-threads", "times", speed_ups),
    ]


def _bookkeeping_ms() -> float:
    whole_s, engine_s = _sweep_s(1, SHORT)
    return 1000 * (whole_s - engine_s) / NUM_POINTS


def _sweep_s(num_workers: int, message: str) -> tuple[float, float]:
    """Return the seconds a whole sweep takes with everything compiled, and those of them in the engine."""
    executor = Threads(num_workers=num_workers)
    with tempfile.TemporaryDirectory() as folder:
        _sweep(Path(folder, "warm"), executor, SHORT)
        started = time.perf_counter()
        runs = _sweep(Path(folder, "timed"), executor, message)
        whole_s = time.perf_counter() - started
    return whole_s, sum(run.run["wall_s"] for run in runs)


def _sweep(folder: Path, executor: Threads, message: str) -> list[RunRecord]:
    """Run the sweep in a folder of its own; returns the records of its runs."""
    folder.mkdir()
    (folder / "permutation.yaml").write_text(SCENARIO.replace("MESSAGE", message))
    (folder / "sweep.yaml").write_text(SWEEP)
    with open_folder(folder / "out") as out:
        record = run_sweep(load_sweep(folder / "sweep.yaml"), out, executor)
        return [out.read(ids[0]) for ids in record.run["point_ids"]]


def _row(name: str, unit: str, values: list[float]) -> dict[str, Any]:
    return {
        "name": name,
        "value": statistics.median(values),
        "unit": unit,
        "spread": f"median of {RUNS}, {min(values):.2f} to {max(values):.2f}",
    }
