"""The page on NCCL's choice says what is true: its commands run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.hardware.files import load_profile

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "explain-nccls-choice.md").read_text()
COMMANDS = re.findall(r"^    fabrictune (.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    """It ends with 0 and prints within the terminal that the page promises."""
    assert run(shlex.split(command)) == 0, capfd.readouterr().err
    printed = capfd.readouterr().out.splitlines()
    if "--json" not in command:
        assert len(printed) <= 50
        assert max(map(len, printed)) <= 160


def test_its_profile_is_one(tmp_path: Path) -> None:
    """The block of YAML has sources for what it sets."""
    block = re.search(r"^    name: our-efa\n(?:^    .*\n)+", PAGE, re.MULTILINE)
    assert block
    path = tmp_path / "our-efa.yaml"
    path.write_text(re.sub(r"^    ", "", block[0], flags=re.MULTILINE))
    profile = load_profile(path)
    assert profile.network.latency_ps == 23_000_000
    assert profile.nccl.transport == "EFA"
