"""Processor time and peak memory of a page on a large record: an all-to-all, a transfer from every NIC to every other.

The page is made by the command, as users run it: time and peak are the whole process's.

Run: `python -m benchmarks.run pages`, with `--quick` 256 NICs in place of 1,024
"""

import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.scenarios import written
from fabrictune.studies.simulation import simulate

NUM_NICS, QUICK_NUM_NICS = 1_024, 256
ALL_TO_ALL = """
name: all-to-all
fabric: {{builder: clos, num_hosts: {hosts}, hosts_per_tor_set: 16, nics_per_host: 8, tiers: 2, uplinks_per_tor: 16}}
traffic: {{workload: all_to_all, message: 4 KB}}
law: dcqcn_firmware
"""


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return time, memory and size, as rows of benchmarks/results.json."""
    num_nics = QUICK_NUM_NICS if is_quick else NUM_NICS
    with tempfile.TemporaryDirectory() as name:
        record, page = Path(name) / "record", Path(name) / "page.html"
        with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
            pool.submit(_simulate, num_nics, record).result()
        seconds, peak_mb = _build(record, page)
        kilobytes = page.stat().st_size / 1e3
    figures = (("processor-time", seconds, "s"), ("peak-memory", peak_mb, "MB"), ("size", kilobytes, "KB"))
    spread = f"one run, {num_nics * (num_nics - 1):,} transfers"
    return [
        {"name": f"reports.page-of-all-to-all-{num_nics}.{what}", "value": value, "unit": unit, "spread": spread}
        for what, value, unit in figures
    ]


def _simulate(num_nics: int, directory: Path) -> None:
    simulate(written(ALL_TO_ALL.format(hosts=num_nics // 8))).write(directory)


def _build(record: Path, page: Path) -> tuple[float, float]:
    """Return the processor time of the command in s, and its peak memory in MB."""
    command = [sys.executable, "-m", "fabrictune", "report", "build", str(record), "--out", str(page)]
    process = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(process, 0)
    assert status == 0, "the page was not made"
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6
