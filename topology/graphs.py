"""Fabrics as networkx graphs, as GraphML, and as positions for a drawing.

A node of the graph is a node of the fabric, an edge one link with the columns of its two ports, `from_` and `to_`. What
`to_networkx` makes, `from_networkx` turns back without loss. Of a graph made elsewhere it needs each node's `kind`, and
fills in the rest: names, order, a NIC for each end on a host, and the importers' default rate and cable. networkx stays
out of every hot path.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.checks import CheckReport
from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import FabricError, InputError, Mistake
from fabrictune.foundation.output_files import replaced_file
from fabrictune.foundation.units import CABLE_DELAY_PS_PER_MM
from fabrictune.topology.assumed_links import assumed_notes
from fabrictune.topology.draft import DEFAULT_CABLE_MM, DEFAULT_RATE_BPS, FIRST_IPV4
from fabrictune.topology.fabric import NO_GROUP, NO_NIC, NO_RAIL, UNKNOWN_TIER, Fabric, NodeKind
from fabrictune.topology.files import REMARKS, read_remarks, remarks

if TYPE_CHECKING:
    import networkx as nx

MAX_GRAPHML_BYTES = 24 * 2**20  # of a fabric of 27,000 GPUs; networkx needs 30 times as much
KINDS: Mapping[str, NodeKind] = {kind.name.lower(): kind for kind in NodeKind}

GraphRow = dict[str, Any]


def to_networkx(fabric: Fabric) -> "nx.MultiGraph[str]":
    """Return the fabric as an undirected multigraph."""
    import networkx as nx

    graph: nx.MultiGraph[str] = nx.MultiGraph(name=fabric.name)
    graph.graph |= {key: json.dumps(values) for key, values in remarks(fabric).items()}
    for node, name in enumerate(fabric.node_name_N):
        graph.add_node(
            name,
            index=node,
            kind=NodeKind(fabric.node_kind_N[node]).name.lower(),
            tier=int(fabric.node_tier_N[node]),
            group=int(fabric.node_group_N[node]),
        )
    for port in np.nonzero(fabric.port_peer_P > np.arange(fabric.num_ports))[0]:
        peer = int(fabric.port_peer_P[port])
        data: GraphRow = {"rate_bps": int(fabric.port_rate_bps_P[port])}
        for end, row in (("from", int(port)), ("to", peer)):
            data |= {f"{end}_{key}": value for key, value in _end_of(fabric, row).items()}
        graph.add_edge(data["from_node"], data["to_node"], **data)
    return graph


def from_networkx(graph: "nx.Graph[Any]") -> Fabric:
    """Return the fabric of a graph; raises FabricError with every mistake of its nodes, or else of its links."""
    mistakes: list[Mistake] = []
    nodes = _in_order(_read_nodes(graph, mistakes), "index", "nodes", mistakes)
    _raise_any(mistakes)
    is_host = {node["name"]: node["kind"] == NodeKind.HOST for node in nodes}
    ports = _in_order(_read_ends(graph, is_host, mistakes), "row", "link ends", mistakes)
    _raise_any(mistakes)
    nics = _read_nics(ports, mistakes)
    _raise_any(mistakes)
    notes, checked = _read_remarks(graph)
    index = {node["name"]: place for place, node in enumerate(nodes)}
    return Fabric(
        name=str(graph.graph.get("name") or "graph"),
        node_name_N=tuple(node["name"] for node in nodes),
        node_kind_N=_column(nodes, "kind"),
        node_tier_N=_column(nodes, "tier"),
        node_group_N=_column(nodes, "group"),
        port_name_P=tuple(port["port"] for port in ports),
        port_node_P=np.array([index[port["node"]] for port in ports], np.int64),
        port_peer_P=_column(ports, "peer"),
        port_rate_bps_P=_column(ports, "rate_bps"),
        port_delay_ps_P=_column(ports, "delay_ps"),
        port_nic_P=_column(ports, "nic"),
        nic_host_C=np.array([index[nic["node"]] for nic in nics], np.int64),
        nic_rail_C=_column(nics, "rail"),
        nic_ipv4_C=_column(nics, "ipv4"),
        notes=(*notes, *_defaults(graph)),
        findings=checked.findings,
        checks=checked.checks,
    )


def write_graphml(fabric: Fabric, path: Path) -> None:
    """Write the fabric as GraphML, which `read_graphml` and graph editors read."""
    import networkx as nx

    text = "\n".join(nx.generate_graphml(to_networkx(fabric))) + "\n"
    with replaced_file(path) as half:
        half.write_text(text, encoding="utf-8")


def is_graphml(path: Path) -> bool:
    """Return whether the file's name is that of a GraphML file."""
    return path.suffix == ".graphml"


def read_graphml(path: Path) -> Fabric:
    """Read a fabric from GraphML; raises InputError."""
    import defusedxml.ElementTree
    import networkx as nx

    text = read_text(path, max_bytes=MAX_GRAPHML_BYTES)
    try:
        defusedxml.ElementTree.fromstring(text)  # refuses entities and external references
        graph = nx.parse_graphml(text, force_multigraph=True)
    except Exception as error:  # the reader lets out whatever its parsing meets
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(Mistake(where=str(path), found=f"no GraphML that can be read: {message[:200]}")) from None
    return from_networkx(graph)


def layered_positions(fabric: Fabric) -> FloatArray:
    """Return a place for every node, shape (N, 2): tiers one above the other, each spread from 0 to 1.

    Switches of unknown tier stand one above the highest tier that is known.
    """
    is_unknown_N = (fabric.node_tier_N == UNKNOWN_TIER) & (fabric.node_kind_N == NodeKind.SWITCH)
    tier_N = np.where(is_unknown_N, fabric.node_tier_N.max() + 1, np.maximum(fabric.node_tier_N, 0))
    position_N2 = np.stack([np.zeros(fabric.num_nodes), tier_N.astype(np.float64)], axis=1)
    for tier in np.unique(tier_N):
        row = np.nonzero(tier_N == tier)[0]
        position_N2[row, 0] = (np.arange(len(row)) + 0.5) / len(row)
    return position_N2


def _end_of(fabric: Fabric, port: int) -> GraphRow:
    nic = int(fabric.port_nic_P[port])
    end: GraphRow = {
        "node": fabric.node_name_N[fabric.port_node_P[port]],
        "port": fabric.port_name_P[port],
        "row": port,
        "delay_ps": int(fabric.port_delay_ps_P[port]),
    }
    if nic != NO_NIC:
        end |= {"nic": nic, "rail": int(fabric.nic_rail_C[nic]), "ipv4": int(fabric.nic_ipv4_C[nic])}
    return end


def _read_remarks(graph: "nx.Graph[Any]") -> tuple[tuple[str, ...], CheckReport]:
    """Return the notes and checks that `to_networkx` kept; raises FabricError."""
    try:
        return read_remarks({key: json.loads(graph.graph[key]) for key in REMARKS if key in graph.graph})
    except (TypeError, ValueError, RecursionError) as error:
        found = f"remarks that cannot be read: {str(error)[:100]}"
        raise FabricError(Mistake(where="graph", found=found, allowed="those that fabrictune wrote")) from None


def _defaults(graph: "nx.Graph[Any]") -> Iterator[str]:
    """Yield a note of the links whose rate, and of those whose delay, the graph does not give."""
    links = [data for _, _, data in graph.edges(data=True)]
    num_rates = sum("rate_bps" not in link for link in links)
    num_cables = sum("from_delay_ps" not in link or "to_delay_ps" not in link for link in links)
    yield from assumed_notes(num_rates, DEFAULT_RATE_BPS, num_cables)


def _read_nodes(graph: "nx.Graph[Any]", mistakes: list[Mistake]) -> Iterator[GraphRow]:
    for place, (name, data) in enumerate(graph.nodes(data=True)):
        where = f"node {str(name)!r}"
        kind = data.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            mistakes.append(Mistake(where=where, found=f"the kind {kind!r}", allowed=" or ".join(KINDS)))
            continue
        whole = _WholeNumbers(data, where, mistakes)
        yield {
            "name": str(name),
            "kind": KINDS[kind],
            "index": whole.get("index", place),
            "tier": whole.get("tier", UNKNOWN_TIER),
            "group": whole.get("group", NO_GROUP),
        }


def _read_ends(graph: "nx.Graph[Any]", is_host: Mapping[str, bool], mistakes: list[Mistake]) -> Iterator[GraphRow]:
    num_nics = 0
    for number, (first, second, data) in enumerate(graph.edges(data=True)):
        where = f"link {first} - {second}"
        whole = _WholeNumbers(data, where, mistakes)
        rows = (whole.get("from_row", 2 * number), whole.get("to_row", 2 * number + 1))
        rate_bps = whole.get("rate_bps", DEFAULT_RATE_BPS)
        for side, (end, node) in enumerate((("from", first), ("to", second))):
            name = str(data.get(f"{end}_node", node))
            if name not in is_host:
                mistakes.append(Mistake(where=where, found=f"{end}_node {name!r}", allowed="a node of the graph"))
                continue
            nic = whole.get(f"{end}_nic", num_nics if is_host[name] else NO_NIC)
            num_nics += is_host[name]
            yield {
                "node": name,
                "port": str(data.get(f"{end}_port", f"port{rows[side]}")),
                "row": rows[side],
                "peer": rows[1 - side],
                "rate_bps": rate_bps,
                "delay_ps": whole.get(f"{end}_delay_ps", DEFAULT_CABLE_MM * CABLE_DELAY_PS_PER_MM),
                "nic": nic,
                "rail": whole.get(f"{end}_rail", NO_RAIL),
                "ipv4": whole.get(f"{end}_ipv4", FIRST_IPV4 + nic),
            }


def _read_nics(ports: Sequence[GraphRow], mistakes: list[Mistake]) -> list[GraphRow]:
    """Return a row for each NIC, that of its first port."""
    nics: dict[int, GraphRow] = {}
    for port in ports:
        if port["nic"] != NO_NIC:
            nics.setdefault(port["nic"], port)
    return _in_order(nics.values(), "nic", "NICs", mistakes)


def _in_order(rows: Any, key: str, what: str, mistakes: list[Mistake]) -> list[GraphRow]:
    """Return rows by their number, which must count from 0 without gap."""
    ordered = sorted(rows, key=lambda row: int(row[key]))
    if not mistakes and [row[key] for row in ordered] != list(range(len(ordered))):
        mistakes.append(Mistake(where=what, found=f"{key} numbers with gaps or repeats", allowed="each from 0 once"))
    return ordered


class _WholeNumbers:
    """Reads whole numbers from the data of a node or link; every other value is a mistake."""

    def __init__(self, data: Mapping[str, Any], where: str, mistakes: list[Mistake]) -> None:
        self.data = data
        self.where = where
        self.mistakes = mistakes

    def get(self, key: str, default: int) -> int:
        value = self.data.get(key, default)
        if type(value) is int and abs(value) < 2**62:
            return value
        self.mistakes.append(
            Mistake(where=self.where, found=f"{key} {str(value)[:40]!r}", allowed="a whole number of 62 bits")
        )
        return default


def _column(rows: Sequence[GraphRow], key: str) -> IntArray:
    return np.array([row[key] for row in rows], np.int64)


def _raise_any(mistakes: Sequence[Mistake]) -> None:
    if mistakes:
        raise FabricError(*mistakes)
