"""The page on planning for failures says what is true: its commands print every line that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.trainer_probe.survival.failure_files import read_failures

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "plan-for-failures.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.M)
COMMANDS = [text for kind, text in BLOCKS if kind == "sh"]
SCREENS = [text for kind, text in BLOCKS if not kind]
(TABLE,) = (text for kind, text in BLOCKS if kind == "csv")


@pytest.mark.parametrize(("commands", "screen"), list(zip(COMMANDS, SCREENS, strict=True)))
def test_its_commands_print_what_it_shows(
    commands: str,
    screen: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each line word for word, in order; an ellipsis stands for others. Runs are few: no line shown is of them."""
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(commands)
    assert program == "fabrictune"
    assert run([*words, "--runs", "2"]) == 0
    printed = iter(capsys.readouterr().out.splitlines())
    for line in screen.splitlines():
        assert line == "..." or line in printed, line


def test_its_table_can_be_read(tmp_path: Path) -> None:
    """Three causes, one of them planned."""
    (tmp_path / "ours.csv").write_text(TABLE)
    assert [cause.is_planned for cause in read_failures(tmp_path / "ours.csv").causes] == [False, False, True]
