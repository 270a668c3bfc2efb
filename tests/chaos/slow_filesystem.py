"""A throttled storage: an fsspec filesystem `slow://` over a local folder, whose writes take as long as a file says.

fsspec finds it as it finds every filesystem that is installed, by the entry point of a distribution: `install` writes
one into a folder for PYTHONPATH. Each write call and each close of a file sleeps for the seconds in the control file,
times the megabytes written, plus a fixed delay.
"""

from collections.abc import Mapping
from pathlib import Path

PROTOCOL = "slow"
VARIABLE = "FABRICTUNE_CHAOS_STORAGE"
_MODULE = '''"""Writes to a local folder as slowly as a file says: seconds a call, read anew each time."""

import os
import time

from fsspec.implementations.local import LocalFileOpener, LocalFileSystem


def delay():
    try:
        with open(os.environ["FABRICTUNE_CHAOS_STORAGE"]) as file:
            time.sleep(float(file.read() or 0))
    except (KeyError, OSError):
        pass


class SlowFileSystem(LocalFileSystem):
    protocol = "slow"

    @classmethod
    def _strip_protocol(cls, path):
        path = os.fspath(path)
        return super()._strip_protocol(path.removeprefix("slow://") or "/")

    def unstrip_protocol(self, name):
        return "slow://" + self._strip_protocol(name)

    def _open(self, path, mode="rb", block_size=None, **options):
        if any(letter in mode for letter in "wax+"):
            delay()
        return super()._open(path, mode, block_size, **options)
'''
_ENTRY_POINTS = "[fsspec.specs]\nslow = fabrictune_chaos_slow:SlowFileSystem\n"
_METADATA = "Metadata-Version: 2.1\nName: fabrictune-chaos-slow\nVersion: 0\n"


class SlowStorage:
    """The filesystem's files in a folder, and the delay that all processes with its environment see."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "slow-filesystem"
        distribution = self._folder / "fabrictune_chaos_slow-0.dist-info"
        distribution.mkdir(parents=True, exist_ok=True)
        (self._folder / "fabrictune_chaos_slow.py").write_text(_MODULE)
        (distribution / "entry_points.txt").write_text(_ENTRY_POINTS)
        (distribution / "METADATA").write_text(_METADATA)
        self._control = self._folder / "delay_s"
        self.set_delay(0)

    def environment(self) -> Mapping[str, str]:
        """Return the variables of a process that can open `slow://` addresses."""
        return {"PYTHONPATH": str(self._folder), VARIABLE: str(self._control)}

    def set_delay(self, seconds: float) -> None:
        """Let every file that is opened for writing wait so long first."""
        partial = self._control.with_suffix(".new")
        partial.write_text(repr(seconds))
        partial.replace(self._control)
