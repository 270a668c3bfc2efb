"""A plan is a scenario: its file leads to the plan's figures, and the engine finds the gain that was predicted."""

import json
from pathlib import Path

import numpy as np
import pytest

from fabrictune.cli.framework.estimates import print_gains
from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.scenario.composition import compose
from fabrictune.scenario.files import load_scenario
from fabrictune.studies.collision_plan import plan_scenario, write_plan
from fabrictune.studies.plan_simulation import confirm
from fabrictune.topology.ecmp.seed_study import measure_network

# Two ToRs of one uplink each; both jobs run across, so that two flows share each uplink's 100 Gbps.
CROSSED = """
name: crossed
fabric:
  {builder: clos, num_hosts: 4, hosts_per_tor_set: 2, nics_per_host: 1, tiers: 2, uplinks_per_tor: 1,
   nic_rate: 100 Gbps, uplink_rate: 100 Gbps, downlink_split: 1}
traffic:
  workload: mix
  parts:
    - {name: a, traffic: {workload: all_reduce, layout: {dp: 2}, hosts: [host0, host2], message: 8 MB}}
    - {name: b, traffic: {workload: all_reduce, layout: {dp: 2}, hosts: free, message: 8 MB}}
"""
RINGS = """
name: rings
fabric: {builder: clos, num_hosts: 16, hosts_per_tor_set: 4, nics_per_host: 8, tiers: 3, tor_sets_per_pod: 2}
routing: {function: crc32, seed_per_switch: false}
traffic: {workload: neighbours, layout: {tp: 8, dp: 16}, placement: random, placement_seed: 2}
"""


@pytest.fixture
def crossed(tmp_path: Path) -> Path:
    """Return the file of two jobs that meet on both uplinks."""
    path = tmp_path / "crossed.yaml"
    path.write_text(CROSSED)
    return path


@pytest.mark.parametrize("keeps_placement", [False, True])
def test_the_planned_scenario_has_the_plans_figures(tmp_path: Path, keeps_placement: bool) -> None:
    """Placement, queue pairs, seeds and source ports are read from its files: those of the last step."""
    path = tmp_path / "rings.yaml"
    path.write_text(RINGS)
    scenario = load_scenario(path)
    record = plan_scenario(scenario, num_seeds=5, keeps_placement=keeps_placement)
    *_, planned = write_plan(record, tmp_path / "plan", scenario)
    outcome, steps = measure_network(compose(load_scenario(planned)).network), record.tables["steps"]
    last = [row for row, is_taken in enumerate(steps["is_taken"].tolist()) if is_taken][-1]
    assert outcome.throughput_fraction.value == steps["throughput_fraction"][last]
    assert outcome.slowest_connection_bps.value == steps["slowest_connection_bps"][last]


def test_jobs_are_planned_together(crossed: Path) -> None:
    """Each under one ToR leaves the uplinks: the table names the job of every rank, and no GPU has two."""
    record = plan_scenario(load_scenario(crossed), num_seeds=2)
    placement = record.tables["placement"]
    assert placement["job"].tolist() == ["a", "a", "b", "b"]
    hosts = placement["host"].tolist()
    assert [set(hosts[:2]), set(hosts[2:])] == [{"host0", "host1"}, {"host2", "host3"}]


def test_the_gain_of_two_jobs_is_predicted_and_simulated(crossed: Path, tmp_path: Path) -> None:
    """Half a link as it is, a whole one with the plan: twice as fast, by rates and by packets.

    8 MB over a link of 100 Gbps, 8.156 MB with headers of 80 B for each 4,096 B, take 652 us, and twice that shared.
    """
    scenario = load_scenario(crossed)
    *_, planned = write_plan(plan_scenario(scenario, num_seeds=2), tmp_path / "plan", scenario)
    gains = confirm(scenario, load_scenario(planned))
    assert gains["job"].tolist() == ["a", "b", "all"]
    for how in ("predicted", "simulated"):
        assert gains[f"{how}_gain"].tolist() == pytest.approx([2, 2, 2], rel=0.02)
        assert gains[f"{how}_after_ps"].tolist() == pytest.approx([652e6] * 3, rel=0.03)


def test_the_command_prints_both_gains(
    crossed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row a job and one for all; the record has the table, and the planned scenario runs as any."""
    monkeypatch.chdir(crossed.parent)
    assert run(["ecmp", "plan", "crossed.yaml", "--simulate", "--out", "plan", "--seeds", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["plan_gains"]
    assert [row["job"] for row in rows] == ["a", "b", "all"]
    assert RunRecord.read(Path("plan")).tables["plan_gains"]["simulated_gain"][0] == rows[0]["simulated_gain"]
    assert run(["sim", "run", "plan/planned.yaml", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["ecmp", "plan", "crossed.yaml", "--simulate", "--out", "plan", "--seeds", "2"]) == 0
    printed = capsys.readouterr().out
    assert "job  predicted as is" in printed
    assert "simulated: packet by packet, law none" in printed


def test_gains_that_differ_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Twice predicted and 2.5 times simulated are 20 % apart; 2.05 confirms it. A job that never ends is apart, too."""
    numbers = {"predicted_before_ps": 2e6, "predicted_after_ps": 1e6, "predicted_gain": 2.0, "simulated_after_ps": 1e6}
    gains = {name: np.full(3, value) for name, value in numbers.items()}
    gains["simulated_before_ps"] = np.array([2.5e6, 2.05e6, np.nan])
    gains["simulated_gain"] = gains["simulated_before_ps"] / 1e6
    print_gains({"job": np.array(["a", "b", "c"], object), **gains}, law="dcqcn")
    printed = capsys.readouterr().out
    assert "more than 5% apart: a, c. Law dcqcn, queues and pauses do not keep to max-min rates." in printed
    assert "-20.0 %" in printed
    assert "never" in printed
