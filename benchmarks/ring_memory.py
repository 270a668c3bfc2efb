"""Peak memory of large rings: run, record and summary of an all-reduce of one packet a transfer.

Each size runs in a process of its own, as the peak is the whole process's. GPUs are eight to a host, one ring a rail.

Run: `python -m benchmarks.run ring_memory`, with `--quick` the two smaller sizes
"""

import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.scenarios import written
from fabrictune.studies.run_summary import summarize
from fabrictune.studies.simulation import simulate

SIZES, QUICK_SIZES = (512, 2_048, 6_144, 12_288), (512, 2_048)
RING = """
name: large-ring
fabric: {{builder: clos, num_hosts: {hosts}, hosts_per_tor_set: 64, nics_per_host: 8, tiers: 3}}
traffic: {{workload: all_reduce, layout: {{tp: 8, dp: {hosts}}}, placement: contiguous, message: {message} B}}
law: none
"""


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return peak memory and processor time, as rows of benchmarks/results.json."""
    return [row for num_gpus in (QUICK_SIZES if is_quick else SIZES) for row in _rows(num_gpus)]


def _rows(num_gpus: int) -> list[dict[str, Any]]:
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        num_transfers, peak_mib, seconds = pool.submit(_run, num_gpus).result()
    figures = (("peak-memory", peak_mib, "MiB"), ("processor-time", seconds, "s"))
    return [
        {
            "name": f"netsim.ring-of-{num_gpus}.{what}",
            "value": value,
            "unit": unit,
            "spread": f"one run, {num_transfers:,} transfers, whole process",
        }
        for what, value, unit in figures
    ]


def _run(num_gpus: int) -> tuple[int, float, float]:
    hosts = num_gpus // 8
    record = simulate(written(RING.format(hosts=hosts, message=hosts * 1024)), with_collisions=False)
    summarize(record)
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return len(record.tables["transfers"]["finish_ps"]), peak_kib / 1024, time.process_time()
