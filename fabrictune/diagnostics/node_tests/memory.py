"""Copies in memory: bytes read and written a second, the best of several rounds, and whether they arrive.

Source: McCalpin, STREAM (copy), which counts both directions.
"""

import time
from pathlib import Path

import numpy as np

from fabrictune.diagnostics.results import NodeResult

_BYTES = 2**26  # above the caches of most processors' cores
_NUM_ROUNDS = 6


def measure_memory(folder: Path) -> NodeResult:
    """Copy a large array again and again."""
    source = np.random.default_rng(0).integers(0, 2**63, _BYTES // 8, np.int64)
    target, times_s = np.zeros_like(source), []
    for _ in range(_NUM_ROUNDS):
        began_s = time.perf_counter()
        np.copyto(target, source)
        times_s.append(time.perf_counter() - began_s)
    num_wrong = int((target != source).sum())
    faults = (f"{num_wrong:,} of {source.size:,} words of a copy are wrong",) if num_wrong else ()
    return NodeResult(test="memory", figures={"copy_bytes_per_s": 2 * _BYTES / min(times_s)}, faults=faults)
