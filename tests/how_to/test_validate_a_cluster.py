"""The page on validating a cluster says what is true: its dry run names each node's program and asks nobody."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "validate-a-cluster.md").read_text()


def block(language: str) -> str:
    """Return the page's first block of a language, without the list's indent."""
    found = re.search(rf"^   ```{language}\n(.*?)^   ```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found, language
    return re.sub(r"^   ", "", found[1], flags=re.MULTILINE)


def test_its_plan_and_dry_run_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of cables is a fabric, and the dry run prints every stage and what would run on each host."""
    monkeypatch.chdir(tmp_path)
    Path("known_hosts").touch()
    Path("planned.csv").write_text(block("csv"))
    assert run(shlex.split(block("sh"))[1:]) == 0
    out = capsys.readouterr().out
    assert "  gpu2: python3 -P -m fabrictune.validate.cluster.nodes.node_process " in out
    assert "BatchMode=yes gpu1 sh -s < script" in out
    assert "matrix       flows of all rails: alone, concurrent pairs, bisections" in out
    assert not Path("runs").exists()
