"""An InfraGraph infrastructure of a fabric: devices, instances of them, and edges between, which `topo import` reads.

Nodes whose names differ in the number at their end, and whose ports are alike, are instances of one device: `host0` and
`host1` become `host.0` and `host.1`, and so do the ports of a node (`places.py`). Inside a device each port is joined
to what forwards or computes, as in InfraGraph's own blueprints, so that paths of its graph lead through nodes.

Source: github.com/Keysight/infragraph 3.1: OpenAPI schema (`Infrastructure`), blueprint `generic_switch`.
Left out: a NIC of several ports becomes a NIC a port; tiers, groups and rails, for which it has no place.

Shapes: N nodes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from fabrictune.foundation.units import PS_PER_NS, format_duration, format_rate
from fabrictune.topology.exporters.places import Group, Place, numbered, plain, unused
from fabrictune.topology.exporters.slices import JoinedSlices, Joint, joined_slices
from fabrictune.topology.fabric import Fabric, NodeKind

BPS_PER_GBPS = 10**9
INSIDE = "internal"  # the link between the parts of a device
PORTS = {NodeKind.HOST: "nic", NodeKind.SWITCH: "port"}  # choice of a component that is a port
CENTRES = {NodeKind.HOST: ("cpu", "cpu"), NodeKind.SWITCH: ("asic", "switch")}  # name and choice of what joins them

Shape = tuple[NodeKind, tuple[Group, ...]]  # what nodes of one device have in common
LinkKind = tuple[int, int]  # rate and delay


def infragraph_text(fabric: Fabric) -> str:
    """Return the infrastructure as YAML."""
    ports_N: list[list[int]] = [[] for _ in range(fabric.num_nodes)]
    for port, node in enumerate(fabric.port_node_P.tolist()):
        ports_N[node].append(port)
    numbered_N = [numbered([fabric.port_name_P[port] for port in ports]) for ports in ports_N]
    shape_N: list[Shape] = [
        (NodeKind(int(kind)), groups) for kind, (_, groups) in zip(fabric.node_kind_N.tolist(), numbered_N, strict=True)
    ]
    node_N, instances = numbered(fabric.node_name_N, shape_N)
    place_of = {
        port: (node_N[node], place)
        for node, (ports, (places, _)) in enumerate(zip(ports_N, numbered_N, strict=True))
        for port, place in zip(ports, places, strict=True)
    }
    devices = _device_names(shape_N)
    device_of = {place.name: devices[shape] for place, shape in zip(node_N, shape_N, strict=True)}
    kinds = _link_names(fabric)
    content = {
        "name": plain(fabric.name),
        "devices": [_device(name, shape) for shape, name in devices.items()],
        "links": [_link(name, kind) for kind, name in kinds.items()],
        "instances": [{**_named(group), "device": device_of[group.name], "count": group.count} for group in instances],
        "edges": [_edge(slices) for slices in joined_slices(_joints(fabric, place_of, kinds))],
    }
    return yaml.safe_dump(content, sort_keys=False)


def _device_names(shapes: Sequence[Shape]) -> dict[Shape, str]:
    """Return the name of each device: what it is, with a number from the second on."""
    names: dict[Shape, str] = {}
    for shape in shapes:
        if shape not in names:
            names[shape] = unused(shape[0].name.lower(), names.values())
    return names


def _device(name: str, shape: Shape) -> dict[str, Any]:
    kind, ports = shape
    centre, choice = CENTRES[kind]
    centre = unused(centre, [group.name for group in ports])
    return {
        "name": name,
        "components": [
            {"name": centre, "count": 1, "choice": choice},
            *({**_named(group), "count": group.count, "choice": PORTS[kind]} for group in ports),
        ],
        "links": [{"name": INSIDE}],
        "edges": [
            {
                "ep1": {"component": centre},
                "ep2": {"component": group.name},
                "scheme": "many2many",
                "link": INSIDE,
            }
            for group in ports
        ],
    }


def _named(group: Group) -> dict[str, str]:
    return {"name": group.name, "description": group.description}


def _kind_of(fabric: Fabric, port: int) -> LinkKind:
    return int(fabric.port_rate_bps_P[port]), int(fabric.port_delay_ps_P[port])


def _first_ports(fabric: Fabric) -> list[int]:
    ports: list[int] = np.nonzero(fabric.port_peer_P > np.arange(fabric.num_ports))[0].tolist()
    return ports


def _link_names(fabric: Fabric) -> dict[LinkKind, str]:
    """Return the name of each kind of link: its rate and delay."""
    names: dict[LinkKind, str] = {}
    for rate_bps, delay_ps in dict.fromkeys(_kind_of(fabric, port) for port in _first_ports(fabric)):
        name = plain(f"{format_rate(rate_bps)} {format_duration(delay_ps)}")
        names[rate_bps, delay_ps] = unused(name, names.values())
    return names


def _link(name: str, kind: LinkKind) -> dict[str, Any]:
    rate_bps, delay_ps = kind
    return {
        "name": name,
        "physical": {
            "bandwidth": {"choice": "gigabits_per_second", "gigabits_per_second": _over(rate_bps, BPS_PER_GBPS)},
            "latency": {"choice": "ns", "ns": _over(delay_ps, PS_PER_NS)},
        },
    }


def _over(value: int, unit: int) -> int | float:
    return value // unit if value % unit == 0 else value / unit


def _joints(fabric: Fabric, place_of: Mapping[int, tuple[Place, Place]], kinds: Mapping[LinkKind, str]) -> list[Joint]:
    return [
        Joint((*place_of[port], *place_of[int(fabric.port_peer_P[port])]), kinds[_kind_of(fabric, port)])
        for port in _first_ports(fabric)
    ]


def _edge(slices: JoinedSlices) -> dict[str, Any]:
    near_node, near_port, far_node, far_port = slices.texts()
    return {
        "ep1": {"instance": near_node, "component": near_port},
        "ep2": {"instance": far_node, "component": far_port},
        "scheme": "one2one",
        "link": slices.first.kind,
    }
