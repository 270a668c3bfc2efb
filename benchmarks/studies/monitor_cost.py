"""What a monitor of the NICs costs the work beside it: steps with the monitor on against steps with it stopped.

The work is matrix products on every core; a step is some 50 ms. The monitor runs as `fabrictune rdma monitor` does, in
a process of its own, stopped and continued in turn, so that what else the machine does meets both alike. The noise is
that of steps without it: blocks of even number against those of odd number (A/A).

Expected, written before the first run: less than 1 % at 10 ms on an idle machine, and within the noise on a busy one.
The first run was of the second kind: a load of 30 on two cores, A/A -14.6 % (-54 to +87 %), monitor +21.0 % (-29 to
+62 %). So the processor time that the monitor takes is printed too: it bounds what it can take from the work.

Run: `python -m benchmarks.studies.monitor_cost [--interval 10ms] [--blocks N]` (60 blocks are about two minutes)
"""

import argparse
import os
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.children import module_command
from fabrictune.foundation.metrics.formulas import percentile

BLOCK_S = 2.0
_SIDE, _PRODUCTS = 512, 12
_RESAMPLES = 2000


def main() -> None:
    """Measure and print the difference with its interval."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interval", default="10ms")
    parser.add_argument("--blocks", type=int, default=60)
    options = parser.parse_args()
    num_cores = len(os.sched_getaffinity(0))
    random = np.random.default_rng(0)
    matrices = [random.random((_SIDE, _SIDE)) for _ in range(num_cores)]
    off: list[float] = []
    on: list[float] = []
    taken_s = 0.0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(num_cores) as threads:
        words = ("rdma", "monitor", "--interval", options.interval, "--out", f"{folder}/record", "--quiet")
        with subprocess.Popen(module_command("fabrictune", *words), stdout=subprocess.DEVNULL) as monitor:
            time.sleep(5.0)  # it imports, and takes its memory
            for block in range(options.blocks):
                is_on = block % 2 == 1
                monitor.send_signal(signal.SIGCONT if is_on else signal.SIGSTOP)
                before_s = _processor_s(monitor.pid)
                (on if is_on else off).append(_median_step_s(matrices, threads))
                taken_s += _processor_s(monitor.pid) - before_s
            monitor.kill()
    off_B, on_B = np.array(off), np.array(on)
    half = len(off_B) // 2
    print(f"{len(off_B)} blocks of {BLOCK_S:g} s without, {len(on_B)} with a sample each {options.interval}")
    print(f"step without: {1e3 * np.median(off_B):.2f} ms")
    share = taken_s / (len(on_B) * BLOCK_S)
    print(f"processor time of the monitor: {share:.2%} of a core, {share / num_cores:.2%} of the {num_cores} cores")
    for name, first_B, second_B in (("monitor", off_B, on_B), ("A/A", off_B[0::2][:half], off_B[1::2][:half])):
        low, middle, high = _change(first_B, second_B)
        print(f"{name}: {middle:+.2%} of a step (95 %: {low:+.2%} to {high:+.2%})")


def _median_step_s(matrices: list[FloatArray], threads: ThreadPoolExecutor) -> float:
    steps, end_s = [], time.perf_counter() + BLOCK_S
    while time.perf_counter() < end_s:
        began_s = time.perf_counter()
        list(threads.map(_multiply, matrices))
        steps.append(time.perf_counter() - began_s)
    return float(np.median(steps))


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _multiply(matrix: FloatArray) -> None:
    for _ in range(_PRODUCTS):
        matrix @ matrix


def _change(first_B: FloatArray, second_B: FloatArray) -> tuple[float, float, float]:
    """Return the relative change of the medians of blocks, with its interval by resampling."""
    random = np.random.default_rng(0)
    changes = [
        np.median(random.choice(second_B, len(second_B))) / np.median(random.choice(first_B, len(first_B))) - 1
        for _ in range(_RESAMPLES)
    ]
    low, high = (percentile(changes, share) for share in (0.025, 0.975))
    return float(low), float(np.median(second_B) / np.median(first_B) - 1), float(high)


if __name__ == "__main__":
    main()
