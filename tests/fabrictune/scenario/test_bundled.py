"""Bundled scenarios and the example law, as a user copies them."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.scenario.bundled import bundled_names, bundled_path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_bundled_scenario_has_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scenario", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in listed] == list(bundled_names())
    assert all(one["question"] for one in listed)


def test_a_copy_runs_as_the_bundled_one_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scenario", "copy", "incast", "--out", "mine.yaml"]) == 0
    assert capsys.readouterr().out == "file: mine.yaml\n"
    assert Path("mine.yaml").read_bytes() == bundled_path("incast").read_bytes()
    assert run(["scenario", "check", "mine.yaml"]) == 0


def test_no_file_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    Path("incast.yaml").write_text("mine\n")
    assert run(["scenario", "copy", "incast"]) == 2
    said = "incast.yaml: a file that exists\n  next: choose another name; nothing was written\n"
    assert capsys.readouterr().err == said
    assert Path("incast.yaml").read_text() == "mine\n"


def test_an_unknown_name_has_its_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scenario", "copy", "incst"]) == 2
    assert "did you mean 'incast'?" in capsys.readouterr().err


def test_a_new_law_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Written, shown and run with trust, and with none refused."""
    assert run(["law", "new", "my_law.py"]) == 0
    assert run(["law", "show", "my_law.py", "--trust-code"]) == 0
    text = bundled_path("incast").read_text()
    assert "law: none" in text
    Path("mine.yaml").write_text(text.replace("law: none", "law: ./my_law.py"))
    assert run(["sim", "run", "mine.yaml"]) == 2
    capsys.readouterr()
    assert run(["sim", "run", "mine.yaml", "--trust-code", "--fail-on", "never", "--json"]) == 0
    assert Path(json.loads(capsys.readouterr().out)["record"]).is_dir()
