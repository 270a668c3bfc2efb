"""The page on findings in CI says what is true: its commands write both files, and the command it shows exists."""

import json
import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.xml_documents import load_xml

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "show-findings-in-ci.md").read_text()
(COMMANDS,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.M)


def test_its_commands_write_both_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of a good fabric are in both, as passed."""
    monkeypatch.chdir(tmp_path)
    for command in COMMANDS.splitlines():
        assert run(shlex.split(command)[1:]) == 0
    (scanned,) = json.loads(Path("findings.sarif").read_text())["runs"]
    (suite,) = load_xml(Path("findings.xml")).root.children
    assert len(scanned["results"]) == len(suite.children) > 5
    assert {result["kind"] for result in scanned["results"]} <= {"pass", "open"}
    assert suite.attributes["failures"] == "0"


@pytest.mark.parametrize("command", re.findall(r"fabrictune (fleet audit) ", PAGE))
def test_the_commands_of_its_jobs_take_the_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They are not run here, for want of a cluster."""
    assert run([*command.split(), "--help"]) == 0
    assert "--findings-file" in capsys.readouterr().out


def test_another_ending_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any work."""
    monkeypatch.chdir(tmp_path)
    assert run(["topo", "validate", "none.json", "--findings-file", "findings.json"]) == 2
    assert "--findings-file: the ending '.json'\n  allowed: .sarif for SARIF, .xml for JUnit" in capsys.readouterr().err
