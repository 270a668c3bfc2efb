"""What was collected becomes a scenario that other commands take."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.fleet.collect.collection import Collection, NodeState, write_collection
from fabrictune.fleet.transport.answer import State
from tests.fleet.site import clean_site


def test_a_collected_site_is_analysed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four hosts, two leaves and a spine: the draft is checked, its collisions are found, its timers are predicted."""
    monkeypatch.chdir(tmp_path)
    readings = clean_site().readings()
    states = [NodeState(name=reading.name, state=State.COLLECTED) for reading in readings]
    write_collection(Collection(readings=readings, states=states), Path("site"))
    assert run(["fleet", "export-scenario", "site", "--out", "mine", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["timers"] == "--timeout 22 --retries 7"
    assert "DSCP of data: 26" in answer["notes"]
    assert run(["scenario", "check", "mine/scenario.yaml"]) == 0
    assert run(["ecmp", "analyze", "mine/scenario.yaml", "--fail-on", "never", "--quiet"]) == 0
    assert run(["rdma", "timers", "predict", *answer["timers"].split()]) == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    assert run(["fleet", "export-scenario", "site", "--out", "other"]) == 2
