"""The site has all that it should, and is not built with a dead link."""

import subprocess
import sys
from pathlib import Path

import pytest

import fabrictune as ft
from docs.site.__main__ import SETTINGS, STRICT
from docs.site.commands import command_reference
from docs.site.contents import how_to_groups
from docs.site.python_interface import python_reference


def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    """Of a page and of an anchor, each named."""
    pytest.importorskip("myst_parser")
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.md").write_text("# Start\n\n[a](none.md) [b](#nothing)\n")
    command = [sys.executable, "-m", "sphinx", *STRICT, "-c", str(SETTINGS), "-b", "dummy"]
    done = subprocess.run([*command, pages, tmp_path / "out"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "'none.md'" in done.stderr
    assert "'nothing'" in done.stderr


def test_every_command_and_every_public_name_has_its_place() -> None:
    """Commands with their examples and options, functions with signatures, how-tos each in one group."""
    text = "\n".join(command_reference().values())
    assert "## fabrictune ecmp analyze" in text
    assert "| `--fail-on" in text
    assert [name for name in ft.__all__ if name != "plot" and f"### {name}\n" not in python_reference()] == []
    places = [place for group in how_to_groups().values() for place in group]
    assert len(places) == len(set(places)) > 40
