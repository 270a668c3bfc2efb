"""The page on measuring collectives says what is true: its commands run as they stand there."""

import json
import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.records import RunRecord
from fabrictune.validate.attribution import CAUSES

pytest.importorskip("torch")

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "measure-collectives.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language, without the list's indent."""
    found = re.findall(r"^   ```(\w*)\n(.*?)^   ```$", PAGE, re.DOTALL | re.MULTILINE)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for name, block in found if name == language]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the page's files, where its commands run."""
    (scenario,) = blocks("yaml")
    (text,) = (block for block in blocks("") if block.startswith("# Collective test"))
    (tmp_path / "monday.yaml").write_text(scenario)
    (tmp_path / "monday.txt").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_its_commands_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Measured, imported, modelled and compared: a record of each, and a page of them."""
    for block in blocks("sh"):
        program, *words = shlex.split(block)
        assert program == "fabrictune"
        assert run(words) == 0, capfd.readouterr().err
    kinds = {path.name: RunRecord.read(path).kind for path in (folder / "runs").iterdir() if path.is_dir()}
    assert kinds == {"bench": "coll bench", "monday": "coll import", "model": "coll model", "compare": "coll compare"}
    assert 'id="attribution"' in (folder / "runs" / "page.html").read_text()


def test_its_measurement_is_explained(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Made of the model's time and 40 us a call: the comparison finds them, and nothing that is not the network."""
    assert run(["coll", "compare", "monday.txt", "--scenario", "monday.yaml", "--json"]) == 0
    rows = json.loads(capfd.readouterr().out)["attribution"]
    assert [row["call_ps"] / 1e6 for row in rows] == pytest.approx([40] * 4, abs=4)
    assert all(row["not_the_network_ps"] < 0.06 * row["measured_ps"] for row in rows)


def test_it_lists_every_cause() -> None:
    """In the order of attribution."""
    assert re.findall(r"^   \| `(\w+)` \|", PAGE, re.MULTILINE) == list(CAUSES)
