"""Folders of a node: one in memory for pages and checkpoints, and one on disk for logs, spans and token data."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.span_writer import FOLDER

NUM_GENERATIONS = 3  # whose spans are kept
MEMORY = Path("/dev/shm")  # noqa: S108  # the system's folder for files in memory; a name of the job's is in it


@dataclass(frozen=True, kw_only=True)
class NodeFolders:
    """The folders of one node of one job."""

    memory: Path  # checkpoints that survive the executor, not the job
    pages: Path
    logs: Path
    data: Path
    spans: Path

    @classmethod
    def of(cls, job: str, node: str, disk: Path) -> "NodeFolders":
        """Return the folders of a node, made where they are missing; `disk` is the node's own folder."""
        memory = memory_of(job, node)
        folders = cls(
            memory=memory / "checkpoints",
            pages=memory / "pages",
            logs=disk / "logs",
            data=disk / "data",
            spans=disk / FOLDER,
        )
        for folder in (memory, folders.memory, folders.pages, folders.logs, folders.data, folders.spans):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folders

    def spans_of(self, generation: int) -> Path:
        """Return the folder for a generation's spans, without those of generations long before it."""
        for folder in self.spans.glob("generation-*"):
            number = folder.name.removeprefix("generation-")
            if number.isdecimal() and int(number) <= generation - NUM_GENERATIONS:
                shutil.rmtree(folder, ignore_errors=True)
        return self.spans / f"generation-{generation}"


def memory_of(job: str, node: str) -> Path:
    """Return a node's folder in memory."""
    return MEMORY / f"fabrictune-{hashlib.sha256(f'{job}/{node}'.encode()).hexdigest()[:16]}"


def remove_memory(job: str, node: str) -> None:
    """Remove a node's folder in memory."""
    shutil.rmtree(memory_of(job, node), ignore_errors=True)
