"""The page on planning says what is true: its commands run as they stand there, and print what it shows."""

import json
import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord

pytest.importorskip("torch")

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "plan-a-job.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language."""
    return [block for name, block in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.M) if name == language]


def test_its_commands_run_and_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan word for word; the engine takes no less than the plan, and hardly more."""
    monkeypatch.chdir(tmp_path)
    (scenario,) = blocks("yaml")
    Path("planned.yaml").write_text(scenario)
    printed = []
    for line in "".join(blocks("sh")).splitlines():
        program, *words = shlex.split(line)
        assert program == "fabrictune"
        assert run(words) == 0, line
        printed.append(capsys.readouterr().out)
    assert printed[0] == blocks("")[0]
    planned = json.loads(Path("runs/tiny-plan/run.json").read_text())["outcome"]
    simulated = RunRecord.read(Path("runs/planned"))
    makespan_ps = simulated.tables["transfers"]["finish_ps"].max()
    assert planned["step_ps"] <= makespan_ps < 1.1 * planned["step_ps"]
    parts = RunRecord.read(Path("runs/tiny-plan")).tables["step_parts"]
    part_ps = dict(zip(parts["part"].tolist(), parts["duration_ps"].tolist(), strict=True))
    replayed = simulated.tables["replayed_steps"]
    assert replayed["duration_ps"].tolist() == [makespan_ps]
    work_ps = part_ps["products"] + part_ps["memory traffic"] + part_ps["bubble"]
    assert replayed["work_alone_ps"].tolist() == [work_ps]


def test_its_other_commands_name_what_there_is() -> None:
    """Recipes and settings of the blocks that aren't run here, since they take longer."""
    from fabrictune.cli.train.recipes import read_recipe

    for line in blocks("")[1].splitlines():
        _, _, _, name, *options = shlex.split(line)
        recipe = read_recipe(name, options[1::2])
        assert recipe.degrees.layout.world_size == 12_288
