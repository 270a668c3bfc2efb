"""The page on faults says what is true: its scenario runs as it stands there, and its table lists every kind."""

import re
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.faults import FAULTS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "inject-a-fault.md"


def test_its_scenario_runs_and_tells_what_faults_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five faults, all transfers done, and packets lost to both kinds of causes."""
    (scenario,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "broken.yaml").write_text(scenario)
    assert run(["scenario", "check", str(tmp_path / "broken.yaml")]) == 0
    assert (
        run(["sim", "run", str(tmp_path / "broken.yaml"), "--out", str(tmp_path / "record"), "--fail-on", "never"]) == 0
    )
    shown = capsys.readouterr().out
    assert "switch_down agg0-0" in shown
    assert re.search(r"packets lost to faults: \d+ bit error, \d+ link down", shown)
    record = RunRecord.read(tmp_path / "record")
    assert record.tables["faults"]["times"].tolist() == [1, 3, 1, 1, 1]
    assert record.tables["drops"]["packets"].sum() <= record.tables["ports"]["dropped_packets"].sum()


def test_it_lists_every_kind() -> None:
    """A fault that is added is written down."""
    assert sorted(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)) == sorted(FAULTS)
