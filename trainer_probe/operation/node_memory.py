"""A node's memory for checkpoints: a folder in /dev/shm of bounded size, for its own files and copies of another's.

It is the folder of a `LocalStorage`: `step-00000010.g3/rank-00002.safetensors`, and behind each file of tensors its
index. What arrives from elsewhere is checked, and takes its name when it is whole.

A generation that has ended is fenced off: its writers are refused, by name and by the generation they say they are of.
"""

import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.trainer_probe.checkpoint.names import CheckpointId, is_ours


class MemoryRefusedError(UnavailableError):
    """A file that a node's memory doesn't take: no room, another form of name, or of a generation that has ended."""


class NodeMemory:
    """The checkpoints in one node's memory. Any thread may use it."""

    def __init__(self, folder: Path, *, max_bytes: int, fence: int = 0) -> None:
        """Take a folder, made with mode 0700 where it is missing; raises MemoryRefusedError for another user's."""
        self.folder, self.max_bytes = folder, max_bytes
        self.fence = fence  # generations up to this one are refused
        self._lock = threading.Lock()
        self._reserved_bytes = 0
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise MemoryRefusedError(
                Mistake(
                    where=str(folder), found="not a folder of this user", next_step="remove it, or name another job"
                )
            )
        folder.chmod(0o700)

    def remove_halves(self) -> None:
        """Remove what killed processes have left in the middle of a file; nobody may be writing one."""
        for half in self.folder.glob("*/.*.half"):
            half.unlink(missing_ok=True)

    def files(self) -> dict[str, int]:
        """Return the whole files by name, `step-00000010.g3/rank-00002.json`, and their sizes."""
        found: dict[str, int] = {}
        for folder in self._checkpoints():
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if is_ours(entry.name) and entry.is_file(follow_symlinks=False):
                        with suppress(OSError):
                            found[f"{folder.name}/{entry.name}"] = entry.stat(follow_symlinks=False).st_size
        return found

    def complete(self) -> dict[str, int]:
        """Return the files of ranks whose index is there too, which is written last; the index comes behind."""
        found = self.files()
        names = [name for name in sorted(found) if name.endswith(".json")]
        pairs = [(f"{name.removesuffix('.json')}.safetensors", name) for name in names]
        return {name: found[name] for pair in pairs if pair[0] in found for name in pair}

    def path_of(self, name: str, generation: int) -> Path:
        """Return the path of a file for a process of a generation.

        Raises MemoryRefusedError for a name of another form, and for a generation that is fenced off or whose number is
        lower than the file's.
        """
        folder, _, file = name.partition("/")
        checkpoint = CheckpointId.parse(folder)
        if checkpoint is None or not is_ours(file):
            raise MemoryRefusedError(Mistake(where="memory", found=f"{name[:80]!r}", allowed="a checkpoint's file"))
        lowest = max(self.fence + 1, checkpoint.generation)
        if generation < lowest:
            raise MemoryRefusedError(
                Mistake(where=name, found=f"asked for by generation {generation}", allowed=f"{lowest} or later")
            )
        return self.folder / name

    @contextmanager
    def new_file(self, name: str, num_bytes: int, generation: int) -> Iterator[Path]:
        """Give the path of a half file for the block; at its end it has its name, and goes where the block fails.

        Raises MemoryRefusedError where there is no room for it.
        """
        path = self.path_of(name, generation)
        self._reserve(name, num_bytes)
        half = path.with_name(f".{path.name}-{secrets.token_hex(8)}.half")
        try:
            path.parent.mkdir(exist_ok=True, mode=0o700)
            yield half
            self.path_of(name, generation)  # the generation may have ended since
            half.rename(path)
        finally:
            half.unlink(missing_ok=True)
            with suppress(OSError):
                path.parent.rmdir()  # where nothing is in it
            with self._lock:
                self._reserved_bytes -= num_bytes

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _reserve(self, name: str, num_bytes: int) -> None:
        with self._lock:
            used = sum(self.files().values()) + self._reserved_bytes
            free = shutil.disk_usage(self.folder).free - self._reserved_bytes
            room = min(self.max_bytes - used, free)
            if num_bytes < 0 or num_bytes > room:
                raise MemoryRefusedError(
                    Mistake(
                        where=f"{self.folder}/{name}",
                        found=f"{num_bytes:,} bytes",
                        allowed=f"{max(room, 0):,} bytes more",
                        next_step="give nodes more memory for checkpoints, or keep fewer",
                    )
                )
            self._reserved_bytes += num_bytes

    def _checkpoints(self) -> list[Path]:
        with suppress(OSError):
            return [path for path in self.folder.iterdir() if CheckpointId.parse(path.name) is not None]
        return []
