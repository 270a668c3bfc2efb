"""Hash specification of a fabric's switches: function, seeds, fields, and roles by tier.

A switch hashes the chosen fields with its seed, rotates the result, and takes it modulo the number of its equal-cost
ports. All switches do alike unless a tier has a role of its own. A *resilient* group spreads hashes over a fixed number
of buckets instead, and after a failure only the buckets of the failed port move (see `topology/path_tracing.py`).
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote
from fabrictune.foundation.extensions.kinds import Extension
from fabrictune.foundation.extensions.tables import Extensible
from fabrictune.topology.hashing.five_tuples import FIVE_TUPLE, FiveTuples, HeaderField
from fabrictune.topology.hashing.functions import HASHES, HashFunction
from fabrictune.topology.hashing.mixer import mix_bits

MAX_ROTATION = 15  # as RTAG7's offset
MAX_BUCKETS = 2**16

FunctionName = Annotated[str | Path | Extension[HashFunction], Extensible(HASHES)]


@dataclass(frozen=True, kw_only=True)
class TierHash:
    """Exceptions for the switches of one tier; None: as the rest of the fabric."""

    tier: int = field(metadata={"help": "1 ToR, 2 aggregation, 3 core"})
    function: FunctionName | None = field(
        default=None, metadata={"help": "hash function, or a Python file", "one_of": HASHES}
    )
    seed: int | None = field(default=None, metadata={"help": "of the tier"})
    seed_per_switch: bool | None = field(default=None, metadata={"help": "a seed of its own for every switch"})
    fields: tuple[HeaderField, ...] | None = field(default=None, metadata={"help": "header fields hashed"})
    rotation: int | None = field(default=None, metadata={"help": "bits the hash is rotated by"})

    def __post_init__(self) -> None:
        self.applied_to(HashSpec())

    def applied_to(self, spec: "HashSpec") -> "HashSpec":
        """Return the spec as the tier's switches have it, without roles; raises InputError."""
        own = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self) if entry.name != "tier"}
        return replace(spec, tiers=(), **{name: value for name, value in own.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class HashSpec:
    """Hash function of the switches of a fabric, its fields and its seeds."""

    function: FunctionName = field(
        default="mixer", metadata={"help": "hash function, or a Python file; mixer is ideal", "one_of": HASHES}
    )
    seed: int = field(default=0, metadata={"help": "of the whole fabric"})
    seed_per_switch: bool = field(default=True, metadata={"help": "a seed of its own for every node, or one for all"})
    fields: tuple[HeaderField, ...] = field(
        default=FIVE_TUPLE, metadata={"help": "header fields hashed; destination_qp added is E-ECMP"}
    )
    rotation: int = field(default=0, metadata={"help": "bits the hash is rotated by, 0 to 15"})
    resilient_buckets: int | None = field(
        default=None, metadata={"help": "buckets of a resilient group; without, hash modulo ports"}
    )
    tiers: tuple[TierHash, ...] = field(default=(), metadata={"help": "what single tiers do differently"})

    def __post_init__(self) -> None:
        mistakes = list(self._mistakes())
        if mistakes:
            raise InputError(*mistakes)

    @property
    def hash_function(self) -> HashFunction:
        """The function itself, roles aside."""
        if isinstance(self.function, Extension):
            return self.function.value
        assert isinstance(self.function, str), f"{self.function} is loaded before it is used"
        return HASHES[self.function]

    def at_tier(self, tier: int) -> "HashSpec":
        """Return what the switches of a tier do, as a spec without roles."""
        role = next((role for role in self.tiers if role.tier == tier), None)
        return role.applied_to(self) if role else replace(self, tiers=())

    def node_seeds(self, num_nodes: int) -> NDArray[np.uint64]:
        """Return the seed of every node, were it in no tier with a role."""
        node_N = np.arange(num_nodes, dtype=np.uint64) if self.seed_per_switch else np.zeros(num_nodes, np.uint64)
        return mix_bits(mix_bits(node_N) ^ np.uint64(self.seed))

    def hash_flows(self, flows: FiveTuples, seed_F: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return each flow's hash at a switch with the given seed, roles aside."""
        function = self.hash_function
        value_F = function.hash_flows(flows.choosing(self.fields), seed_F)
        if not self.rotation:
            return value_F
        mask = np.uint64(2**function.num_bits - 1)
        right, left = np.uint64(self.rotation), np.uint64(function.num_bits - self.rotation)
        return (value_F >> right | value_F << left) & mask

    def choose_among(self, flows: FiveTuples, seed_F: NDArray[np.uint64], num_choices_F: IntArray) -> IntArray:
        """Return for each flow a number from 0 to below its number of choices, roles aside."""
        return (self.hash_flows(flows, seed_F) % num_choices_F.astype(np.uint64)).astype(np.int64)

    def _mistakes(self) -> Iterator[Mistake]:
        if isinstance(self.function, str) and self.function not in HASHES:
            yield Mistake(
                where="function",
                found=f"unknown hash function {quote(self.function)}",
                allowed=", ".join(HASHES),
                nearest=nearest_name(self.function, HASHES),
            )
        for where, value, low, high, shown in (
            ("seed", self.seed, 0, 2**63 - 1, "2**63 - 1"),
            ("rotation", self.rotation, 0, MAX_ROTATION, str(MAX_ROTATION)),
            ("resilient_buckets", self.resilient_buckets, 1, MAX_BUCKETS, str(MAX_BUCKETS)),
        ):
            if value is not None and not low <= value <= high:
                yield Mistake(where=where, found=str(value), allowed=f"{low} to {shown}")
        if not self.fields:
            yield Mistake(where="fields", found="none", allowed="one header field at least")
        if len({role.tier for role in self.tiers}) < len(self.tiers):
            yield Mistake(where="tiers", found="a tier twice", allowed="each tier once")
