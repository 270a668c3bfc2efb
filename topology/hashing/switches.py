"""The hashes of fixed flows at every switch of a fabric, each in its tier's role and with its own seed.

Most functions are linear, and their seed adds the same exclusive or to all hashes: there each flow is hashed once, and
a hop costs one exclusive or. The others hash every flow at every hop.

Shapes: N nodes, F flows, A of them on their way.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.topology.fabric import UNKNOWN_TIER
from fabrictune.topology.hashing.five_tuples import FiveTuples
from fabrictune.topology.hashing.spec import HashSpec


class SwitchHashes:
    """Hashes of F flows at the switches of a fabric; raises InputError for a role of a tier that is not there."""

    def __init__(self, spec: HashSpec, flows: FiveTuples, node_tier_N: IntArray) -> None:
        self.num_buckets = spec.resilient_buckets
        own_tiers = [role.tier for role in spec.tiers]
        _refuse_absent(own_tiers, node_tier_N)
        self._role_N = np.full(len(node_tier_N), len(own_tiers))
        for number, tier in enumerate(own_tiers):
            self._role_N[node_tier_N == tier] = number
        specs = [*(spec.at_tier(tier) for tier in own_tiers), spec.at_tier(_NO_TIER)]
        self._roles = [_Role(spec, flows, len(node_tier_N)) for spec in specs]

    def values(self, row_A: IntArray, node_A: IntArray) -> NDArray[np.uint64]:
        """Return the hash of some flows, each at a node."""
        if len(self._roles) == 1:
            return self._roles[0].values(row_A, node_A)
        value_A = np.zeros(len(row_A), np.uint64)
        role_A = self._role_N[node_A]
        for number, role in enumerate(self._roles):
            is_its_A = role_A == number
            value_A[is_its_A] = role.values(row_A[is_its_A], node_A[is_its_A])
        return value_A

    def choose_among(self, row_A: IntArray, node_A: IntArray, num_choices_A: IntArray) -> IntArray:
        """Return for each of some flows at a node a number from 0 to below its number of choices."""
        is_choice_A = num_choices_A > 1
        if is_choice_A.all():
            return (self.values(row_A, node_A) % num_choices_A.astype(np.uint64)).astype(np.int64)
        chosen_A = np.zeros(len(row_A), np.int64)
        if is_choice_A.any():
            chosen_A[is_choice_A] = self.choose_among(
                row_A[is_choice_A], node_A[is_choice_A], num_choices_A[is_choice_A]
            )
        return chosen_A


class _Role:
    """The hashes of one function and one way of seeding."""

    def __init__(self, spec: HashSpec, flows: FiveTuples, num_nodes: int) -> None:
        self._spec, self._flows = spec, flows
        self._seed_N = spec.node_seeds(num_nodes)
        self._is_shifted = spec.hash_function.is_shifted_by_seed and len(flows) > 0
        if self._is_shifted:
            unseeded_F = np.zeros(len(flows), np.uint64)
            self._value_F = spec.hash_flows(flows, unseeded_F)
            one_N = flows.take(np.zeros(num_nodes, np.int64))
            self._shift_N = spec.hash_flows(one_N, self._seed_N) ^ self._value_F[0]

    def values(self, row_A: IntArray, node_A: IntArray) -> NDArray[np.uint64]:
        """Return the hash of some flows, each at a node."""
        if self._is_shifted:
            value_A: NDArray[np.uint64] = self._value_F[row_A] ^ self._shift_N[node_A]
            return value_A
        return self._spec.hash_flows(self._flows.take(row_A), self._seed_N[node_A])


def _refuse_absent(tiers: Sequence[int], node_tier_N: IntArray) -> None:
    present = np.unique(node_tier_N).tolist()
    mistakes = [
        Mistake(
            where=f"tiers[{number}].tier",
            found=f"tier {tier}, which no node of the fabric has",
            allowed=", ".join(str(tier) for tier in present if tier != UNKNOWN_TIER)
            or "none: the tiers of its nodes are unknown",
        )
        for number, tier in enumerate(tiers)
        if tier not in present or tier == UNKNOWN_TIER
    ]
    if mistakes:
        raise InputError(*mistakes)


_NO_TIER = UNKNOWN_TIER - 1  # no node's
