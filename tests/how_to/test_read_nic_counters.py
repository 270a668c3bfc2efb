"""The page on counters of NICs says what is true: its command runs on the snapshot that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "read-nic-counters.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language, without the list's indent."""
    found = re.findall(r"^   ```(\w*)\n(.*?)^   ```$", PAGE, re.DOTALL | re.MULTILINE)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for name, block in found if name == language]


def test_its_command_says_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrap, a pause of 2 % of a minute, and marks without CNPs."""
    monkeypatch.chdir(tmp_path)
    (before,) = blocks("")
    after = (
        before.replace("duration: 1000\n", "duration: 1201000\n").replace("4294967290", "4").replace("9 np", "29 np")
    )
    (tmp_path / "before.txt").write_text(before)
    (tmp_path / "after.txt").write_text(after)
    (command,) = blocks("sh")
    assert run(shlex.split(command)[1:]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^mlx5_0/1  out_of_buffer +packets without a receive buffer +10 +0.1667  wrapped$", out, re.M)
    assert "warning: eth2: time paused by the network: 1.2 s, 2 % of the interval; expected no rise" in out
    assert "warning: mlx5_0/1: packets marked by ECN: 20, CNPs sent: 0; expected a CNP for marked packets" in out
