"""The data of a chaos run: a token file of random ids, the same for every run of a session."""

from pathlib import Path

import numpy as np

from fabrictune.trainer_probe.data.token_file import TokenWriter

VOCABULARY = 258
NUM_TOKENS = 2**16
ID_BYTES = 2


def write_shard(path: Path) -> None:
    """Write the token file."""
    with TokenWriter(path, VOCABULARY) as writer:
        writer.append(np.random.default_rng(0).integers(0, VOCABULARY - 2, NUM_TOKENS))
