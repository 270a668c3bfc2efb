"""The next hops that are left where two tiers hash alike, on the paths that flows really take."""

from functools import partial

import numpy as np

from fabrictune.foundation.cases import Case, exactly
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec, TierHash
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import route

NUM_FLOWS = 4000

_POLARIZED = "closed form: h mod m1 is fixed, so h mod m2 takes m2 / gcd(m1, m2) values"
_LINEAR = "CRC is linear: another seed flips the same bits of every hash, so low bits still agree"
_CURED = "all next hops: the upper tier takes other bits of the hash"
_INDEPENDENT = "all next hops of independent hashes"


def cases() -> tuple[Case, ...]:
    """Return the cases of polarization: 4 uplinks a ToR, then 4 or 6 an aggregation switch."""
    one_seed = HashSpec(seed_per_switch=False)
    crc = HashSpec(function="crc32")
    rows = (
        ("one-seed-4-then-4", _POLARIZED, 1, 4, one_seed),
        ("one-seed-4-then-6", _POLARIZED, 3, 6, one_seed),
        ("crc32-seeds-4-then-4", _LINEAR, 1, 4, crc),
        ("crc16-seeds-4-then-4", _LINEAR, 1, 4, HashSpec(function="crc16")),
        ("crc32-rotated-4-then-4", _CURED, 4, 4, HashSpec(function="crc32", tiers=(TierHash(tier=2, rotation=8),))),
        ("mixer-seeds-4-then-4", _INDEPENDENT, 4, 4, HashSpec()),
        ("mixer-seeds-4-then-6", _INDEPENDENT, 6, 6, HashSpec()),
    )
    return tuple(
        Case(
            name=f"topology.polarization-{name}",
            source=source,
            unit="next hops",
            **exactly(expected),
            run=partial(used_next_hops, uplinks, spec),
        )
        for name, source, expected, uplinks, spec in rows
    )


def four_then(num_uplinks: int) -> Fabric:
    """Return a fabric of four uplinks a ToR, and four or six an aggregation switch."""
    if num_uplinks == 4:
        return build_fat_tree(FatTreeSpec(radix=8))
    return build_clos(  # every ToR set is one ToR, six of them a pod
        ClosSpec(
            num_hosts=48,
            hosts_per_tor_set=4,
            nics_per_host=1,
            switch_radix=12,
            nic_rate_bps=100_000_000_000,
            uplink_rate_bps=100_000_000_000,
            downlink_split=1,
            tor_sets_per_pod=6,
            num_cores=24,
        )
    )


def used_next_hops(num_uplinks: int, hash_spec: HashSpec) -> float:
    """Return the most uplinks that any aggregation switch uses for 4,000 flows from the first ToR to other pods."""
    fabric = four_then(num_uplinks)
    half = fabric.num_nics // 2
    row_Q = np.arange(NUM_FLOWS)
    queue_pairs = make_queue_pairs(row_Q % 4, half + row_Q % half)  # four NICs a ToR
    used = np.unique(route(fabric, queue_pairs, hash_spec).port_QDH[:, 0, 2])
    return float(np.bincount(fabric.port_node_P[used]).max())
