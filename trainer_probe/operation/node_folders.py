"""Folders of a node: one in memory for pages and checkpoints, and one on disk for logs and token data."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108  # the system's folder for files in memory; a name of the job's is in it


@dataclass(frozen=True, kw_only=True)
class NodeFolders:
    """The folders of one node of one job."""

    memory: Path  # checkpoints that survive the executor, not the job
    pages: Path
    logs: Path
    data: Path

    @classmethod
    def of(cls, job: str, node: str, disk: Path) -> "NodeFolders":
        """Return the folders of a node, made where they are missing; `disk` is the node's own folder."""
        memory = memory_of(job, node)
        folders = cls(memory=memory / "checkpoints", pages=memory / "pages", logs=disk / "logs", data=disk / "data")
        for folder in (memory, folders.memory, folders.pages, folders.logs, folders.data):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folders


def memory_of(job: str, node: str) -> Path:
    """Return a node's folder in memory."""
    return MEMORY / f"fabrictune-{hashlib.sha256(f'{job}/{node}'.encode()).hexdigest()[:16]}"


def remove_memory(job: str, node: str) -> None:
    """Remove a node's folder in memory."""
    shutil.rmtree(memory_of(job, node), ignore_errors=True)
