"""Token files small enough to know by heart."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fabrictune.trainer_probe.data.token_file import TokenWriter

MakeFile = Callable[..., Path]


@pytest.fixture
def make_file(tmp_path: Path) -> MakeFile:
    """Return a function that writes a token file of the ids 0, 1, 2, ..., each modulo the vocabulary."""

    def make(num_tokens: int, vocabulary_size: int = 1000) -> Path:
        path = tmp_path / f"{num_tokens}.tokens"
        with TokenWriter(path, vocabulary_size) as writer:
            writer.append(np.arange(num_tokens) % vocabulary_size)
        return path

    return make
