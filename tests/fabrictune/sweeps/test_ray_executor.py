"""A cluster of Ray's starts with a token, in a folder that no other user can enter; nothing of it stays."""

import os
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fabrictune.foundation.errors import UnavailableError
from fabrictune.sweeps.ray_executor import QUIETLY, open_cluster

REAL_CLUSTER = """
import tempfile
from pathlib import Path
from fabrictune.sweeps.ray_executor import open_cluster
before = set(Path(tempfile.gettempdir()).glob("fabrictune-ray-*"))
with open_cluster(1):
    (folder,) = set(Path(tempfile.gettempdir()).glob("fabrictune-ray-*")) - before
    print(folder, oct(folder.stat().st_mode & 0o777), len(list(folder.glob("ray/session_2*"))))
"""


class RecordedRay(SimpleNamespace):
    """Stands for the module `ray`, and keeps what it was started with."""

    def __init__(self, version: str = "2.60.0") -> None:
        super().__init__(__version__=version, exceptions=None)
        self.environment: dict[str, str] = {}
        self.options: dict[str, Any] = {}
        self.folder = Path()

    def init(self, **options: Any) -> None:
        """Take part of what a start of Ray reads."""
        self.environment, self.options, self.folder = dict(os.environ), options, Path.cwd()

    def remote(self, **_: Any) -> Any:
        """Make a remote function of any function."""
        return lambda function: function

    def shutdown(self) -> None:
        """End what was never started."""


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> RecordedRay:
    """Return what is imported as `ray`, in an environment without settings of Ray's."""
    spec = find_spec("ray")
    if spec is None:
        pytest.skip("ray is not installed")
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", *QUIETLY):
        monkeypatch.setenv(name, "")  # so that it is as before after the test, set or not
        monkeypatch.delenv(name)
    recorded = RecordedRay()
    recorded.__spec__ = spec
    monkeypatch.setitem(sys.modules, "ray", recorded)
    return recorded


@pytest.mark.parametrize("before", [{}, {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": ""}])
def test_a_cluster_of_our_own_starts_with_a_token(
    ray: RecordedRay, before: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ports are open on all addresses of the machine; 32 random bytes keep others out, whatever was set."""
    for name, value in before.items():
        monkeypatch.setenv(name, value)
    with open_cluster(1):
        pass
    assert ray.environment["RAY_AUTH_MODE"] == "token"
    assert len(bytes.fromhex(ray.environment["RAY_AUTH_TOKEN"])) == 32
    assert ray.options["_node_ip_address"] == "127.0.0.2"


def test_a_token_that_the_user_gave_stays(ray: RecordedRay, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that another program of the same user can join."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "ab" * 32)
    with open_cluster(1):
        pass
    assert ray.environment["RAY_AUTH_TOKEN"] == "ab" * 32


def test_a_ray_that_ignores_tokens_is_refused(ray: RecordedRay) -> None:
    """The first with a token is 2.52."""
    ray.__version__ = "2.51.2"
    with pytest.raises(UnavailableError) as caught, open_cluster(1):
        pass
    assert str(caught.value) == (
        "--on ray: Ray 2.51.2, which starts without a token\n"
        '  allowed: 2.52 or later\n  next: pip install "fabrictune[sweep]"'
    )
    assert ray.options == {}


def test_its_files_are_in_a_folder_of_this_user_alone_and_are_removed(ray: RecordedRay) -> None:
    """Ray's own folders have mode 0777 and stay for ever. Its workers search the current directory first: this one."""
    with open_cluster(1):
        folder = Path(ray.options["_temp_dir"]).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert ray.folder == folder
        assert ray.environment["PYTHONSAFEPATH"] == "1"
    assert not folder.exists()
    assert Path.cwd() != folder


@pytest.mark.slow
def test_a_real_cluster_leaves_no_folder() -> None:
    """Whatever its last processes still write; and its sessions were in the folder, not beside it."""
    if find_spec("ray") is None:
        pytest.skip("ray is not installed")
    ran = subprocess.run([sys.executable, "-c", REAL_CLUSTER], capture_output=True, text=True, check=True)
    folder, mode, num_sessions = ran.stdout.split()
    assert (mode, num_sessions) == ("0o700", "1")
    assert not Path(folder).exists()
