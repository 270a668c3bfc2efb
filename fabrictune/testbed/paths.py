"""The path of a flow over a testbed, by the kernel's own answer: each switch is asked for the flow's next hop.

Source: ip-route(8), `route get ... iif ... ipproto ... sport ... dport`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from fabrictune.foundation.network_namespaces import run_tool
from fabrictune.testbed.wiring import NamespaceFabric
from fabrictune.topology.fabric import NodeKind

_DEVICE = re.compile(r"\bdev (\S+)")


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A TCP flow between two NICs, in one direction."""

    source_nic: int
    destination_nic: int
    source_port: int
    destination_port: int

    @property
    def reverse(self) -> "Flow":
        """The way of its acknowledgements."""
        return Flow(
            source_nic=self.destination_nic,
            destination_nic=self.source_nic,
            source_port=self.destination_port,
            destination_port=self.source_port,
        )


def kernel_paths(built: NamespaceFabric, flows: Sequence[Flow]) -> dict[Flow, tuple[int, ...]]:
    """Return the ports through which each flow leaves the nodes on its way; a process a switch and hop."""
    fabric = built.fabric
    paths = {flow: [fabric.first_port(flow.source_nic)] for flow in flows}
    while under_way := _at_switches(built, paths):
        for node in sorted(set(under_way.values())):
            here = [flow for flow, at in under_way.items() if at == node]
            asked = [_question(built, flow, paths[flow][-1]) for flow in here]
            name = fabric.node_name_N[node]
            said = run_tool(["ip", "-n", built.namespace(name), "-oneline", "-batch", "-"], "\n".join(asked) + "\n")
            port_of_name = {fabric.port_name_P[port]: port for port in built.ports_of(node)}
            for flow, line in zip(here, said.splitlines(), strict=True):
                match = _DEVICE.search(line)
                assert match, f"a route without an interface: {line}"
                paths[flow].append(port_of_name[match[1]])
    return {flow: tuple(path) for flow, path in paths.items()}


def _at_switches(built: NamespaceFabric, paths: Mapping[Flow, Sequence[int]]) -> dict[Flow, int]:
    """Return the switch that each path has come to, of those that have not come to a host."""
    fabric = built.fabric
    nodes = {flow: int(fabric.port_node_P[fabric.port_peer_P[path[-1]]]) for flow, path in paths.items()}
    return {flow: node for flow, node in nodes.items() if fabric.node_kind_N[node] == NodeKind.SWITCH}


def _question(built: NamespaceFabric, flow: Flow, port: int) -> str:
    fabric = built.fabric
    source, destination = (
        str(IPv4Address(int(fabric.nic_ipv4_C[nic]))) for nic in (flow.source_nic, flow.destination_nic)
    )
    entered = fabric.port_name_P[fabric.port_peer_P[port]]
    ports = f"sport {flow.source_port} dport {flow.destination_port}"
    return f"route get {destination} from {source} iif {entered} ipproto tcp {ports}"
