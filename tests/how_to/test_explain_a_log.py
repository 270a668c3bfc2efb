"""The page on explaining a log says what is true: its commands run as they stand there, and its findings exist."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.finding_rules.nccl import JOBS

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "nccl"
PAGE = (ROOT / "docs" / "how-to" / "explain-a-log.md").read_text()
FILES = {
    "one-nic-2.26.log": "nccl.log",
    "topology.txt": "topo.txt",
    "ras.json": "ras.json",
    "inspector.jsonl": "inspector.jsonl",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the page's files, where its commands run."""
    for name, target in FILES.items():
        shutil.copyfile(GOLDEN / name, tmp_path / target)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_its_commands_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """From the log to a draft, which the comparison takes."""
    commands = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.split("\n")]
    for command in filter(None, map(str.strip, commands)):
        program, *words = shlex.split(command)
        assert program == "fabrictune"
        assert run(words) == 0, capfd.readouterr().err
    assert "# --nic-rate" in (folder / "drafted.yaml").read_text()


def test_a_state_with_errors_ends_with_1(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The command on RAS's answer, which is no block of its own because it finds something."""
    assert "fabrictune coll ras ras.json" in PAGE
    assert run(["coll", "ras", "ras.json"]) == 1
    assert "rank 3" in capfd.readouterr().out


def test_it_lists_every_finding_of_a_job() -> None:
    """Those of a log; no other."""
    table = PAGE[PAGE.index("| Finding |") : PAGE.index("Timers are those")]
    assert set(re.findall(r"`(nccl\.[\w-]+)`", table)) == {rule.id for rule in JOBS}
