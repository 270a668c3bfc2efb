"""Temporary folders that killed processes leave are removed by the next process, and no others."""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from fabrictune.foundation.temporary_folders import temporary_folder

HOLDER = """
import sys
from fabrictune.foundation.temporary_folders import temporary_folder
with temporary_folder("test-") as folder:
    (folder / "file").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder in which temporary folders are made, by child processes too."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_folder_is_private_and_goes_with_its_block(temporary: Path) -> None:
    """Also where the block fails."""
    with suppress(ZeroDivisionError), temporary_folder("test-") as folder:
        assert folder.parent == temporary
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").write_text("x")
        raise ZeroDivisionError
    assert list(temporary.iterdir()) == []


def test_a_forked_copy_removes_nothing(temporary: Path) -> None:
    """It leaves the block by an exception, as an exit does, while the process that made the folder goes on."""
    parent = os.getpid()
    try:
        with temporary_folder("test-") as folder:
            copy = os.fork()
            if copy == 0:
                raise ZeroDivisionError
            os.waitpid(copy, 0)
            assert list(temporary.iterdir()) == [folder]
    except ZeroDivisionError:
        assert os.getpid() != parent
        os._exit(0)
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_goes_and_nothing_else(temporary: Path) -> None:
    """A folder of a process that lives, of another prefix, of another form, a file and a link stay."""
    others = {temporary / name for name in ("other-0123abcd", "test-0123abcde", "test-notes")}
    for folder in others:
        folder.mkdir()
    link, file = temporary / "test-00000001", temporary / "test-00000002"
    link.symlink_to(temporary / "test-notes")
    file.write_text("x")
    with (
        subprocess.Popen([sys.executable, "-c", HOLDER], stdin=-1, stdout=-1, text=True) as killed,
        subprocess.Popen([sys.executable, "-c", HOLDER], stdin=-1, stdout=-1, text=True) as alive,
    ):
        assert killed.stdout is not None
        assert alive.stdout is not None
        abandoned, held = (Path(process.stdout.readline().strip()) for process in (killed, alive) if process.stdout)
        killed.kill()
        killed.wait()
        assert (abandoned / "file").exists()
        with temporary_folder("test-") as own:
            assert set(temporary.iterdir()) == others | {link, file, held, own}
        assert (held / "file").exists()
        alive.communicate("")
    assert set(temporary.iterdir()) == others | {link, file}
