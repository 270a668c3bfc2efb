"""Volcano's HyperNodes of a fabric: a resource for every domain of its hosts, its tier that of the domain.

Source: Volcano, "Network Topology Aware Scheduling" (HyperNode, topology.volcano.sh/v1alpha1).
"""

from typing import Any

import yaml

from fabrictune.topology.exporters.locality import Domain, locality_of
from fabrictune.topology.fabric import Fabric


def volcano_text(fabric: Fabric) -> str:
    """Return the HyperNodes as YAML documents; raises InputError."""
    return yaml.safe_dump_all([_hyper_node(domain) for domain in locality_of(fabric).domains()], sort_keys=False)


def _hyper_node(domain: Domain) -> dict[str, Any]:
    members = [child.name for child in domain.children] or list(domain.hosts)
    kind = "HyperNode" if domain.children else "Node"
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": domain.name},
        "spec": {
            "tier": domain.level,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in members],
        },
    }
