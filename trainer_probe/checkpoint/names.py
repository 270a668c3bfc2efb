"""Names of checkpoints and of their files.

A checkpoint is a folder `step-00000010.g3`: the number of the step that comes next, and the generation of the ranks
that wrote it. Inside are a file of tensors and an index for each writer, and the manifest. `generation-00003.json`
beside the folders tells the step from which a generation went on.
"""

import re
from dataclasses import dataclass
from typing import Self

MANIFEST = "manifest.json"
_FOLDER = re.compile(r"step-(\d{8,12})\.g(\d{1,9})")
_GENERATION = re.compile(r"generation-(\d{5,9})\.json")
_RANK_FILE = re.compile(r"rank-(\d{5,8})\.(safetensors|json)")


@dataclass(frozen=True, kw_only=True, order=True)
class CheckpointId:
    """A checkpoint of a job; later steps come last, and of one step later generations."""

    step: int
    generation: int

    def __str__(self) -> str:
        """Return the folder's name."""
        return f"step-{self.step:08}.g{self.generation}"

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the checkpoint of a folder's name, None for any other name."""
        match = _FOLDER.fullmatch(name)
        return None if match is None else cls(step=int(match[1]), generation=int(match[2]))


def data_file(rank: int) -> str:
    """Return the name of the tensors' file of a rank."""
    return f"rank-{rank:05}.safetensors"


def index_file(rank: int) -> str:
    """Return the name of the index of a rank's file."""
    return f"rank-{rank:05}.json"


def generation_file(generation: int) -> str:
    """Return the name of the record of a generation's start."""
    return f"generation-{generation:05}.json"


def generation_of(name: str) -> int | None:
    """Return the generation whose record has a name, None for any other name."""
    match = _GENERATION.fullmatch(name)
    return None if match is None else int(match[1])


def is_ours(name: str) -> bool:
    """Return whether a file in a checkpoint's folder is one that we write."""
    return name == MANIFEST or _RANK_FILE.fullmatch(name) is not None


def rank_of(name: str) -> int | None:
    """Return the rank whose index has a name, None for any other name."""
    match = _RANK_FILE.fullmatch(name)
    return int(match[1]) if match is not None and match[2] == "json" else None
