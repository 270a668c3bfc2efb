"""A containerlab topology of a fabric, which `topo import` reads back: nodes, links, rates and lengths as labels.

All nodes are of kind `linux`; choose images and kinds of your own before it is deployed.

Source: containerlab, "Topology definition file".
"""

import re
from typing import Any

import numpy as np
import yaml

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.units import CABLE_DELAY_PS_PER_MM, format_rate
from fabrictune.topology.fabric import UNKNOWN_TIER, Fabric, NodeKind

IMAGE = "alpine:3"


def containerlab_text(fabric: Fabric) -> str:
    """Return the topology file; raises InputError for names that containers cannot have."""
    unfit = [name for name in fabric.node_name_N if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name)]
    if unfit:
        found = f"nodes {', '.join(map(repr, unfit[:5]))}"
        raise InputError(Mistake(where=f"fabric {fabric.name!r}", found=found, allowed="letters, digits, _ . -"))
    content = {
        "name": re.sub(r"[^a-z0-9-]+", "-", fabric.name.lower()).strip("-") or "fabric",
        "topology": {
            "kinds": {"linux": {"image": IMAGE}},
            "nodes": {name: _node(fabric, node) for node, name in enumerate(fabric.node_name_N)},
            "links": [_link(fabric, int(port)) for port in _first_ports(fabric)],
        },
    }
    return yaml.safe_dump(content, sort_keys=False)


def _first_ports(fabric: Fabric) -> list[int]:
    ports: list[int] = np.nonzero(fabric.port_peer_P > np.arange(fabric.num_ports))[0].tolist()
    return ports


def _node(fabric: Fabric, node: int) -> dict[str, Any]:
    labels = {"fabrictune-kind": NodeKind(int(fabric.node_kind_N[node])).name.lower()}
    if fabric.node_tier_N[node] != UNKNOWN_TIER:
        labels["fabrictune-tier"] = str(int(fabric.node_tier_N[node]))
    return {"kind": "linux", "labels": labels}


def _link(fabric: Fabric, port: int) -> dict[str, Any]:
    peer = int(fabric.port_peer_P[port])
    cable_mm = int(fabric.port_delay_ps_P[port]) // CABLE_DELAY_PS_PER_MM
    return {
        "endpoints": [fabric.port_label(port), fabric.port_label(peer)],
        "labels": {
            "fabrictune-rate": format_rate(int(fabric.port_rate_bps_P[port])),
            "fabrictune-cable": f"{cable_mm} mm",
        },
    }
