"""The page on link flaps says what is true: its commands run as they stand there, on the log that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "link-flaps.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language, without the list's indent."""
    found = re.findall(r"^   ```(\w*)\n(.*?)^   ```$", PAGE, re.DOTALL | re.MULTILINE)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for name, block in found if name == language]


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what its commands print, run in a folder with the log and the project's scenarios."""
    (log,) = (block for block in blocks("") if "NCCL WARN" in block)
    (tmp_path / "nccl.log").write_text(log)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    for line in "".join(blocks("sh")).splitlines():
        program, *words = shlex.split(line)
        assert program == "fabrictune"
        assert run(words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_its_commands_say_what_it_says(shown: str) -> None:
    """Both ends of the failure, the impossible setting, and ten seconds survived by T 18."""
    assert "error: node1: mlx5_0 port 1, GID ::ffff:10.0.0.1 (index 3) to node2, GID ::ffff:10.0.0.2" in shown
    assert "node1: NCCL_IB_RETRY_CNT: 15; expected 0 to 7: the field has three bits" in shown
    assert "for a flap of 10 s set NCCL_IB_TIMEOUT=18 NCCL_IB_RETRY_CNT=6 on every host" in shown
    assert "\nNCCL_IB_TIMEOUT=18 NCCL_IB_RETRY_CNT=6" in shown
    assert "record: runs/link-flap-timers" in shown


def test_no_timeout_below_17_makes_a_difference(shown: str) -> None:
    """The rows of the table for T 14 and 16 are the same, but for the star of what was not tried."""
    lines = [line.replace("*", "") for line in shown.splitlines() if re.match(r" +1[4-7] ", line)]
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["14"] == rows["16"] != rows["17"]
