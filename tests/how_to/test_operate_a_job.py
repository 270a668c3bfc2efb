"""The page on operated jobs says what is true: its commands run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.cli.train.change import change
from fabrictune.cli.train.executor import executor
from fabrictune.cli.train.operate import operate

pytest.importorskip("torch")

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "operate-a-job.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language, without the list's indent."""
    found = re.findall(r"^   ```(\w*)\n(.*?)^   ```$", PAGE, re.DOTALL | re.MULTILINE)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for name, block in found if name == language]


@pytest.mark.slow
def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Trained to the end, shown, and counted; what stands in the folder is what the page names."""
    monkeypatch.chdir(tmp_path)
    for line in "".join(blocks("sh")).splitlines():
        program, *words = shlex.split(line)
        assert program == "fabrictune"
        assert run(words) == 0, capfd.readouterr().err
    assert {path.name for path in (tmp_path / "job").iterdir()} >= {"key", "nodes", "driver.json"}
    assert "finished after" in capfd.readouterr().out


def test_its_options_exist() -> None:
    """Those that the text names beside its commands."""
    known = {
        option for command in (operate, change, executor) for parameter in command.params for option in parameter.opts
    }
    cluster = PAGE.index("## Nodes of a cluster")
    assert set(re.findall(r"--[a-z-]+", PAGE[:cluster])) <= known | {"--follow", "--json", "--fail-on"}
    of_others = {"--partition", "--gres", "--nnodes", "--nproc-per-node", "--max-restarts", "--no-python"}
    of_others |= {"--rdzv-backend", "--rdzv-endpoint"}
    assert set(re.findall(r"--[a-z-]+", PAGE[cluster:])) <= known | of_others
