"""The page on hangs says what is true: its command prints every line that it shows."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from fabrictune.cli.main import run

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "how-to" / "diagnose-a-hang.md").read_text()
COMMAND, SCREEN, *_ = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.M)


def test_its_command_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line word for word, in order; an ellipsis stands for others."""
    monkeypatch.chdir(tmp_path)
    Path("job").mkdir()
    for path in (TESTS / "golden" / "hangs").iterdir():
        text = path.read_text().replace("  exitcode  : -9", "  exitcode  : -6")  # ended by the watchdog
        Path("job", path.name).write_text(text)
    shutil.rmtree("runs", ignore_errors=True)
    program, *words = shlex.split(COMMAND)
    assert program == "fabrictune"
    assert run(words) == 1
    printed = iter(capsys.readouterr().out.splitlines())
    for line in SCREEN.splitlines():
        assert line == "..." or line in printed, line
