"""The page on adding a topology: its files are saved, run and asked as it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "add-a-topology.md").read_text()
RING, BY_HAND, PRESET = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(SCENARIO,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A reader's folder, with both files saved."""
    (tmp_path / "my_ring.py").write_text(RING)
    (tmp_path / "my_ring.yaml").write_text(SCENARIO)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python there with this project at hand."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_ring_is_built_and_analyzed_as_a_file(folder: Path) -> None:
    """Both commands as printed, and the line that the page quotes."""
    build = ["-m", "fabrictune", "topo", "build", "./my_ring.py", "hosts_per_switch=4"]
    refused = run(folder, *build)
    assert (refused.returncode, "--trust-code" in refused.stderr) == (2, True)
    built = run(folder, *build, "--trust-code", "--out", "ring.json")
    assert (built.returncode, built.stderr) == (0, "")
    assert f"It prints `{built.stdout.splitlines()[0]}`" in PAGE
    assert (folder / "ring.json").is_file()
    analyzed = run(folder, "-m", "fabrictune", "ecmp", "analyze", "my_ring.yaml", "--trust-code")
    assert analyzed.returncode == 1  # there are findings
    assert re.search(r"switch\d:left -> switch\d:right: \d flows offer", analyzed.stdout)


def test_a_cut_cable_sends_its_flows_the_other_way(folder: Path) -> None:
    """Six links to the right before; five to the right and five to the left after."""
    done = run(folder, "-c", BY_HAND)
    assert done.stderr == ""
    before, after = done.stdout.splitlines()
    assert (before.count("right ->"), before.count("left ->")) == (6, 0)
    assert (after.count("right ->"), after.count("left ->")) == (5, 5)


def test_a_setting_out_of_range_is_refused(folder: Path) -> None:
    """A ring of two would be two cables."""
    done = run(folder, "-c", "from my_ring import RingSpec; RingSpec(num_switches=2)")
    assert "InputError: num_switches: 2\n  allowed: 3 or more" in done.stderr


def test_the_preset_prints_what_the_page_says(folder: Path) -> None:
    """The fabric's name begins with the preset's kind."""
    done = run(folder, "-c", PRESET)
    assert done.stderr == ""
    assert f"It prints `{done.stdout.strip()}`" in PAGE
