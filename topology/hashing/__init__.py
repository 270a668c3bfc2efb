"""Hash models: how a switch chooses among equal-cost ports. One function a file, listed here.

A function maps the flows' 5-tuples and each flow's switch seed to a 64-bit number; the switch takes it modulo the
number of equal-cost ports.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from foundation.errors import InputError, Mistake, choose
from topology.fabric import IntArray
from topology.hashing.crc32 import hash_crc32
from topology.hashing.five_tuples import FiveTuples
from topology.hashing.mixer import hash_mixer, mix

HashFunction = Callable[[FiveTuples, NDArray[np.uint64]], NDArray[np.uint64]]

HASHES: Mapping[str, HashFunction] = {"mixer": hash_mixer, "crc32": hash_crc32}


@dataclass(frozen=True, kw_only=True)
class HashSpec:
    """Which function the switches of a fabric use, and with which seeds."""

    function: str = field(default="mixer", metadata={"help": "mixer (ideal) or crc32"})
    seed: int = field(default=0, metadata={"help": "of the whole fabric"})
    seed_per_switch: bool = field(default=True, metadata={"help": "a seed of its own for every node, or one for all"})

    def __post_init__(self) -> None:
        choose(self.function, tuple(HASHES), where="function", what="hash function", error=InputError)
        if not 0 <= self.seed < 2**63:
            raise InputError(Mistake(where="seed", found=str(self.seed), allowed="0 to 2**63 - 1"))

    def node_seeds(self, num_nodes: int) -> NDArray[np.uint64]:
        """Return the seed of every node."""
        node_N = np.arange(num_nodes, dtype=np.uint64) if self.seed_per_switch else np.zeros(num_nodes, np.uint64)
        return mix(mix(node_N) ^ np.uint64(self.seed))

    def choose_among(self, flows: FiveTuples, seed_F: NDArray[np.uint64], num_choices_F: IntArray) -> IntArray:
        """Return for each flow a number from 0 to below its number of choices."""
        value_F = HASHES[self.function](flows, seed_F)
        return (value_F % num_choices_F.astype(np.uint64)).astype(np.int64)
