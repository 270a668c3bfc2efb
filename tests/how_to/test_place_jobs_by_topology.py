"""The page on topology for schedulers says what is true: its commands write the lines that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "place-jobs-by-topology.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.M)
(COMMANDS,) = (text.splitlines() for kind, text in BLOCKS if kind == "sh")
(SHOWN,) = (text.splitlines() for kind, text in BLOCKS if not kind)
FORMS = re.findall(r"^\| `([\w-]+)` \| ", PAGE, re.M)


def test_its_commands_write_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in COMMANDS:
        assert run(shlex.split(command)[1:]) == 0
    assert Path("topology.conf").read_text().splitlines()[1:] == SHOWN


def test_its_table_has_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fabrictune.topology.exporters import EXPORTERS

    assert ["--to", *EXPORTERS] == FORMS
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(COMMANDS[0])[1:]) == 0
    for form in EXPORTERS:
        assert run(["topo", "export", "fabric.json", "--to", form, "--out", form]) == 0
