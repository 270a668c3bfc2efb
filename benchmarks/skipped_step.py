"""A planned step of 256 GPUs by each way of skip: how much faster, how far its end is off, and audits inside.

The step is that of `law_comparison`, well and badly placed, under four laws. Exact skip must end as every event does,
which the benchmark checks. Times are of the run with its record, the scenario compiled before; one run each.

Run: `python -m benchmarks.run skipped_step`, with `--quick` the well placed step without a law
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.law_comparison.points import NEEDS_STEP, QUESTIONS, STEP
from benchmarks.law_comparison.steps import write_step
from fabrictune.foundation.metrics.transfers import makespan_ps
from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.compilation import compile_scenario
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override
from fabrictune.scenario.schema import Scenario
from fabrictune.studies.simulation import run_engine

LAWS = ("none", "swift", "hybrid", "dcqcn_firmware")
PLACEMENTS = {"well-placed": "contiguous", "badly-placed": "interleaved"}
WAYS = ("exact", "bounded", "fluid")


def benchmarks(*, is_quick: bool = False) -> list[dict[str, Any]]:
    """Return how much faster each way is, as rows of benchmarks/results.json."""
    laws, placements = (("none",), ("well-placed",)) if is_quick else (LAWS, tuple(PLACEMENTS))
    with tempfile.TemporaryDirectory() as name:
        shutil.copy(QUESTIONS / f"{NEEDS_STEP}.yaml", name)
        write_step(Path(name) / STEP)
        step = load_scenario(Path(name) / f"{NEEDS_STEP}.yaml")
        return [row for placement in placements for law in laws for row in _rows(step, placement, law)]


def _rows(step: Scenario, placement: str, law: str) -> Iterator[dict[str, Any]]:
    changes = {"law": law, "traffic.placement": PLACEMENTS[placement]}
    off_s, off = _run(step, {**changes, "engine.skip": "off"})
    end_ps = makespan_ps(off.tables["transfers"])
    for way in WAYS:
        seconds, record = _run(step, {**changes, "engine.skip": way})
        error = makespan_ps(record.tables["transfers"]) / end_ps - 1
        assert way != "exact" or (error == 0 and record.run["events"] == off.run["events"]), "skip has changed the run"
        yield {
            "name": f"netsim.skipped-step.{placement}.{law}.{way}",
            "value": off_s / seconds,
            "unit": "times as fast",
            "spread": f"{off_s:.1f} and {seconds:.1f} s, end {error:+.3%}, {_audits(record, way)}",
        }


def _run(step: Scenario, changes: dict[str, Any]) -> tuple[float, RunRecord]:
    compiled = compile_scenario(override(step, changes, origin="benchmark"))
    started_s = time.process_time()
    record = run_engine(compiled)
    return time.process_time() - started_s, record


def _audits(record: RunRecord, way: str) -> str:
    skip = record.run["skip"]
    if way == "exact":
        return f"{skip['share']:.1%} of events skipped"
    return f"{skip[way]['audited_counts_inside']} of {skip[way]['audited_counts']} audits inside"
