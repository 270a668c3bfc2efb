"""Kueue's Topology of a fabric, and the node labels that it goes by, as patches of nodes.

The labels are those that Topograph writes, for schedulers that read them: leaf, spine, core, from level 1 upwards.

Source: Kueue, "Topology Aware Scheduling" (kueue.x-k8s.io, Topology); NVIDIA Topograph, "Node labels".
Left out: accelerator domains of rack-scale NVLink.
"""

from typing import Any

import yaml

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.topology.exporters.locality import Locality, locality_of
from fabrictune.topology.fabric import Fabric

LABELS = tuple(f"network.topology.nvidia.com/{level}" for level in ("leaf", "spine", "core"))  # of levels 1, 2, 3
HOST_LABEL = "kubernetes.io/hostname"


def kueue_text(fabric: Fabric) -> str:
    """Return a Topology and the labels of every node as YAML documents; raises InputError."""
    locality = locality_of(fabric)
    if locality.num_levels > len(LABELS):
        found = f"{locality.num_levels} levels of locality"
        raise InputError(Mistake(where=f"fabric {fabric.name!r}", found=found, allowed=f"{len(LABELS)}, one a label"))
    levels = [*reversed(LABELS[: locality.num_levels]), HOST_LABEL]
    topology = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Topology",
        "metadata": {"name": "fabric"},
        "spec": {"levels": [{"nodeLabel": label} for label in levels]},
    }
    return yaml.safe_dump_all([topology, *_nodes(locality)], sort_keys=False)


def _nodes(locality: Locality) -> list[dict[str, Any]]:
    labels_of: dict[str, dict[str, str]] = {}
    for domain in reversed(locality.domains()):
        for host in domain.hosts:
            labels_of.setdefault(host, {})[LABELS[domain.level - 1]] = domain.name
    return [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": host, "labels": labels}}
        for host, labels in labels_of.items()
    ]
