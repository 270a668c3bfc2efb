"""`fabrictune init`: a scenario that runs, with or without questions, and never in place of a file."""

import io
import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.scenario.files import load_scenario


class Terminal(io.StringIO):
    """A standard input on which a person types."""

    def isatty(self) -> bool:
        """Say that somebody is there."""
        return True


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_a_terminal_suggestions_are_taken_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    """The next command that is printed runs."""
    assert run(["init", "my.yaml", "--set", "fabric.num_hosts=8; fabric.hosts_per_tor_set=2"]) == 0
    out = capsys.readouterr().out
    assert "suggested: fabric.nics_per_host: 8\n" in out
    assert "num_hosts" not in out
    assert "file: my.yaml: 64 NICs, 64 queue pairs, 1,024 transfers\nnext: fabrictune ecmp analyze my.yaml\n" in out
    assert run(["ecmp", "analyze", "my.yaml", "--fail-on", "never", "--out", "analyzed"]) == 0


def test_on_a_terminal_it_asks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Enter takes what is suggested; what an option says is not asked."""
    answers = ["", "incast", "swift", "4", "4", "2", "", "", "", "", "3", "2 MB"]
    monkeypatch.setattr("sys.stdin", Terminal("\n".join(answers) + "\n"))
    assert run(["init"]) == 0
    asked = capsys.readouterr().err
    assert "fabric.num_hosts (hosts (servers) in all) [16]: " in asked
    scenario = load_scenario(Path("scenario.yaml"))
    assert (scenario.law.name, scenario.traffic.spec.senders) == ("swift", 3)
    assert (scenario.fabric.spec.num_hosts, scenario.fabric.spec.tiers) == (4, 2)
    monkeypatch.setattr("sys.stdin", Terminal(""))
    assert run(["init", "unasked.yaml", "--yes"]) == 0


def test_json_has_what_was_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "my.yaml", "--fabric", "fat_tree", "--traffic", "permutation", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["suggestions"] == ["fabric.radix=8", "traffic.message=1 MB"]
    assert (made["file"], made["nics"], made["transfers"]) == ("my.yaml", 128, 128)


def test_no_file_is_replaced_and_none_is_left_by_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    Path("my.yaml").write_text("mine\n")
    assert run(["init", "my.yaml"]) == 2
    assert "my.yaml: a file that exists" in capsys.readouterr().err
    assert Path("my.yaml").read_text() == "mine\n"
    assert run(["init", "other.yaml", "--set", "fabric.hosts_per_tor_set=5"]) == 2
    assert not Path("other.yaml").exists()
