"""The page on adding an importer: its files are saved and read as it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.importers import find_importer, import_fabric

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "add-an-importer.md").read_text()
(MODULE,) = re.findall(r"```python\n(.*?) *```", PAGE, re.DOTALL)
LEAF, SPINE, NOTES, FINDING, REFUSED = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
TABLES = ("leaf1.eos", "spine1.eos")
FORMAT = ("--format", "./my_eos.py", "--trust-code")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A reader's folder, with all three files saved."""
    (tmp_path / "my_eos.py").write_text(MODULE)
    (tmp_path / "leaf1.eos").write_text(LEAF)
    (tmp_path / "spine1.eos").write_text(SPINE)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line there, with this project at hand."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "fabrictune", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_tables_become_a_file_that_commands_read(folder: Path) -> None:
    """Both commands as printed, and what the page quotes of them."""
    read = run(folder, "topo", "import", *TABLES, *FORMAT, "--out", "my_eos.json")
    assert (read.returncode, read.stderr) == (0, "")
    assert NOTES in read.stdout
    shown = run(folder, "topo", "show", "my_eos.json", "--links")
    assert shown.stdout.startswith("eos: 2 hosts with 2 NICs, 2 switches, 4 links\n")
    assert "note: read by the importer my_eos.py, SHA-256 " in shown.stdout
    checked = run(folder, "topo", "validate", *TABLES, *FORMAT, "--fail-on", "never")
    assert FINDING.strip() in checked.stdout


def test_the_file_runs_only_with_leave(folder: Path) -> None:
    """Without it nothing of the file is executed."""
    refused = run(folder, "topo", "import", *TABLES, "--format", "./my_eos.py")
    assert (refused.returncode, "--trust-code" in refused.stderr) == (2, True)


def test_a_line_cut_short_is_told_with_its_number(folder: Path) -> None:
    """As the page does: the last word of spine1's only row is deleted."""
    (folder / "spine1.eos").write_text(SPINE.removesuffix("120\n"))
    failed = run(folder, "topo", "import", *TABLES, *FORMAT)
    assert (failed.returncode, failed.stderr) == (2, REFUSED)


def test_a_scenario_reads_a_folder_of_tables(folder: Path) -> None:
    """As the page says: a folder and the importer's file."""
    (folder / "tables").mkdir()
    for name in TABLES:
        (folder / name).rename(folder / "tables" / name)
    keys = "fabric: {file: tables, format: ./my_eos.py}"
    assert f"`{keys}`" in PAGE
    (folder / "mine.yaml").write_text(f"name: mine\n{keys}\ntraffic: {{workload: permutation, message: 1 MB}}\n")
    checked = run(folder, "scenario", "check", "mine.yaml", "--trust-code")
    assert (checked.returncode, checked.stdout[:31]) == (0, "mine.yaml: good; 2 nics, 2 queue pairs"[:31])


def test_noise_is_one_message(folder: Path) -> None:
    """What the page promises of the parts it is built on."""
    (folder / "leaf1.eos").write_bytes(b"\xff\xfe")
    importer = find_importer(str(folder / "my_eos.py"), trust_code=True)
    with pytest.raises(InputError, match=r"leaf1\.eos: not text: byte 0 is no UTF-8"):
        import_fabric([folder / "leaf1.eos"], importer)
