"""Graphs that NCCL searched on a host: GPUs of each channel in their order, and network devices.

From NCCL_GRAPH_DUMP_FILE. A channel that leaves the host begins and ends with a network device: it enters through the
first and leaves through the last. With the order of the hosts this gives the connections between them before anything
has run: `ring_flows`.

Source: NCCL, src/graph/search.cc (ncclTopoGetXmlFromGraph) and src/include/graph.h (patterns).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.flows import Endpoint, Flow, ObservedFlows, collect_flows
from fabrictune.foundation.xml_documents import Element, XmlDocument, load_xml

PATTERNS: Mapping[int, str] = {
    1: "balanced tree",
    2: "split tree",
    3: "tree",
    4: "ring",
    5: "NVLS",
    6: "CollNet direct",
}
RING = "ring"
MAX_MISTAKES = 100
MAX_NUMBER_DIGITS = 9


@dataclass(frozen=True, kw_only=True)
class GraphChannel:
    """One channel on one host."""

    gpus: tuple[int, ...]  # CUDA devices in order
    devices: tuple[int, ...]  # network devices: in, out; empty for a graph within the host
    line: int


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Graph of one algorithm."""

    id: int
    pattern: str
    may_cross_rails: bool
    speed_inside: float  # GB/s of a channel
    speed_between: float
    channels: tuple[GraphChannel, ...]


def read_graphs(path: Path) -> tuple[Graph, ...]:
    """Read a graph file; raises InputError with every mistake in it."""
    document = load_xml(path)
    if document.root.tag != "graphs":
        found = f"an element <{document.root.tag}> at the top"
        raise InputError(Mistake(where=document.where(document.root), found=found, allowed="<graphs>"))
    reader = _Reader(document)
    graphs = tuple(reader.graph(element) for element in document.root.each("graph") if not reader.is_full)
    if reader.mistakes:
        raise InputError(*reader.mistakes)
    return graphs


def ring_flows(
    graphs: Sequence[Graph], hosts: Sequence[str], *, qps_per_connection: int = 1, origin: str = ""
) -> ObservedFlows:
    """Return the flows of the ring graphs over hosts that all have these graphs, each host to the next and round.

    A graph knows network devices by their numbers: number 3 is the device `net3` of the flows.
    """
    rows: list[Flow] = []
    for graph in graphs:
        if graph.pattern == RING and len(hosts) > 1:
            for number, channel in enumerate(graph.channels):
                where = f"{origin}:{channel.line}: ring channel {number}"
                rows.extend(flow for flow in _around(channel, hosts, where) for _ in range(qps_per_connection))
    return collect_flows(rows, [] if rows else ["no ring of these graphs leaves its host"])


def _around(channel: GraphChannel, hosts: Sequence[str], where: str) -> Iterator[Flow]:
    """Yield the channel's step from each host to the next."""
    if channel.devices:
        enter, leave = f"net{channel.devices[0]}", f"net{channel.devices[-1]}"
        for host, next_host in zip(hosts, [*hosts[1:], hosts[0]], strict=True):
            source, destination = Endpoint(host=host, device=leave), Endpoint(host=next_host, device=enter)
            yield Flow(source=source, destination=destination, origin=where)


class _Reader:
    """Reads the elements of one document."""

    def __init__(self, document: XmlDocument) -> None:
        self.document = document
        self.mistakes: list[Mistake] = []

    @property
    def is_full(self) -> bool:
        return len(self.mistakes) >= MAX_MISTAKES

    def graph(self, element: Element) -> Graph:
        number = self._number(element, "pattern")
        if number not in PATTERNS and "pattern" in element.attributes:
            allowed = ", ".join(f"{known} ({name})" for known, name in PATTERNS.items())
            self._mistake(element, f"pattern {number}", allowed)
        return Graph(
            id=self._number(element, "id"),
            pattern=PATTERNS.get(number, ""),
            may_cross_rails=element.attributes.get("crossnic", "0") != "0",
            speed_inside=self._speed(element, "speedintra"),
            speed_between=self._speed(element, "speedinter"),
            channels=tuple(self._channel(channel) for channel in element.each("channel")),
        )

    def _channel(self, element: Element) -> GraphChannel:
        return GraphChannel(
            gpus=tuple(self._number(gpu, "dev") for gpu in element.each("gpu")),
            devices=tuple(self._number(net, "dev") for net in element.each("net")),
            line=element.line,
        )

    def _number(self, element: Element, name: str) -> int:
        text = element.attributes.get(name, "")
        if not (text.isdecimal() and text.isascii() and len(text) <= MAX_NUMBER_DIGITS):
            self._mistake(element, f"{name} {text[:40]!r}" if text else f"no {name}", "a whole number")
            return 0
        return int(text)

    def _speed(self, element: Element, name: str) -> float:
        text = element.attributes.get(name, "0")
        whole, _, rest = text.partition(".")
        if not (whole + rest).isdecimal() or not text.isascii() or len(text) > 2 * MAX_NUMBER_DIGITS:
            self._mistake(element, f"{name} {text[:40]!r}", "a number")
            return 0.0
        return float(text)

    def _mistake(self, element: Element, found: str, allowed: str) -> None:
        self.mistakes.append(Mistake(where=self.document.where(element), found=found, allowed=allowed))
