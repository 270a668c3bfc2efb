"""The page on testbeds says what is true: its commands run, and leave nothing."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.network_namespaces import list_namespaces
from fabrictune.testbed.testbed import list_testbeds
from tests.real.namespaces import require_namespaces

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "use-a-testbed.md").read_text()


@pytest.mark.real
def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, in one folder; its testbed has a name of its own here."""
    require_namespaces()
    pytest.importorskip("torch")
    if shutil.which("sshd", path="/usr/sbin") is None:
        pytest.skip("openssh-server is not installed")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for command in (line for block in blocks for line in block.strip().splitlines()):
        words = shlex.split(command)[1:]
        own = ["--name", "page"] if words[:2] == ["validate", "testbed"] else []
        assert run([*words[:3], *own, *words[3:]]) == 0, command
    assert "page" not in list_testbeds()
    assert not [name for name in list_namespaces() if name.startswith("ftb-page-")]
