"""Check values of hash functions, and the next hops that polarization leaves."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from foundation.cases import Case, exactly
from topology.builders.clos import ClosSpec, build_clos
from topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from topology.collisions import analyze_collisions
from topology.fabric import Fabric
from topology.hashing import HashSpec
from topology.hashing.crc32 import ISO_HDLC
from topology.queue_pairs import make_queue_pairs
from topology.routing import build_network

# Four uplinks a ToR and six an aggregation switch: every ToR set is one ToR, six of them a pod.
SIX_UPLINKS = ClosSpec(
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

_POLARIZED = "closed form: h mod m1 is fixed, so h mod m2 takes m2 / gcd(m1, m2) values"
_LINEAR = "CRC is linear: another seed flips the same bits of every hash, so low bits still agree"


def cases() -> tuple[Case, ...]:
    """Return the cases of hash functions."""
    k8 = FatTreeSpec(radix=8)
    one_seed = HashSpec(seed_per_switch=False)
    crc = HashSpec(function="crc32")
    rows = (
        ("one-seed-4-then-4", _POLARIZED, 1, partial(_next_hops_used, build_fat_tree, k8, one_seed)),
        ("one-seed-4-then-6", _POLARIZED, 3, partial(_next_hops_used, build_clos, SIX_UPLINKS, one_seed)),
        ("crc32-seeds-4-then-4", _LINEAR, 1, partial(_next_hops_used, build_fat_tree, k8, crc)),
        (
            "mixer-seeds-4-then-4",
            "all next hops of independent hashes",
            4,
            partial(_next_hops_used, build_fat_tree, k8),
        ),
    )
    polarization = [
        Case(name=f"topology.polarization-{name}", source=source, unit="next hops", **exactly(expected), run=run)
        for name, source, expected, run in rows
    ]
    check_value = Case(
        name="topology.crc32-check-value",
        source='CRC-32/ISO-HDLC of "123456789": 0xCBF43926',
        unit="",
        **exactly(0xCBF43926),
        run=lambda: float(ISO_HDLC(np.frombuffer(b"123456789", np.uint8)[None, :], np.zeros(1, np.uint64))[0]),
    )
    return (*polarization, check_value)


def _next_hops_used(build: Callable[[Any], Fabric], spec: Any, hash_spec: HashSpec | None = None) -> float:
    """Return the most uplinks that any aggregation switch uses for 4,000 flows from the first ToR to other pods."""
    fabric = build(spec)
    half = fabric.num_nics // 2
    queue_pairs = make_queue_pairs(np.arange(4000) % 4, half + np.arange(4000) % half)  # four NICs a ToR
    report = analyze_collisions(build_network(fabric, queue_pairs, hash_spec or HashSpec()))
    tier_P = fabric.node_tier_N[fabric.port_node_P]
    is_used_P = (tier_P == 2) & (tier_P[fabric.port_peer_P] == 3) & (report.num_flows_P > 0)
    return float(np.bincount(fabric.port_node_P[is_used_P]).max())
