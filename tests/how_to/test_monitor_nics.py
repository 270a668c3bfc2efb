"""The page on monitoring NICs gives a command that runs."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "monitor-nics.md").read_text()
(COMMAND,) = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.M)


def test_its_command_monitors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the loopback device, which every machine has, and for a shorter time."""
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(COMMAND)
    assert program == "fabrictune"
    words[words.index("eth0")], words[words.index("2s")] = "lo", "100ms"
    assert run([*words, "--fail-on", "never"]) == 0
    assert re.search(r"^\d+ samples? of \d+ counters in ", capsys.readouterr().out, re.M)
