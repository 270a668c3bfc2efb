"""Planning 175B on 12,288 GPUs: the command, and the collisions of all its flows on MegaScale's fabric.

The command's time is wall time from nothing to the record, imports among it, with 32 micro-batches and four chunks a
tensor-parallel collective (recipe `175b`); planning alone is processor time in a process that has planned
before. The flows are the whole job's 137,710,080 requests added up, and counted before they are timed.

Run: `python -m benchmarks.run plans`
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fabrictune.collectives.expansion import ExpansionSpec
from fabrictune.collectives.flow_volumes import expand_to_flows
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.topology.builders.clos import build_clos
from fabrictune.topology.builders.megascale import MegascaleSpec
from fabrictune.topology.ecmp.collisions import analyze_collisions
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.placement import place
from fabrictune.topology.routing import build_network
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.plan import make_plan
from fabrictune.trainer_probe.recipes.files import find_recipe, load_recipe

RUNS = 3
NUM_REQUESTS = 137_668_608


def benchmarks() -> list[dict[str, Any]]:
    """Return the figures as rows of benchmarks/results.json."""
    recipe, hardware = load_recipe(find_recipe("175b")), HardwareSpec()
    plan = make_plan(recipe, hardware)
    assert plan.trace.num_requests == NUM_REQUESTS, f"the job has changed: {plan.trace.num_requests} requests"
    return [
        _row("trainer_probe.plan-175b-12288.command-wall", [_run_command() for _ in range(RUNS)]),
        _row("trainer_probe.plan-175b-12288.planning", _seconds(lambda: make_plan(recipe, hardware))),
        _row("trainer_probe.plan-175b-12288.collisions", _seconds(lambda: _find_collisions(plan.trace))),
    ]


def _run_command() -> float:
    with tempfile.TemporaryDirectory(prefix="fabrictune-plan-") as name:
        command = [sys.executable, "-m", "fabrictune", "train", "plan", "175b", "--quiet"]
        started = time.perf_counter()
        subprocess.run([*command, "--out", str(Path(name, "plan"))], check=True, capture_output=True)
        return time.perf_counter() - started


def _find_collisions(job: JobTrace) -> None:
    """Go from the templates to the loads of all links."""
    fabric = build_clos(MegascaleSpec())
    placement = place(job.layout, fabric, "contiguous")
    queue_pairs, flows = expand_to_flows(job.added_up().written_out(), placement, fabric, ExpansionSpec())
    assert int(flows.bytes_N.sum()) > 0, "a job that sends nothing"
    analyze_collisions(build_network(fabric, queue_pairs, HashSpec()))


def _seconds(work: Callable[[], object]) -> list[float]:
    found = []
    for _ in range(RUNS):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return found


def _row(name: str, values: list[float]) -> dict[str, Any]:
    spread = f"{len(values)} runs, {min(values):.2f} to {max(values):.2f}"
    return {"name": name, "value": statistics.median(values), "unit": "s", "spread": spread}
