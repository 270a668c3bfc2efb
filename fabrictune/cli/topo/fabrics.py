"""A fabric in a few lines: nodes by tier, links by what they join and at what rate, and what a ToR has up and down."""

from typing import Any

import numpy as np

from fabrictune.cli.framework.findings import findings_json
from fabrictune.cli.framework.output import print_lines, print_table
from fabrictune.foundation.units import format_duration, format_rate
from fabrictune.topology.fabric import UNKNOWN_TIER, Fabric, NodeKind


def describe_fabric(fabric: Fabric, *, has_links: bool) -> dict[str, Any]:
    """Return the description as JSON values; the links themselves only if asked for."""
    description: dict[str, Any] = {
        "name": fabric.name,
        "hosts": int((fabric.node_kind_N == NodeKind.HOST).sum()),
        "switches": int((fabric.node_kind_N == NodeKind.SWITCH).sum()),
        "nics": fabric.num_nics,
        "links": fabric.num_ports // 2,
        "notes": list(fabric.notes),
        "findings": findings_json(fabric.findings),
        "tiers": [{"tier": name, "nodes": count} for name, count in _tiers(fabric)],
        "link_kinds": [
            {"between": between, "rate_bps": rate_bps, "delay_ps": delay_ps, "links": count}
            for between, rate_bps, delay_ps, count in _link_kinds(fabric)
        ],
    }
    if has_links:
        description["link_list"] = [
            {
                "from": fabric.port_label(port),
                "to": fabric.port_label(int(fabric.port_peer_P[port])),
                "rate_bps": int(fabric.port_rate_bps_P[port]),
                "delay_ps": int(fabric.port_delay_ps_P[port]),
            }
            for port in _one_port_a_link(fabric)
        ]
    return description


def print_fabric(fabric: Fabric, *, has_links: bool) -> None:
    """Print the description for people."""
    described = describe_fabric(fabric, has_links=has_links)
    print_lines(
        [
            f"{fabric.name}: {described['hosts']} hosts with {described['nics']} NICs, "
            f"{described['switches']} switches, {described['links']} links"
        ]
    )
    print_table(("tier", "nodes"), [(tier["tier"], str(tier["nodes"])) for tier in described["tiers"]], indent=2)
    kinds = [
        (kind["between"], str(kind["links"]), format_rate(kind["rate_bps"]), format_duration(kind["delay_ps"]))
        for kind in described["link_kinds"]
    ]
    print_table(("links between", "links", "rate", "delay"), kinds, indent=2)
    if has_links:
        links = [
            (link["from"], link["to"], format_rate(link["rate_bps"]), format_duration(link["delay_ps"]))
            for link in described["link_list"]
        ]
        print_table(("from", "to", "rate", "delay"), links, indent=2)
    print_lines(f"note: {note}" for note in fabric.notes)
    if fabric.findings:
        found = f"the files contradict one another in {len(fabric.findings)} places"
        print_lines([f"next: {found}; fabrictune topo validate FILE... lists them"])


def _tiers(fabric: Fabric) -> list[tuple[str, int]]:
    tiers, counts = np.unique(fabric.node_tier_N, return_counts=True)
    return [(_tier_name(int(tier)), int(count)) for tier, count in zip(tiers, counts, strict=True)]


def _tier_name(tier: int) -> str:
    names = {UNKNOWN_TIER: "unknown", 0: "host", 1: "ToR or leaf", 2: "aggregation or spine", 3: "core"}
    return names.get(tier, f"tier {tier}")


def _one_port_a_link(fabric: Fabric) -> list[int]:
    return np.nonzero(fabric.port_peer_P > np.arange(fabric.num_ports))[0].tolist()


def _link_kinds(fabric: Fabric) -> list[tuple[str, int, int, int]]:
    """Return what links join, their rate, their delay and how many there are, from the hosts upwards."""
    ports = np.array(_one_port_a_link(fabric), np.int64)
    ends = fabric.node_tier_N[fabric.port_node_P[np.stack([ports, fabric.port_peer_P[ports]], axis=1)]]
    keys = np.column_stack([np.sort(ends, axis=1), fabric.port_rate_bps_P[ports], fabric.port_delay_ps_P[ports]])
    kinds, counts = np.unique(keys, axis=0, return_counts=True)
    return [
        (f"{_tier_name(int(low))} - {_tier_name(int(high))}", int(rate), int(delay), int(count))
        for (low, high, rate, delay), count in zip(kinds, counts, strict=True)
    ]
