"""`validate whatif` as a user calls it."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page

SCENARIO = """\
name: small
fabric: {builder: clos, num_hosts: 4, hosts_per_tor_set: 2, nics_per_host: 2, tiers: 2, switch_radix: 16}
traffic: {workload: all_reduce, layout: {dp: 8}, message: 1 MB}
"""


@pytest.fixture(autouse=True)
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs go below the folder a command is called in."""
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SCENARIO, encoding="utf-8")


def test_it_prints_what_each_thing_gains_and_where_it_stops(capsys: pytest.CaptureFixture[str]) -> None:
    """The job as it is first, its own values starred; 50 lines of 160 columns at most; the page has its section."""
    assert run(["validate", "whatif", "small.yaml", "--seeds", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["what", "value", "step", "interval", "change", "interval", "communication"]
    assert lines[1].startswith("as it is")
    assert any(line.startswith("NIC rate") and "200 Gbps *" in line and "+0.0%" in line for line in lines)
    assert any(line.startswith("NIC rate: matters up to 800 Gbps, the most that was tried") for line in lines)
    assert "assumed: one thing is changed at a time, all else is as the scenario has it" in lines
    assert lines[-1] == "record: runs/small-whatif/result"
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 160
    record = RunRecord.read(Path("runs/small-whatif/result"))
    assert record.run["command"] == "fabrictune validate whatif small.yaml --seeds 2"
    html = build_page([record], title="small")
    assert "What network is enough" in html
    assert "small: step by NIC rate." in html


def test_keys_of_its_own_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    """`--vary` takes the place of what is changed by default; the tables as JSON."""
    options = ["--vary", "law=none;swift", "--seeds", "1", "--json"]
    assert run(["validate", "whatif", "small.yaml", *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [(row["family"], row["value"]) for row in printed["network_variants"]] == [
        ("as it is", ""),
        ("law", "none"),
        ("law", "swift"),
    ]
    assert printed["network_knees"] == []
    assert printed["notes"][0] == "measured is makespan in the engine 'packet'; runs a variant: 1"
    assert printed["notes"][-1] == "one run a variant: intervals have no width; --seeds 3 gives them one"


def test_a_job_larger_than_its_fabric_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    """Sixteen ranks on eight NICs: what is wrong, where, and nothing is run."""
    Path("small.yaml").write_text(SCENARIO.replace("dp: 8", "dp: 16"), encoding="utf-8")
    assert run(["validate", "whatif", "small.yaml"]) == 2
    assert "16 ranks" in capsys.readouterr().err


def test_a_recipe_is_priced_and_a_scenario_is_not_one(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is no file is a recipe's; options of the other kind are refused."""
    pytest.importorskip("torch")
    assert run(["validate", "whatif", "tiny", "--hardware", "h100", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["notes"][0] == "tiny on h100: 8 GPUs, tp 2, dp 2, pp 2; overlap all"
    assert {row["family"] for row in printed["network_knees"]} == {"NIC rate", "NICs a host"}
    assert run(["validate", "whatif", "tiny", "--seeds", "2"]) == 2
    assert "--seeds: given\n  allowed: a scenario's, which a recipe is not" in capsys.readouterr().err
    assert run(["validate", "whatif", "small.yaml", "--hardware", "h100"]) == 2
    assert "--hardware: given\n  allowed: a recipe's; a scenario has its own fabric" in capsys.readouterr().err
    assert run(["validate", "whatif", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
