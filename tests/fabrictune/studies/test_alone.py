"""Parts of a mixture alone: the same places and paths, and nothing of the others."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.scenario.files import load_scenario, parse_scenario
from fabrictune.studies.run_summary import summarize
from fabrictune.studies.simulation import simulate

# Two ToRs of one uplink each: `a` and `b` meet on both, `c` stays under its own.
JOBS = """
name: jobs
fabric:
  {builder: clos, num_hosts: 6, hosts_per_tor_set: 3, nics_per_host: 1, tiers: 2, uplinks_per_tor: 1,
   nic_rate: 100 Gbps, uplink_rate: 100 Gbps, downlink_split: 1}
traffic:
  workload: mix
  parts:
    - {name: a, traffic: {workload: all_reduce, layout: {dp: 2}, hosts: [0, 3], message: 4 MB}}
    - {name: b, start: 1 us, traffic: {workload: all_reduce, layout: {dp: 2}, hosts: [1, 4], message: 4 MB}}
    - {name: c, traffic: {workload: incast, senders: 1, receiver: 2, message: 1 MB}}
"""


def test_jobs_that_share_a_link_take_twice_their_time_alone(tmp_path: Path) -> None:
    """4 MB over 100 Gbps, 4.078 MB with headers, take 326 us; two rings share the uplinks, and take twice that."""
    path = tmp_path / "jobs.yaml"
    path.write_text(JOBS)
    record = simulate(load_scenario(path), runs_alone=True)
    table = record.tables["alone"]
    assert table["part"].tolist() == ["a", "b", "c"]
    assert table["alone_ps"][:2].tolist() == pytest.approx([326e6] * 2, rel=0.05)
    assert table["slowdown"][:2].tolist() == pytest.approx([2, 2], rel=0.15)
    assert table["beside_ps"].tolist() == [summarize(record).parts[name]["makespan"] for name in "abc"]


def test_a_part_alone_does_not_depend_on_the_others(tmp_path: Path) -> None:
    """Three times the message of `b` slows `a`, and changes nothing of `a` alone."""
    path = tmp_path / "jobs.yaml"
    first, second = (
        simulate(parse_scenario(text, path), runs_alone=True).tables["alone"]
        for text in (JOBS, JOBS.replace("[1, 4], message: 4 MB", "[1, 4], message: 12 MB"))
    )
    assert first["alone_ps"][0] == second["alone_ps"][0]
    assert first["alone_ps"][1] < second["alone_ps"][1]


def test_the_command_prints_what_the_others_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row a part; without parts the option is refused."""
    path = tmp_path / "jobs.yaml"
    path.write_text(JOBS)
    assert run(["sim", "run", str(path), "--alone", "--out", str(tmp_path / "run"), "--fail-on", "never"]) == 0
    assert "JCT beside the others" in capsys.readouterr().out
    words = ["sim", "run", str(path), "--alone", "--out", str(tmp_path / "run"), "--fail-on", "never", "--json"]
    assert run(words) == 0
    assert [row["part"] for row in json.loads(capsys.readouterr().out)["alone"]] == ["a", "b", "c"]
    path.write_text(JOBS.partition("traffic:")[0] + "traffic: {workload: incast, senders: 2, message: 1 MB}\n")
    assert run(words[:-1]) == 2
    assert "workload: mix" in capsys.readouterr().err
