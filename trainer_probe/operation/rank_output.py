"""What a process of a node prints: into a file of bounded size, and through a filter for lines that matter."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MAX_LOG_BYTES = 2**20  # of a file; the one before it is kept too
_BLOCK_BYTES = 2**16
_MAX_LINE_BYTES = 4096


class RankOutput:
    """The output of one process: `NAME.log`, and before that `NAME.1.log`. A full disk loses lines, and counts them."""

    def __init__(self, descriptor: int, path: Path, on_line: Callable[[str], None]) -> None:
        self._descriptor, self._path, self._on_line = descriptor, path, on_line
        self._rest = b""
        self.num_lost_bytes = 0

    def fileno(self) -> int:
        """Return the descriptor that is readable when there is output."""
        return self._descriptor

    def read(self) -> bool:
        """Take a block of what there is; returns False at the end, after which it is closed."""
        self._take()
        return self._descriptor >= 0

    def drain(self) -> None:
        """Take all that there is now."""
        while self._descriptor >= 0 and self._take():
            pass

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _take(self) -> bool:
        """Take a block; returns whether there was one."""
        if self._descriptor < 0:
            return False  # drained before the event that says that there is something
        try:
            block = os.read(self._descriptor, _BLOCK_BYTES)
        except BlockingIOError:
            return False
        if not block:
            self.close()
            return False
        self._write(block)
        *lines, self._rest = (self._rest + block).split(b"\n")
        self._rest = self._rest[-_MAX_LINE_BYTES:]
        for line in lines:
            self._on_line(line[:_MAX_LINE_BYTES].decode(errors="replace"))
        return True

    def _write(self, block: bytes) -> None:
        try:
            with self._path.open("ab") as file:
                file.write(block)
                is_full = file.tell() >= MAX_LOG_BYTES
            if is_full:
                with suppress(OSError):
                    self._path.replace(self._path.with_suffix(".1.log"))
        except OSError:
            self.num_lost_bytes += len(block)
