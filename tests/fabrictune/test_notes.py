"""What a fabric and its traffic assume reaches every command's output and every record on the scenario."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord, notes_of

CABLES = """a_device,a_port,a_role,b_device,b_port,b_role,rate
h1,nic0,server,leaf1,1,leaf,
h2,nic0,server,leaf1,2,leaf,
"""
ASSUMED = "2 links have no speed; assuming 100 Gbps"
SCENARIO = """name: assumed
fabric: {file: fabric.json}
traffic: {workload: all_reduce, layout: {dp: 2}, message: 64 KB}
whatif: [{name: two, change: {traffic.expansion.qps_per_connection: 2}}]
factors: [{name: qps, low: {traffic.expansion.qps_per_connection: 1},
           high: {traffic.expansion.qps_per_connection: 2}}]
"""
SWEEP = """name: swept
scenario: assumed.yaml
vary: [{key: traffic.message, values: [64 KB, 128 KB]}]
seeds: 1
objectives: [{metric: makespan}]
"""
MEASURED = """# Collective test starting: all_reduce_perf
#  Rank 0 Group 0 Pid 1 on h1 device 0 [0x00] A100
#  Rank 1 Group 0 Pid 1 on h2 device 0 [0x00] A100
 8000000 2000000 float sum -1 1000.0 8.00 8.00 0
 80000000 20000000 float sum -1 10000.0 8.00 8.00 0
"""
COMMANDS = (
    ["coll", "compare", "measured.txt", "--scenario", "assumed.yaml", "--fail-on", "never"],
    ["sim", "run", "assumed.yaml"],
    ["sim", "sweep", "swept.yaml"],
    ["ecmp", "analyze", "assumed.yaml"],
    ["ecmp", "whatif", "assumed.yaml", "--seeds", "2"],
    ["ecmp", "factorial", "assumed.yaml", "--seeds", "2"],
    ["ecmp", "plan", "assumed.yaml", "--seeds", "2"],
    ["coll", "model", "assumed.yaml", "all_reduce", "-b", "64 KB", "-e", "64 KB"],
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A scenario on a saved fabric whose links had no speed, and a sweep of it."""
    monkeypatch.chdir(tmp_path)
    Path("cables.csv").write_text(CABLES)
    assert run(["topo", "import", "cables.csv", "--out", "fabric.json"]) == 0
    Path("assumed.yaml").write_text(SCENARIO)
    Path("swept.yaml").write_text(SWEEP)
    Path("measured.txt").write_text(MEASURED)
    capsys.readouterr()
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_a_commands_output_and_record_say_what_is_assumed(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """As a warning for people, as notes for machines, and in the record's head."""
    assert run([*command, "--out", "record"]) == 0
    assert f"warning: {ASSUMED}\n" in capsys.readouterr().err
    assert run([*command, "--out", "record", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert ASSUMED in shown["notes"]
    assert ASSUMED in notes_of(RunRecord.read(Path(shown["record"] if "record" in shown else shown["files"][0])))


@pytest.mark.usefixtures("folder")
def test_a_check_and_an_explanation_say_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither writes a record."""
    for command in (["scenario", "check", "assumed.yaml"], ["ecmp", "explain", "assumed.yaml"]):
        assert run(command) == 0
        assert f"warning: {ASSUMED}\n" in capsys.readouterr().err
        assert run([*command, "--json"]) == 0
        assert ASSUMED in json.loads(capsys.readouterr().out)["notes"]
