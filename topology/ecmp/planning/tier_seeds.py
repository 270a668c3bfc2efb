"""A hash seed for each tier under which known flows collide less: one tier after the other, never worse.

Tiers that hash alike polarize: of flows that a ToR sent one way, an aggregation switch sees only those whose hash said
so, and its own hash says the same. A seed of its own for each tier ends that where the function is not linear, and of
the seeds that do, some suit the flows at hand better than others.

Shapes: T tiers.
"""

from dataclasses import dataclass, replace

import numpy as np

from fabrictune.foundation.progress import Progress
from fabrictune.foundation.seeds import stream
from fabrictune.topology.ecmp.collisions import find_collisions
from fabrictune.topology.ecmp.planning.source_ports import total_excess
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.hashing import HashSpec, TierHash
from fabrictune.topology.network import QueuePairs
from fabrictune.topology.path_tracing import PathTracer
from fabrictune.topology.routing import data_headers

MAX_TIER_SEED = 2**16  # switches take seeds of 16 bits or more


@dataclass(frozen=True, kw_only=True)
class SeedPlan:
    """Proposed hash seeds, and the course of the search."""

    hash_spec: HashSpec
    excess_bps: tuple[float, ...]  # before the search, then after each try; never rises

    @property
    def is_changed(self) -> bool:
        """Whether any seed is better than what is there."""
        return self.excess_bps[-1] < self.excess_bps[0]


def plan_tier_seeds(
    fabric: Fabric,
    queue_pairs: QueuePairs,
    hash_spec: HashSpec,
    *,
    seed: int = 0,
    tries_per_tier: int = 8,
    progress: Progress | None = None,
) -> SeedPlan:
    """Return the hash with a seed for each tier that has one better than its present one."""
    routes = PathTracer(fabric, queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q)
    headers = data_headers(fabric, queue_pairs)

    def excess(spec: HashSpec) -> float:
        return total_excess(find_collisions(fabric, queue_pairs, routes.paths(headers, spec)))

    tier_T = np.unique(fabric.node_tier_N[fabric.node_kind_N == NodeKind.SWITCH])
    best = hash_spec
    excess_bps = [excess(hash_spec)]
    drawn = stream(seed, "tier-seeds").integers(MAX_TIER_SEED, size=(len(tier_T), tries_per_tier))
    tries = [(tier, one) for tier, own in zip(tier_T.tolist(), drawn.tolist(), strict=True) for one in own]
    for number, (tier, tier_seed) in enumerate(tries, start=1):
        tried = with_tier_seed(best, tier, tier_seed)
        now = excess(tried)
        if now < excess_bps[-1]:
            best = tried
        excess_bps.append(min(now, excess_bps[-1]))
        if progress:
            progress(number / len(tries))
    return SeedPlan(hash_spec=best, excess_bps=tuple(excess_bps))


def with_tier_seed(spec: HashSpec, tier: int, tier_seed: int) -> HashSpec:
    """Return the spec with a seed for one tier; whatever else the tier does of its own stays."""
    own = next((role for role in spec.tiers if role.tier == tier), TierHash(tier=tier))
    others = tuple(role for role in spec.tiers if role.tier != tier)
    return replace(spec, tiers=tuple(sorted((*others, replace(own, seed=tier_seed)), key=lambda role: role.tier)))
