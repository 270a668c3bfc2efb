"""A time of day that jumps: a preloaded library shifts what a run's processes read, by a number in a file."""

import mmap
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("clock_shim.c")
VARIABLE = "FABRICTUNE_CHAOS_CLOCK"
_SHIFT = struct.Struct("<q")


def lack() -> str:
    """Return why the library cannot be built here, or nothing."""
    return "" if shutil.which("gcc") else "no gcc to build the library that shifts the clock"


class JumpingClock:
    """A clock whose shift all processes with its environment see at once."""

    def __init__(self, folder: Path) -> None:
        self._file, self._library = folder / "clock", folder / "clock.so"
        self._file.write_bytes(_SHIFT.pack(0))
        if not self._library.exists():
            command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(self._library), str(SOURCE)]
            subprocess.run([*command, "-ldl"], check=True)

    def environment(self) -> Mapping[str, str]:
        """Return the variables of a process that reads this clock."""
        return {"LD_PRELOAD": str(self._library), VARIABLE: str(self._file)}

    def jump(self, by_s: float) -> None:
        """Shift the time of day by so much more."""
        with self._file.open("r+b") as file, mmap.mmap(file.fileno(), _SHIFT.size) as memory:
            (shift_ns,) = _SHIFT.unpack(memory[: _SHIFT.size])
            memory[: _SHIFT.size] = _SHIFT.pack(shift_ns + round(by_s * 1e9))
