"""The TCP connections between the NICs of a testbed, with what each has sent, as the kernel counts it.

Source: ss(8).
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address

from fabrictune.foundation.network_namespaces import inside, run_tool
from fabrictune.testbed.paths import Flow
from fabrictune.testbed.wiring import NamespaceFabric
from fabrictune.topology.fabric import NodeKind

_ENDS = re.compile(r"(\d+\.\d+\.\d+\.\d+)(?:%\S+)?:(\d+)\s+(\d+\.\d+\.\d+\.\d+):(\d+)")
_ACKNOWLEDGED = re.compile(r"\bbytes_acked:(\d+)")
_PACKETS = re.compile(r"\bdata_segs_out:(\d+)")
_SENT_AGAIN = re.compile(r"\bretrans:\d+/(\d+)")  # now under way, and in all
_CAME_TWICE = re.compile(r"\bdsack_dups:(\d+)")  # as the receiver says, RFC 2883


@dataclass(frozen=True, kw_only=True)
class SentData:
    """What a connection has sent in one direction."""

    acknowledged_bytes: int  # of payload
    num_packets: int  # with payload, those sent again included
    num_sent_again: int
    num_came_twice: int  # sent again without need

    @property
    def num_lost(self) -> int:
        """Packets that were sent again because the first had not come."""
        return max(self.num_sent_again - self.num_came_twice, 0)


def read_connections(built: NamespaceFabric) -> dict[Flow, SentData]:
    """Return what each connection has sent, in either direction a flow."""
    fabric = built.fabric
    nic_of = {str(IPv4Address(ipv4)): nic for nic, ipv4 in enumerate(fabric.nic_ipv4_C.tolist())}
    found = {}
    for node, kind in zip(fabric.node_name_N, fabric.node_kind_N.tolist(), strict=True):
        if kind != NodeKind.HOST:
            continue
        words = inside(built.namespace(node), "ss", "-tinHO", "state", "established")
        for line in run_tool(words).splitlines():
            ends = _ENDS.search(line)
            if ends and ends[1] in nic_of and ends[3] in nic_of and ends[1] != ends[3]:
                flow = Flow(
                    source_nic=nic_of[ends[1]],
                    destination_nic=nic_of[ends[3]],
                    source_port=int(ends[2]),
                    destination_port=int(ends[4]),
                )
                found[flow] = SentData(
                    acknowledged_bytes=_number(_ACKNOWLEDGED, line),
                    num_packets=_number(_PACKETS, line),
                    num_sent_again=_number(_SENT_AGAIN, line),
                    num_came_twice=_number(_CAME_TWICE, line),
                )
    return found


def _number(pattern: "re.Pattern[str]", line: str) -> int:
    """Return a counter of a line; one that is 0 is not printed."""
    match = pattern.search(line)
    return int(match[1]) if match else 0
