"""The page on adding an importer: its files are saved, read and registered as it says."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.importers import IMPORTERS, Importer, import_fabric

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "add-an-importer.md").read_text()
MODULE, REGISTRATION = re.findall(r"```python\n(.*?) *```", PAGE, re.DOTALL)
LEAF, SPINE, PRINTED, REFUSED = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A reader's folder, with all three files saved."""
    (tmp_path / "my_eos.py").write_text(MODULE)
    (tmp_path / "leaf1.eos").write_text(LEAF)
    (tmp_path / "spine1.eos").write_text(SPINE)
    return tmp_path


@pytest.fixture
def registered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The tables, once the page's line stands in IMPORTERS."""
    place = importlib.util.spec_from_file_location("my_eos", folder / "my_eos.py")
    assert place
    assert place.loader
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    for name, importer in eval("{" + REGISTRATION.strip() + "}", {"Importer": Importer, **vars(module)}).items():
        monkeypatch.setitem(IMPORTERS, name, importer)
    return [folder / "leaf1.eos", folder / "spine1.eos"]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python there with this project at hand."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_tables_become_a_file_that_commands_read(folder: Path) -> None:
    """Both commands as printed, and what the page quotes of them."""
    made = run(folder, "my_eos.py", "leaf1.eos", "spine1.eos")
    assert (made.returncode, made.stderr, made.stdout) == (0, "", PRINTED)
    shown = run(folder, "-m", "fabrictune", "topo", "show", "my_eos.json", "--links")
    assert shown.stdout.startswith("eos: 2 hosts with 2 NICs, 2 switches, 4 links\n")


def test_a_line_cut_short_is_told_with_its_number(folder: Path) -> None:
    """As the page does: the last word of spine1's only row is deleted."""
    (folder / "spine1.eos").write_text(SPINE.removesuffix("120\n"))
    failed = run(folder, "my_eos.py", "leaf1.eos", "spine1.eos")
    assert (failed.returncode, failed.stderr) == (1, REFUSED)


def test_one_line_registers_it(registered: list[Path]) -> None:
    """The files are recognised, alone and as a folder's, and tiers follow from the hosts."""
    fabric = import_fabric(registered)
    assert dict(zip(fabric.node_name_N, fabric.node_tier_N.tolist(), strict=True)) == {
        "leaf1": 1,
        "spine1": 2,
        "server1": 0,
        "server2": 0,
    }
    registered[0].with_name("my_eos.py").unlink()
    assert import_fabric([registered[0].parent]).num_ports == 8
    assert [finding.id for finding in import_fabric(registered).findings] == ["cabling.one-sided"]


def test_noise_is_one_message(registered: list[Path]) -> None:
    """What the page promises of the parts it is built on."""
    registered[0].write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"leaf1\.eos: not text: byte 0 is no UTF-8"):
        import_fabric(registered)
