"""The page on predictions says what is true: its command prints what it shows, and its other system is one."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.cli.train.recipes import read_recipe
from fabrictune.hardware.files import load_profile

pytest.importorskip("torch")

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "predict-a-step.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language."""
    return [block for name, block in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.M) if name == language]


@pytest.mark.slow
def test_its_command_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Word for word."""
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(blocks("sh")[0])
    assert program == "fabrictune"
    assert run(words) == 0
    assert capsys.readouterr().out == blocks("")[0]


def test_its_other_system_is_a_recipe_and_a_profile(tmp_path: Path) -> None:
    """Megatron-LM, and the rows of the file of measured steps: each 32 GPUs a replica."""
    *_, settings = blocks("sh")
    recipe = read_recipe("175b", shlex.split(settings)[1::2])
    assert (recipe.overlap, recipe.data_parallel.gradient_precision) == ("tp", "float32")
    (profile,) = blocks("yaml")
    (tmp_path / "megatron.yaml").write_text(profile)
    assert load_profile(tmp_path / "megatron.yaml").software.attention == "flash1"
    heading, *rows = blocks("")[1].splitlines()
    for row in rows:
        _, *values = row.split(",")
        keys = [f"{key}={value}" for key, value in zip(heading.split(",")[1:], values, strict=True)]
        assert read_recipe("175b", keys).degrees.samples_per_step == 768
