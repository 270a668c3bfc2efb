"""Counts of fabrics: those their papers publish, and those that follow from them."""

from collections.abc import Callable
from functools import partial

import numpy as np

from fabrictune.foundation.cases import Case, around, exactly
from fabrictune.topology.builders.barre import BarreSpec
from fabrictune.topology.builders.clos import ClosSpec, build_clos, plan_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.builders.hpn import HpnSpec
from fabrictune.topology.builders.megascale import MegascaleSpec
from fabrictune.topology.builders.meta24k import Meta24kSpec
from fabrictune.topology.builders.rail_only import RailOnlySpec
from fabrictune.topology.fabric import Fabric

_MEGASCALE_SOURCE = "MegaScale (NSDI'24) 3.6: 12,288 GPUs, 64 servers a ToR set, 32 down and 32 up in every tier"
_BARRE_SOURCE = "Barre (ATC'25): MegaScale's shape at 2 x 400G of 800G; counts follow for 12,288 GPUs"
_FAT_TREE_SOURCE = "Al-Fares et al. (SIGCOMM'08) 3: k^3/4 hosts, 5k^2/4 switches, 3k^3/4 links"
_HPN_SOURCE = "HPN (SIGCOMM'24)"
_META_SOURCE = "The Llama 3 Herd of Models 3.3.1"
_RAIL_ONLY_SOURCE = "k-port switches: a rail of k^2/2 GPUs takes k ToRs and k/2 above them; 8 rails of k = 64"

FabricQuantity = Callable[[Fabric], float]


def cases() -> tuple[Case, ...]:
    """Return the cases of fabrics."""
    return (*_tiers(), *_published(), *_hpn_pods(), *_fat_trees())


def _tiers() -> tuple[Case, ...]:
    fabrics = (("megascale", MegascaleSpec(), _MEGASCALE_SOURCE), ("barre", BarreSpec(), _BARRE_SOURCE))
    counts = {"hosts": 1536, "tors": 192, "aggregations": 192, "cores": 96}
    return tuple(
        Case(
            name=f"topology.{fabric}-{what}",
            source=source,
            unit="nodes",
            **exactly(expected),
            run=partial(_measure, spec, partial(_num_nodes, tier=tier)),
        )
        for fabric, spec, source in fabrics
        for tier, (what, expected) in enumerate(counts.items())
    )


def _published() -> tuple[Case, ...]:
    rows: tuple[tuple[str, str, ClosSpec, FabricQuantity, float], ...] = (
        ("hpn-gpus", f"{_HPN_SOURCE} table 2", HpnSpec(), _num_gpus, 15 * 1024),
        ("hpn-tors", f"{_HPN_SOURCE} 3: 16 ToRs a segment, 15 segments", HpnSpec(), partial(_num_nodes, tier=1), 240),
        ("hpn-core-oversubscription", f"{_HPN_SOURCE} 3", HpnSpec(), partial(_oversubscription, tier=2), 15),
        ("meta24k-gpus", f"{_META_SOURCE}: 8 pods of 3,072", Meta24kSpec(), _num_gpus, 24_576),
        ("meta24k-racks", f"{_META_SOURCE}: 8 pods of 192", Meta24kSpec(), partial(_num_nodes, tier=1), 1536),
        ("meta24k-pod-oversubscription", _META_SOURCE, Meta24kSpec(), partial(_oversubscription, tier=1), 1),
        ("rail-only-gpus", _RAIL_ONLY_SOURCE, RailOnlySpec(), _num_gpus, 16_384),
        ("rail-only-switches", _RAIL_ONLY_SOURCE, RailOnlySpec(), _num_switches, 768),
    )
    exact = [
        Case(
            name=f"topology.{name}",
            source=source,
            unit="down : up" if name.endswith("oversubscription") else name.rpartition("-")[2],
            **exactly(expected),
            run=partial(_measure, spec, measure),
        )
        for name, source, spec, measure, expected in rows
    ]
    return (
        *exact,
        Case(
            name="topology.hpn-tor-oversubscription",
            source=f"{_HPN_SOURCE} 5.1: 128 x 200G down, 60 x 400G up, 1.067:1",
            unit="down : up",
            **around(1.067, 0.0005),
            run=partial(_measure, HpnSpec(), partial(_oversubscription, tier=1)),
        ),
        Case(
            name="topology.meta24k-core-oversubscription",
            source=f"{_META_SOURCE}: 1:7; 192 links down are no multiple of 7",
            unit="down : up",
            **around(7, 0.02),
            run=partial(_measure, Meta24kSpec(), partial(_oversubscription, tier=2)),
        ),
    )


def _hpn_pods() -> tuple[Case, ...]:
    rows = (
        ("dual-tor", "table 2: 4K", HpnSpec(num_hosts=8192, planes=1, uplinks_per_aggregation=64), 4096),
        ("dual-plane", "table 2: 8K", HpnSpec(num_hosts=8192, uplinks_per_aggregation=64), 8192),
        ("core-15-to-1", "table 2: 15K", HpnSpec(num_hosts=3840), 15_360),
        ("rail-only", "table 4", HpnSpec(num_hosts=15_360, planes=16), 122_880),
    )
    return tuple(
        Case(
            name=f"topology.hpn-pod-{name}",
            source=f"{_HPN_SOURCE} {table}",
            unit="gpus",
            **exactly(expected),
            run=partial(_gpus_per_pod, spec),
        )
        for name, table, spec, expected in rows
    )


def _fat_trees() -> tuple[Case, ...]:
    return tuple(
        Case(
            name=f"topology.fat-tree-k{k}-{name}",
            source=_FAT_TREE_SOURCE,
            unit=name,
            **exactly(expected),
            run=partial(_fat_tree_count, k, name),
        )
        for k in (8, 16)
        for name, expected in (("hosts", k**3 // 4), ("switches", 5 * k**2 // 4), ("links", 3 * k**3 // 4))
    )


def _measure(spec: ClosSpec, measure: FabricQuantity) -> float:
    return measure(build_clos(spec))


def _num_nodes(fabric: Fabric, tier: int) -> float:
    return float((fabric.node_tier_N == tier).sum())


def _num_gpus(fabric: Fabric) -> float:
    """Return the number of GPUs: each has a NIC of its own."""
    return float(fabric.num_nics)


def _num_switches(fabric: Fabric) -> float:
    return float((fabric.node_tier_N > 0).sum())


def _oversubscription(fabric: Fabric, tier: int) -> float:
    """Return capacity down over capacity up, of the worst switch of a tier."""
    node_P, peer_P = fabric.port_node_P, fabric.port_node_P[fabric.port_peer_P]
    is_down_P = fabric.node_tier_N[peer_P] < fabric.node_tier_N[node_P]
    down_bps_N, up_bps_N = (
        np.bincount(node_P[chosen_P], fabric.port_rate_bps_P[chosen_P], minlength=fabric.num_nodes)
        for chosen_P in (is_down_P, ~is_down_P)
    )
    is_in_tier_N = fabric.node_tier_N == tier
    return float((down_bps_N[is_in_tier_N] / up_bps_N[is_in_tier_N]).max())


def _gpus_per_pod(spec: ClosSpec) -> float:
    return float(plan_clos(spec).sets_per_pod * spec.hosts_per_tor_set * spec.nics_per_host)


def _fat_tree_count(k: int, what: str) -> float:
    fabric = build_fat_tree(FatTreeSpec(radix=k))
    counts = {
        "hosts": fabric.num_nics,
        "switches": fabric.num_nodes - fabric.num_nics,
        "links": fabric.num_ports // 2,
    }
    return float(counts[what])
