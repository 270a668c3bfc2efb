"""The TCP connections between the NICs of a testbed, with what each has sent, as the kernel counts it.

Source: ss(8).
"""

import re
from ipaddress import IPv4Address

from fabrictune.foundation.network_namespaces import inside, run_tool
from fabrictune.testbed.paths import Flow
from fabrictune.testbed.wiring import NamespaceFabric
from fabrictune.topology.fabric import NodeKind

_ENDS = re.compile(r"(\d+\.\d+\.\d+\.\d+)(?:%\S+)?:(\d+)\s+(\d+\.\d+\.\d+\.\d+):(\d+)")
_SENT = re.compile(r"\bbytes_acked:(\d+)")


def read_connections(built: NamespaceFabric) -> dict[Flow, int]:
    """Return the payload bytes that each connection has sent and had acknowledged, in either direction a flow."""
    fabric = built.fabric
    nic_of = {str(IPv4Address(ipv4)): nic for nic, ipv4 in enumerate(fabric.nic_ipv4_C.tolist())}
    found = {}
    for node, kind in zip(fabric.node_name_N, fabric.node_kind_N.tolist(), strict=True):
        if kind != NodeKind.HOST:
            continue
        words = inside(built.namespace(node), "ss", "-tinHO", "state", "established")
        for line in run_tool(words).splitlines():
            ends, sent = _ENDS.search(line), _SENT.search(line)
            if ends and ends[1] in nic_of and ends[3] in nic_of and ends[1] != ends[3]:
                flow = Flow(
                    source_nic=nic_of[ends[1]],
                    destination_nic=nic_of[ends[3]],
                    source_port=int(ends[2]),
                    destination_port=int(ends[4]),
                )
                found[flow] = int(sent[1]) if sent else 0
    return found
