"""The page on measuring RDMA adapters says what is true: its commands run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.records import RunRecord
from fabrictune.rdma_bench.soft_roce.image import get_image
from fabrictune.rdma_bench.soft_roce.programs import require_programs
from fabrictune.rdma_bench.timers.profile_files import read_profile

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "measure-rdma.md").read_text()


@pytest.mark.real
@pytest.mark.slow
def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Timers measured in a virtual machine of their own, and a prediction by the profile that came of it."""
    try:
        require_programs(["qemu-system-x86_64"])
        get_image()
    except UnavailableError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"^   ```sh\n(.*?)^   ```$", PAGE, re.DOTALL | re.MULTILINE):
        program, *words = shlex.split(block)
        assert program == "fabrictune"
        assert run(words) == 0, capfd.readouterr().err
    assert read_profile(tmp_path / "soft-roce.json").device == "rxe_a port 1"
    assert RunRecord.read(tmp_path / "runs" / "timers").kind == "rdma timers measure"


def test_its_commands_are_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that need adapters and other hosts: their options exist, whatever their values."""
    commands = re.findall(r"^ *fabrictune ((?:rdma|report) (?:timers )?\w+)((?:[^\n]*\\\n)*[^\n]*)", PAGE, re.MULTILINE)
    assert len(commands) >= 8
    for name, rest in commands:
        assert run([*name.split(), "--help"]) == 0
        described = capsys.readouterr().out
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest):
            if not re.search(r"\"[^\"]*" + re.escape(option), rest):  # a word of a quoted command is not ours
                assert option in described, f"{name} {option}"
