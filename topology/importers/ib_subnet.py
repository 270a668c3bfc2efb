"""InfiniBand subnets as nodes and ports, and the fabric that follows from them, whichever tool has listed them.

Switches and routers are named by their description. A channel adapter described as "node1 mlx5_0" is the NIC `mlx5_0`
of the host `node1`, so that a host has all its adapters; any other description names a host of its own. A description
that two nodes share is made unique by GUID.

A node that only its neighbours tell of, as in a file that was cut, is taken from them and noted. SHARP aggregation
nodes are parts of their switches, not hosts, and are left out with their links; so are links from a node to itself.

Source: rdma-core, infiniband-diags; lane rates: IBTA roadmap.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import FabricError, Mistake, quote
from fabrictune.foundation.records import Confidence
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.importers.adjacencies import Adjacency, join_adjacencies, without_loops
from fabrictune.topology.importers.cabling import Cabling, End

MAX_FILE_BYTES = 64 * 2**20
MAX_RECORDS = 2**19  # of nodes and of ports together
MAX_LINE = 1000  # characters of a line that are read
LANE_RATE_BPS: Mapping[str, int] = {
    "SDR": 2_500_000_000,
    "DDR": 5_000_000_000,
    "QDR": 10_000_000_000,
    "FDR10": 10_000_000_000,
    "FDR": 14_000_000_000,
    "EDR": 25_000_000_000,
    "HDR": 50_000_000_000,
    "NDR": 100_000_000_000,
    "XDR": 200_000_000_000,
}
WIDTHS = ("1", "2", "4", "8", "12")
AGGREGATION_NODE = "Aggregation Node"  # in the description of every SHARP aggregation node

_ADAPTER_OF_HOST = re.compile(r"(\S+) (\S*\d\S*)")


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file, each with its place; of one that is too long, its beginning. Raises InputError."""
    for number, line in enumerate(io.StringIO(read_text(path, max_bytes=MAX_FILE_BYTES)), start=1):
        yield line[:MAX_LINE].strip(), f"{path}:{number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class IbNode:
    """A switch, channel adapter or router."""

    id: str  # its kind and GUID: S-0002c90000000010
    description: str
    has_record: bool
    where: str


@dataclass(frozen=True, kw_only=True, slots=True)
class IbPort:
    """One cabled port."""

    node_id: str
    number: str
    peer_id: str
    peer_number: str
    rate_bps: int | None
    where: str


@dataclass(kw_only=True)
class IbSubnet:
    """Nodes and ports that a file lists."""

    cabling: Cabling
    nodes: dict[str, IbNode] = field(default_factory=dict)
    ports: list[IbPort] = field(default_factory=list)

    def check_size(self, where: str, *, num_more: int = 0) -> None:
        """Raise FabricError for more nodes and ports than can be used, with `num_more` that are yet to be added."""
        if len(self.nodes) + len(self.ports) + num_more > MAX_RECORDS:
            found, next_step = "more nodes and ports than can be used", "give a part of the subnet"
            raise FabricError(Mistake(where=where, found=found, allowed=f"{MAX_RECORDS} of both", next_step=next_step))

    def rate_bps(self, width: str, speed: str, where: str) -> int | None:
        """Return the rate of `4` lanes of `HDR`; None, and a mistake, where there is no such width or speed."""
        if width in WIDTHS and speed in LANE_RATE_BPS:
            return int(width) * LANE_RATE_BPS[speed]
        allowed = f"{', '.join(WIDTHS)} lanes of {', '.join(LANE_RATE_BPS)}"
        found = f"the width and speed {quote(f'{width}x{speed}')}"
        self.cabling.add_mistakes(Mistake(where=where, found=found, allowed=allowed))
        return None

    def fabric(self, *, default_rate_bps: int) -> Fabric:
        """Return the fabric; raises FabricError with every mistake."""
        self._leave_out_aggregation_nodes()
        self._note_missing_records()
        names = _Names(self.nodes)
        for node in self.nodes.values():
            kind = NodeKind.HOST if node.id.startswith("H") else NodeKind.SWITCH
            self.cabling.add_node(names.of_node[node.id], kind, where=node.where)
        adjacencies = (
            Adjacency(
                here=names.end(port.node_id, port.number),
                there=names.end(port.peer_id, port.peer_number),
                where=port.where,
                rate_bps=port.rate_bps,
            )
            for port in self._taken_ports()
        )
        join_adjacencies(
            self.cabling,
            without_loops(self.cabling, adjacencies),
            reporters={names.of_node[node.id] for node in self.nodes.values() if node.has_record},
            default_rate_bps=default_rate_bps,
            confidence=Confidence.MEASURED,
        )
        return self.cabling.finish()

    def _taken_ports(self) -> Iterator[IbPort]:
        """Yield the ports, and forget each: a million take more than the fabric."""
        self.ports.reverse()
        while self.ports:
            yield self.ports.pop()

    def _leave_out_aggregation_nodes(self) -> None:
        """Forget nodes that are parts of a switch, and their links."""
        parts = {node.id for node in self.nodes.values() if AGGREGATION_NODE in node.description}
        if parts:
            self.cabling.notes.append(f"SHARP aggregation nodes, left out with their links: {len(parts)}")
        self.nodes = {node_id: node for node_id, node in self.nodes.items() if node_id not in parts}
        self.ports = [port for port in self.ports if parts.isdisjoint((port.node_id, port.peer_id))]

    def _note_missing_records(self) -> None:
        missing = [node for node in self.nodes.values() if not node.has_record]
        if missing:
            first = f"{missing[0].id} at {missing[0].where}"
            self.cabling.notes.append(f"nodes that only their neighbours list: {len(missing)} (first {first})")


class _Names:
    """The names that nodes and ports get from descriptions."""

    def __init__(self, nodes: Mapping[str, IbNode]) -> None:
        num_described = Counter(node.description for node in nodes.values())
        self.of_node: dict[str, str] = {}
        self.adapter_of: dict[str, str] = {}
        for node in nodes.values():
            is_shared = num_described[node.description] > 1 or not node.description
            adapter = _ADAPTER_OF_HOST.fullmatch(node.description)
            if is_shared:
                self.of_node[node.id] = f"{node.description} {node.id}".strip()
            elif adapter and node.id.startswith("H") and adapter[1] not in num_described:
                self.of_node[node.id], self.adapter_of[node.id] = adapter[1], adapter[2]
            else:
                self.of_node[node.id] = node.description

    def end(self, node_id: str, port_number: str) -> End:
        """Return the node and interface of a port: the adapter and port on a host, a number elsewhere."""
        adapter = self.adapter_of.get(node_id)
        return self.of_node[node_id], f"{adapter}/{port_number}" if adapter else port_number
