"""The page on training says what is true: its commands run as they stand there."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.trainer_probe.recipes.schema import Recipe

pytest.importorskip("torch")

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "train-a-workload.md").read_text()
CORPUS = "the quick brown fox jumps over the lazy dog\n" * 500


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language, without the list's indent."""
    found = re.findall(r"^   ```(\w*)\n(.*?)^   ```$", PAGE, re.DOTALL | re.MULTILINE)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for name, block in found if name == language]


def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Trained three times, climbed, shown, drawn and replayed: a record of each, and a page of them."""
    (recipe,) = blocks("yaml")
    (tmp_path / "mine.yaml").write_text(recipe)
    (tmp_path / "corpus.txt").write_text(CORPUS)
    monkeypatch.chdir(tmp_path)
    for line in "".join(blocks("sh")).splitlines():
        program, *words = shlex.split(line)
        assert program == "fabrictune"
        assert run(words) == 0, capfd.readouterr().err
    kinds = {path.parent.name: RunRecord.read(path.parent).kind for path in (tmp_path / "runs").glob("*/run.json")}
    trained = dict.fromkeys(("tiny", "mine", "without"), "train run")
    assert kinds == {**trained, "ablation": "train ablate", "mine-on-fabric": "sim run"}
    assert RunRecord.read(tmp_path / "runs" / "mine").run["data_state"]["place"] == 24, "as the page sets it"
    assert 'id="training"' in (tmp_path / "runs" / "page.html").read_text()


def test_its_mixture_trains_and_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """On eight processes; the run prints what is dropped, the plan what is exchanged."""
    (recipe,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "mixture.yaml").write_text(recipe)
    monkeypatch.chdir(tmp_path)
    printed = []
    for line in commands.splitlines():
        assert run(shlex.split(line)[1:]) == 0, capfd.readouterr().err
        printed.append(capfd.readouterr().out)
    assert "balance   dropped" in printed[0]
    assert "ep    all_to_all" in printed[1]
    assert set(RunRecord.read(tmp_path / "runs" / "mixture").tables["training"]) >= {"balance_loss", "dropped_fraction"}


def test_its_recipe_names_keys_that_there_are() -> None:
    """Top-level keys of the file are the schema's."""
    (recipe,) = blocks("yaml")
    assert set(re.findall(r"^(\w+):", recipe, re.MULTILINE)) <= {field.name for field in fields(Recipe)}
