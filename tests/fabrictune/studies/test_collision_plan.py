"""A plan for a scenario: every step is measured, none that is taken makes it worse, and its files say the same."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.composition import compose
from fabrictune.scenario.files import load_scenario
from fabrictune.scenario.overrides import override
from fabrictune.studies.collision_plan import plan_scenario, write_plan
from fabrictune.topology.ecmp.seed_study import measure_network
from fabrictune.topology.routing import build_network

RINGS = """
name: rings
fabric: {builder: clos, num_hosts: 16, hosts_per_tor_set: 4, nics_per_host: 8, tiers: 3, tor_sets_per_pod: 2}
routing: {function: crc32, seed_per_switch: false}
traffic: {workload: neighbours, layout: {tp: 8, dp: 16}, placement: interleaved}
"""
PERMUTATION = """
name: permutation
fabric: {builder: fat_tree, radix: 4, link_rate: 100 Gbps}
traffic: {workload: permutation, message: 1 MB}
"""


def planned(tmp_path: Path, text: str) -> RunRecord:
    """Return the plan for a scenario given as text."""
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    return plan_scenario(load_scenario(path), num_seeds=10)


@pytest.fixture
def rings(tmp_path: Path) -> RunRecord:
    """Return the plan for a badly placed job."""
    return planned(tmp_path, RINGS)


def test_no_step_that_is_taken_makes_it_worse(rings: RunRecord) -> None:
    """Among steps measured alike, throughput and the slowest flow rise from one taken step to the next."""
    steps = rings.tables["steps"]
    for knows_seeds in (0, 1):
        taken = (steps["is_taken"] == 1) & (steps["knows_seeds"] == knows_seeds)
        for merit in ("throughput_fraction", "slowest_fraction"):
            assert (np.diff(steps[merit][taken]) >= 0).all()
    assert steps["throughput_fraction"][-1] > steps["throughput_fraction"][0]


def test_the_placement_is_the_first_gain(rings: RunRecord) -> None:
    """Interleaved rings climb at every step; the step that mends it is named and taken."""
    steps = rings.tables["steps"]
    assert steps["step"][1].startswith("placement: contiguous")
    assert steps["is_taken"][1] == 1
    assert steps["throughput_fraction"][1] > steps["throughput_fraction"][0] + 0.1


def test_the_files_hold_the_plan(rings: RunRecord, tmp_path: Path) -> None:
    """One row a rank and one a queue pair, with ports that a NIC can be set to."""
    scenario = load_scenario(tmp_path / "scenario.yaml")
    directory, placement, source_ports, _ = write_plan(rings, tmp_path / "plan", scenario)
    assert RunRecord.read(directory).run["changes"] == rings.run["changes"]
    with placement.open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["rank"]) for row in rows] == list(range(128))
    assert all(row["nic"] == f"{row['host']}:nic{row['gpu']}" for row in rows)
    with source_ports.open() as file:
        ports = [int(row["source_port"]) for row in csv.DictReader(file)]
    assert ports == rings.tables["source_ports"]["source_port"].tolist()
    assert all(49152 <= port < 65536 for port in ports)


def test_a_plan_repeats(rings: RunRecord, tmp_path: Path) -> None:
    """The same scenario gives the same tables."""
    again = planned(tmp_path, RINGS)
    for name, columns in rings.tables.items():
        for column, values in columns.items():
            assert np.array_equal(values, again.tables[name][column]), f"{name}.{column}"


def test_traffic_that_is_no_jobs_gets_seeds_and_ports(tmp_path: Path) -> None:
    """A permutation has no ranks to place and no connections to widen."""
    record = planned(tmp_path, PERMUTATION)
    assert "placement" not in record.tables
    steps = record.tables["steps"]
    assert len(steps["step"]) == 4
    assert steps["throughput_fraction"][-1] > steps["throughput_fraction"][1] + 0.05


def test_a_running_job_keeps_its_placement(tmp_path: Path) -> None:
    """Without moving a rank, more queue pairs, seeds or ports must do; the table of ranks is that of the scenario."""
    path = tmp_path / "scenario.yaml"
    path.write_text(RINGS)
    scenario = load_scenario(path)
    record = plan_scenario(scenario, num_seeds=5, keeps_placement=True)
    steps = record.tables["steps"]
    assert not any(name.startswith("placement") for name in steps["step"])
    assert record.tables["placement"]["host"][::32].tolist() == ["host0", "host1", "host2", "host3"]  # every fourth set
    assert steps["throughput_fraction"][-1] > steps["throughput_fraction"][0] + 0.1
    assert record.run["changes"]["traffic.expansion.qps_per_connection"] > 1


def test_the_files_give_what_the_plan_promises(tmp_path: Path) -> None:
    """Settings, placement and source ports, read back from what was written, lead to the last step's figures."""
    path = tmp_path / "scenario.yaml"
    path.write_text(RINGS)
    scenario = load_scenario(path)
    record = plan_scenario(scenario, num_seeds=5, keeps_placement=True)
    directory, _, source_ports, _ = write_plan(record, tmp_path / "plan", scenario)
    changed = override(scenario, RunRecord.read(directory).run["changes"], origin="plan")
    network = compose(changed).network
    with source_ports.open() as file:
        ports = np.array([int(row["source_port"]) for row in csv.DictReader(file)])
    queue_pairs = replace(network.queue_pairs, source_port_Q=ports)
    outcome = measure_network(build_network(network.fabric, queue_pairs, changed.routing))
    steps = record.tables["steps"]
    assert steps["is_taken"][-1] == 1
    assert outcome.throughput_fraction.value == steps["throughput_fraction"][-1]
    assert outcome.slowest_connection_bps.value == steps["slowest_connection_bps"][-1]
