"""The page on networks that are enough says what is true: its commands print every line that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run

pytest.importorskip("torch")

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "find-what-network-is-enough.md").read_text()
COMMANDS_1, SCREEN_1, COMMANDS_2, SCENARIO, SCREEN_2 = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.DOTALL | re.M)


@pytest.mark.slow
@pytest.mark.parametrize(("commands", "screen"), [(COMMANDS_1, SCREEN_1), (COMMANDS_2, SCREEN_2)])
def test_its_commands_print_what_it_shows(
    commands: str,
    screen: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each line word for word, in order; an ellipsis stands for others."""
    monkeypatch.chdir(tmp_path)
    Path("planned.yaml").write_text(SCENARIO)
    for line in commands.splitlines():
        program, *words = shlex.split(line)
        assert program == "fabrictune"
        assert run(words) == 0, line
    printed = iter(capsys.readouterr().out.splitlines())
    for line in screen.splitlines():
        assert line == "..." or line in printed, line
