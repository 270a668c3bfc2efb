"""The page on fitting a hardware profile says what is true: its commands print the table that it shows."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.hardware.files import load_profile
from fabrictune.validate.fit.verdicts import WEAKLY_WITHIN, WELL_WITHIN

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "fit-a-hardware-profile.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language, without the list's indent."""
    found = re.findall(r"^   ```(\w*)\n(.*?)^   ```$", PAGE, re.DOTALL | re.MULTILINE)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for name, block in found if name == language]


def test_its_commands_print_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, measured, table = blocks("")
    (tmp_path / "all_reduce.txt").write_text(measured)
    monkeypatch.chdir(tmp_path)
    for block in blocks("sh"):
        program, *words = shlex.split(block)
        assert program == "fabrictune"
        assert run(words) == 0
    assert table in capsys.readouterr().out
    assert load_profile(tmp_path / "my-cluster.yaml").base == "h100"


def test_its_limits_are_those_of_the_verdicts() -> None:
    assert f"within {WELL_WITHIN:.0%} of the value".replace("%", " %") in PAGE
    assert f"| weak | within {WEAKLY_WITHIN:.0%}".replace("%", " %") in PAGE
