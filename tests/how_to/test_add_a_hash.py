"""The page on adding a hash function: its file prints what the page says, and a scenario uses it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "add-a-hash.md").read_text()
(MODULE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(SCENARIO,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A reader's folder, with both files saved."""
    (tmp_path / "my_hash.py").write_text(MODULE)
    (tmp_path / "my_fabric.yaml").write_text(SCENARIO)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python there with this project at hand."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_file_prints_what_the_page_says(folder: Path) -> None:
    """Its check value holds, and the counts are those quoted."""
    done = run(folder, "my_hash.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"`{done.stdout.strip()}`" in PAGE


def test_a_scenario_uses_the_file_with_leave_and_not_without(folder: Path) -> None:
    """The command as printed; the record names the file."""
    command = ["-m", "fabrictune", "ecmp", "analyze", "my_fabric.yaml"]
    refused = run(folder, *command)
    assert (refused.returncode, "--trust-code" in refused.stderr) == (2, True)
    done = run(folder, *command, "--trust-code", "--fail-on", "never")
    assert (done.returncode, done.stderr) == (0, "")
    (extension,) = json.loads((folder / "runs" / "my-fabric-ecmp" / "run.json").read_text())["extensions"]
    assert (extension["kind"], extension["file"]) == ("hash function", "my_hash.py")
