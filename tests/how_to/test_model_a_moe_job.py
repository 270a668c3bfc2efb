"""The page on experts says what is true: its scenarios run as they stand there, and its plans name what there is."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.cli.train.recipes import read_recipe
from fabrictune.foundation.records import RunRecord, notes_of
from fabrictune.scenario.files import parse_scenario

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "model-a-moe-job.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.M)
SCENARIOS = [text for language, text in BLOCKS if language == "yaml"]
COMMANDS = [line for language, text in BLOCKS if not language for line in text.splitlines()]


def test_its_first_commands_run_and_notes_say_what_it_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run, an analysis without engine, and the keys; tokens reach four hosts, and rails never change."""
    monkeypatch.chdir(tmp_path)
    Path("moe-64.yaml").write_text(SCENARIOS[0])
    for line in COMMANDS[:3]:
        options = ["--fail-on", "never"] if "moe-64" in line else []
        assert run([*shlex.split(line)[1:], *options]) == 0, line
    notes = notes_of(RunRecord.read(Path("runs/moe-64")))
    assert any("a token reaches 3.98 hosts and 7.4" in note for note in notes)
    assert not any(note.startswith("expansion.pxn") for note in notes)


def test_its_other_scenarios_are_right() -> None:
    """The sweep's base and the plan's scenario are read, and the plans' recipes have the ranks that the page says."""
    for text in SCENARIOS[1:]:
        parse_scenario(text, Path("page.yaml"))
    ranks = [read_recipe(shlex.split(line)[3], ()).degrees.layout.world_size for line in COMMANDS[-2:]]
    assert ranks == [14_336, 2_048]
