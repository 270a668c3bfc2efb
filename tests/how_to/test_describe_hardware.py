"""The page on hardware profiles says what is true: its commands run, its files are read."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.hardware.files import load_profile
from fabrictune.hardware.measured_products import read_measured_products

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "describe-hardware.md").read_text()


def block(first_line: str) -> str:
    """Return the indented block that begins with a line."""
    found = re.search(rf"^    {re.escape(first_line)}\n(?:^    .*\n)+", PAGE, re.MULTILINE)
    assert found, first_line
    return re.sub(r"^    ", "", found[0], flags=re.MULTILINE)


@pytest.mark.parametrize("command", re.findall(r"^    fabrictune (hardware .*)$", PAGE, re.MULTILINE))
def test_a_command_runs(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with 0."""
    assert run(shlex.split(command)) == 0
    assert capsys.readouterr().out


def test_its_profile_is_one(tmp_path: Path) -> None:
    """With a source for what it sets, and its base's for the rest."""
    path = tmp_path / "our-cluster.yaml"
    path.write_text(block("name: our-cluster"))
    profile = load_profile(path)
    assert (profile.network.nic_rate_bps, profile.network.latency_ps) == (200e9, 7_000_000)


def test_its_shapes_are_read(tmp_path: Path) -> None:
    """Three of them, one a layout."""
    path = tmp_path / "shapes.csv"
    path.write_text(block("m,n,k,layout,tflops"))
    assert [one.product.layout for one in read_measured_products(path)] == ["TN", "NN", "NT"]
