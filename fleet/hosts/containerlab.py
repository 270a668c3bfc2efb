"""Containerlab topologies as an inventory: its nodes, by the names and management addresses it gives them.

Source: containerlab, "Topology definition" (prefix, mgmt-ipv4) and "Node name": `clab-<lab>-<node>`.
Left out: nodes that are no containers (bridges, host), which nobody logs in to.
"""

from collections.abc import Iterator
from typing import Any

from fabrictune.fleet.hosts.host import FleetHost, make_host
from fabrictune.foundation.documents import Document

NOT_NODES = ("bridge", "ovs-bridge", "host", "ext-container")
PREFIX, FROM_LAB = "clab", "__lab-name"


def is_containerlab_tree(tree: Any) -> bool:
    """Return whether values of a YAML file are a topology of containerlab."""
    topology = tree.get("topology") if isinstance(tree, dict) else None
    return isinstance(topology, dict) and isinstance(topology.get("nodes"), dict)


def read_containerlab(document: Document) -> Iterator[FleetHost]:
    """Yield the nodes of a lab; raises InputError."""
    tree = document.tree
    lab, prefix = str(tree.get("name", "")), tree.get("prefix", PREFIX)
    parts = {"": (), FROM_LAB: (lab,)}.get(str(prefix or ""), (str(prefix), lab))
    for node, body in tree["topology"]["nodes"].items():
        body = body if isinstance(body, dict) else {}
        if body.get("kind") not in NOT_NODES:
            address = body.get("mgmt-ipv4") or body.get("mgmt_ipv4") or "-".join((*parts, node))
            yield make_host(node, where=document.where("topology", "nodes", node), address=address)
