"""An all-reduce of 128 MB over 128 GPUs, packet by packet, beside what SimAI takes for it.

Ours is the bundled scenario simai-128 from its file to its record: wall time, law compiled and fabric built. SimAI's
figures are of its ns-3 part on a machine of two cores: 98.3 s as its script builds it, 17.6 s with the optimiser on.
The work is the same in packets, about 3.6 million of 9,000 B, not in all else: SimAI sends over NVLink as well, where
the scenario gives each GPU a NIC, and has no retransmission timers.

Run: `python -m benchmarks.run simai_all_reduce`
"""

import statistics
import time
from pathlib import Path
from typing import Any

from fabrictune.scenario.files import load_scenario
from fabrictune.studies.simulation import simulate

RUNS = 5
SCENARIO = Path(__file__).parents[1] / "scenarios" / "simai-128.yaml"
SIMAI_S = {"optimised": 17.6, "as-shipped": 98.3}
NUM_PACKETS = 254 * 128 * 112  # steps, ranks, and packets of a step's 1 MB


def benchmarks() -> list[dict[str, Any]]:
    """Return wall seconds and how many times faster that is, as rows of benchmarks/results.json."""
    seconds = sorted(_run_seconds() for _ in range(RUNS))
    median = statistics.median(seconds)
    spread = f"median of {RUNS}, {seconds[0]:.2f} to {seconds[-1]:.2f} s"
    rows = [
        ("wall-time", median, "s"),
        ("packets", NUM_PACKETS / median, "data packets/s"),
        *((f"over-simai-{build}", simai_s / median, "times as fast") for build, simai_s in SIMAI_S.items()),
    ]
    return [
        {"name": f"netsim.simai-all-reduce.{what}", "value": value, "unit": unit, "spread": spread}
        for what, value, unit in rows
    ]


def _run_seconds() -> float:
    started_s = time.perf_counter()
    record = simulate(load_scenario(SCENARIO))
    seconds = time.perf_counter() - started_s
    assert record.run["packets"]["data_delivered"] == NUM_PACKETS, "the traffic has changed"
    return seconds
