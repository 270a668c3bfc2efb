"""InfiniBand subnets as `ibnetdiscover` prints them: one record a node, one line a cabled port.

    Switch  41 "S-0002c90000000010"    # "leaf1" base port 0 lid 5 lmc 0
    [1]     "H-0002c90000000020"[1](2c90000000020)    # "node1 mlx5_0" lid 7 4xHDR s=4 w=2 v=4 e=4

Width times speed is the rate, in the nominal figures that ibstat prints (4xHDR is 200 Gbps; SDR, DDR and QDR carry 80 %
of theirs). A link that both of its nodes tell of is one link; that they differ in rate, of which the lower is taken, or
that one of them is silent, is a finding. Switches and routers are named by their description. A channel adapter
described as "node1 mlx5_0" is the NIC `mlx5_0` of the host `node1`, so that a host has all its adapters; any other
description names a host of its own. A description that two nodes share is made unique by GUID.

A node that only its neighbours tell of, as in a file that was cut, is taken from them and noted. SHARP aggregation
nodes are parts of their switches, not hosts, and are left out with their links; so are links from a node to itself.

Source: rdma-core, infiniband-diags/ibnetdiscover.c and man/common/sec_topology-file.rst; lane rates: IBTA roadmap.
Left out: chassis (a switch in one is a switch), LIDs, and the output of --ports and --diff.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import FabricError, Mistake, quote
from fabrictune.foundation.records import Confidence
from fabrictune.topology.draft import DEFAULT_RATE_BPS
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.importers.adjacencies import Adjacency, join_adjacencies, without_loops
from fabrictune.topology.importers.cabling import Cabling, End, the_only
from fabrictune.topology.importers.recognition import begins_with

MAX_FILE_BYTES = 64 * 2**20
MAX_RECORDS = 2**19  # of nodes and of ports together
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

_ID = r'"([SHR]-[0-9a-fA-F]{1,16})"'  # switch, host channel adapter or router, and its GUID
_PORT_NUMBER = r"\[(\d{1,3})\](?:\[ext \d+\])?"
_GUID = r"(?:\([0-9a-fA-F]+\)\s*)?"
_HEAD = re.compile(rf"^(?:Switch|Ca|Rt)\s+\d+\s+{_ID}".encode(), re.MULTILINE)
_RECORD = re.compile(rf'(?:Switch|Ca|Rt)\s+\d+\s+{_ID}\s*(?:#\s*"(.*)".*)?')
_PORT = re.compile(rf"{_PORT_NUMBER}\s*{_GUID}{_ID}{_PORT_NUMBER}\s*{_GUID}(?:#(.*))?")
_REMARK = re.compile(r'[^"]*"([^"]*)"(?:\s+lid\s+\d+\s+(\d+x[A-Z]\w*))?.*')  # the neighbour's description, the rate
_ADAPTER_OF_HOST = re.compile(r"(\S+) (\S*\d\S*)")
_OTHER_LINE = re.compile(r"#.*|\w+=.*|Chassis \d+.*|Non-Chassis Nodes|Hostname:.*|")


def is_ibnetdiscover(path: Path) -> bool:
    """Return whether the beginning of the file has a record of a node."""
    return begins_with(path, _HEAD)


def load_ibnetdiscover(paths: Sequence[Path], *, default_rate_bps: int = DEFAULT_RATE_BPS) -> Fabric:
    """Read the output of one discovery; raises InputError with every mistake in it."""
    path = the_only(paths)
    cabling = Cabling(path.name.split(".")[0])
    subnet = _Subnet(path, cabling)
    names = _Names(subnet.nodes)
    for node in subnet.nodes.values():
        kind = NodeKind.HOST if node.id.startswith("H") else NodeKind.SWITCH
        cabling.add_node(names.of_node[node.id], kind, where=node.where)
    adjacencies = (
        Adjacency(
            here=names.end(port.node_id, port.number),
            there=names.end(port.peer_id, port.peer_number),
            where=port.where,
            rate_bps=port.rate_bps,
        )
        for port in subnet.ports
    )
    join_adjacencies(
        cabling,
        without_loops(cabling, adjacencies),
        reporters={names.of_node[node.id] for node in subnet.nodes.values() if node.has_record},
        default_rate_bps=default_rate_bps,
        confidence=Confidence.MEASURED,
    )
    return cabling.finish()


@dataclass(frozen=True, kw_only=True)
class _Node:
    """A switch, channel adapter or router."""

    id: str  # its kind and GUID: S-0002c90000000010
    description: str
    has_record: bool
    where: str


@dataclass(frozen=True, kw_only=True)
class _Port:
    """One line of a port."""

    node_id: str
    number: str
    peer_id: str
    peer_number: str
    rate_bps: int | None
    where: str


class _Subnet:
    """Nodes and ports in the lines of a file."""

    def __init__(self, path: Path, cabling: Cabling) -> None:
        self.cabling = cabling
        self.nodes: dict[str, _Node] = {}
        self.ports: list[_Port] = []
        self.owner: str | None = None  # of the port lines that follow
        self.is_repeated = False  # the owner's record stood before: a chassis lists its switches twice
        self.peers: dict[str, _Node] = {}  # as their neighbours tell of them
        for number, line in enumerate(read_text(path, max_bytes=MAX_FILE_BYTES).split("\n"), start=1):
            self._read_line(line.strip(), f"{path}:{number}")
            if len(self.nodes) + len(self.ports) > MAX_RECORDS:
                found, next_step = "more nodes and ports than can be used", "give a part of the subnet"
                allowed = f"{MAX_RECORDS} of both"
                raise FabricError(Mistake(where=f"{path}:{number}", found=found, allowed=allowed, next_step=next_step))
        self.nodes |= {peer_id: peer for peer_id, peer in self.peers.items() if peer_id not in self.nodes}
        self._leave_out_aggregation_nodes()
        self._note_missing_records()

    def _read_line(self, line: str, where: str) -> None:
        if record := _RECORD.fullmatch(line):
            self.owner = _node_id(record[1])
            self.is_repeated = self.owner in self.nodes
            node = _Node(id=self.owner, description=record[2] or "", has_record=True, where=where)
            self.nodes.setdefault(self.owner, node)
        elif port := _PORT.fullmatch(line):
            self._read_port(port, where)
        elif not _OTHER_LINE.fullmatch(line):
            self._mistake(where, f"the line {quote(line)}", "records of nodes and lines of their ports")

    def _read_port(self, line: re.Match[str], where: str) -> None:
        if self.owner is None:
            self._mistake(where, "a port before any node", "the record of its node before it")
        elif not self.is_repeated:
            remark = _REMARK.fullmatch(line[4] or "")
            peer_id = _node_id(line[2])
            description = remark[1] if remark else ""
            self.peers.setdefault(peer_id, _Node(id=peer_id, description=description, has_record=False, where=where))
            port = _Port(
                node_id=self.owner,
                number=line[1],
                peer_id=peer_id,
                peer_number=line[3],
                rate_bps=self._rate_bps(remark[2], where) if remark and remark[2] else None,
                where=where,
            )
            self.ports.append(port)

    def _rate_bps(self, text: str, where: str) -> int | None:
        """Return the rate of `4xHDR`; None, and a mistake, where there is no such width or speed."""
        width, _, speed = text.partition("x")
        if width in WIDTHS and speed in LANE_RATE_BPS:
            return int(width) * LANE_RATE_BPS[speed]
        allowed = f"{', '.join(WIDTHS)} lanes of {', '.join(LANE_RATE_BPS)}"
        self._mistake(where, f"the width and speed {quote(text)}", allowed)
        return None

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

    def _mistake(self, where: str, found: str, allowed: str) -> None:
        self.cabling.add_mistakes(Mistake(where=where, found=found, allowed=allowed))


def _node_id(text: str) -> str:
    return text[0] + text[1:].lower()


class _Names:
    """The names that nodes and ports get from descriptions."""

    def __init__(self, nodes: Mapping[str, _Node]) -> None:
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
