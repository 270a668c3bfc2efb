"""A small sweep, and how its table is compared: an incast of four hosts that runs in a few milliseconds."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.sweeps.executors import Executor, Threads
from fabrictune.sweeps.runner import run_sweep
from fabrictune.sweeps.schema import load_sweep
from fabrictune.sweeps.store import open_folder

SCENARIO = """
name: small
fabric: {builder: clos, num_hosts: 5, hosts_per_tor_set: 5, nics_per_host: 1, tiers: 2, nic_rate: 100 Gbps,
         uplink_rate: 100 Gbps, downlink_split: 1}
traffic: {workload: incast, senders: 4, message: 200 KB}
law: {name: none}
"""
SWEEP = """
name: small-sweep
scenario: small.yaml
vary:
  - {key: traffic.message, values: [50 KB, 100 KB, 200 KB]}
  - {key: engine.ecn.kmin, values: [10 KB, 100 KB]}
seeds: 2
objectives: [{metric: completion_time.max}, {metric: ecn_marks}]
"""

Write = Callable[[str], Path]
Run = Callable[..., RunRecord]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes the scenario, and a sweep of it, and returns the sweep's file."""

    def write(sweep: str = SWEEP, scenario: str = SCENARIO) -> Path:
        (tmp_path / "small.yaml").write_text(scenario)
        (tmp_path / "sweep.yaml").write_text(sweep)
        return tmp_path / "sweep.yaml"

    return write


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs a sweep's file in a folder of the test's own."""

    def run(path: Path, out: str = "out", executor: Executor | None = None, **options: Any) -> RunRecord:
        with open_folder(tmp_path / out) as folder:
            return run_sweep(load_sweep(path), folder, executor or Threads(num_workers=2), **options)

    return run


def tables(record: RunRecord) -> Mapping[str, Mapping[str, list[Any]]]:
    """Return a sweep's tables as plain values, nan as text, so that equal means equal."""
    return {
        name: {key: [repr(value) for value in column.tolist()] for key, column in columns.items()}
        for name, columns in record.tables.items()
    }
