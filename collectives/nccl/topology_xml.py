"""Topology of a host as NCCL sees it: NUMA nodes, PCI switches, GPUs and network devices, from a dump or by hand.

What matters of it to a network is which device lies near which GPU. NCCL's names for that are kept: PIX under one PCI
switch, PXB through several, PHB through the host bridge of one NUMA node, SYS between NUMA nodes.

A dump has `gpu` and `net` elements; files that cloud providers write by hand often have the PCI tree alone, where a
GPU or a network device is known by its PCI class. Then they are numbered in the order of the file.

A dump may stand among other lines, because NCCL_TOPO_DUMP_FILE=/dev/stdout puts it into the output of the job.

Source: NCCL, src/graph/xml.cc and topo.h; PCI Code and ID Assignment Specification (classes).
Left out: NVLink, C2C and the bandwidth of links.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from fabrictune.foundation.documents import MAX_BYTES, decode_text
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.flows import UNKNOWN
from fabrictune.foundation.foreign_files import read_piped
from fabrictune.foundation.wording import count
from fabrictune.foundation.xml_documents import Element, XmlDocument, parse_xml

SWITCH_CLASS, GPU_CLASSES, NETWORK_CLASS = "0x0604", ("0x0302", "0x0300", "0x0380"), "0x02"
MAX_MISTAKES = 100
_OPENING, _CLOSING = "<system", "</system>"
BPS_PER_MBPS = 10**6


class Distance(IntEnum):
    """Distance between a GPU and a network device, the nearest first."""

    PIX = 0
    PXB = 1
    PHB = 2
    SYS = 3


@dataclass(frozen=True, kw_only=True)
class TopologyDevice:
    """A GPU or a network device of a host."""

    index: int  # NCCL's number of it
    name: str  # mlx5_0; "" where the file names none
    bus_id: str  # "" for what is on no PCI bus
    numa: int
    switches: tuple[str, ...]  # bus ids of the PCI switches above it, the root's first
    rate_bps: int  # UNKNOWN for GPUs, and where the file says nothing
    line: int


@dataclass(frozen=True, kw_only=True)
class HostTopology:
    """A host."""

    num_numa_nodes: int
    switches: tuple[str, ...]  # bus ids
    gpus: tuple[TopologyDevice, ...]
    network_devices: tuple[TopologyDevice, ...]
    notes: tuple[str, ...] = ()  # what was left out of the file

    def distance(self, gpu: TopologyDevice, device: TopologyDevice) -> Distance:
        """Return how far a network device is from a GPU."""
        if gpu.numa != device.numa:
            return Distance.SYS
        shared = sum(1 for switch, other in zip(gpu.switches, device.switches, strict=False) if switch == other)
        if not shared:
            return Distance.PHB
        is_under_one = len(gpu.switches) == len(device.switches) == shared
        return Distance.PIX if is_under_one else Distance.PXB

    def nearest_devices(self, gpu: TopologyDevice) -> tuple[TopologyDevice, ...]:
        """Return the network devices nearest to a GPU, in the order of the file."""
        nearest = min((self.distance(gpu, device) for device in self.network_devices), default=Distance.SYS)
        return tuple(device for device in self.network_devices if self.distance(gpu, device) == nearest)


def read_topology(path: Path) -> HostTopology:
    """Read a topology file, a pipe or, for `-`, standard input; raises InputError with every mistake in it."""
    text, notes = _topology_text(decode_text(read_piped(path, max_bytes=MAX_BYTES), path))
    document = parse_xml(text, path)
    if document.root.tag != "system":
        found = f"an element <{document.root.tag}> at the top"
        raise InputError(Mistake(where=document.where(document.root), found=found, allowed="<system>"))
    reader = _Reader(document)
    reader.read()
    if reader.mistakes:
        raise InputError(*reader.mistakes)
    return HostTopology(
        num_numa_nodes=reader.num_numa_nodes,
        switches=tuple(reader.switches),
        gpus=tuple(reader.gpus),
        network_devices=tuple(reader.network_devices),
        notes=notes,
    )


def _topology_text(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the first topology in a text with its line numbers kept, and notes of what is around it."""
    start, end = text.find(_OPENING), text.find(_CLOSING)
    if start <= 0 or end < start:
        return text, ()
    stop = end + len(_CLOSING)
    before, after = text[:start], text[stop:]
    lines = f"{before}\n{after}".splitlines()
    num_lines = sum(1 for line in lines if line.strip() and not line.startswith("<?xml"))
    notes = [f"{count(num_lines, 'line')} around the topology, left out"] if num_lines else []
    if num_others := after.count(_OPENING):
        notes.append(f"further topologies, left out: {num_others}")
    return "\n" * before.count("\n") + text[start:stop], tuple(notes)


class _Reader:
    """Walks the tree of one host."""

    def __init__(self, document: XmlDocument) -> None:
        self.document = document
        self.num_numa_nodes = 0
        self.switches: list[str] = []
        self.gpus: list[TopologyDevice] = []
        self.network_devices: list[TopologyDevice] = []
        self.mistakes: list[Mistake] = []

    def read(self) -> None:
        for node in self.document.root.each("cpu"):
            self.num_numa_nodes += 1
            numa = self._number(node, "numaid", 0)
            for element in node.children:
                self._read_element(element, numa, ())
            if len(self.mistakes) >= MAX_MISTAKES:
                return

    def _read_element(self, element: Element, numa: int, switches: tuple[str, ...]) -> None:
        if element.tag == "nic":
            self._add_network_devices(element, numa, "", switches)
        if element.tag != "pci":
            return
        bus_id, kind = element.attributes.get("busid", ""), element.attributes.get("class", "").lower()
        inner = {child.tag for child in element.children}
        if not bus_id:
            self._mistake(element, "a <pci> without busid", 'busid="0000:06:00.0"')
        if kind.startswith(SWITCH_CLASS) or "pci" in inner:
            self.switches.append(bus_id)
            for child in element.children:
                self._read_element(child, numa, (*switches, bus_id))
        elif "gpu" in inner or kind.startswith(GPU_CLASSES):
            gpu = next(element.each("gpu"), element)
            index = self._number(gpu, "dev", len(self.gpus))
            self.gpus.append(_device(gpu, index, "", bus_id, numa, switches))
        elif "nic" in inner:
            for nic in element.each("nic"):
                self._add_network_devices(nic, numa, bus_id, switches)
        elif kind.startswith(NETWORK_CLASS):
            index = len(self.network_devices)
            self.network_devices.append(_device(element, index, "", bus_id, numa, switches))

    def _add_network_devices(self, nic: Element, numa: int, bus_id: str, switches: tuple[str, ...]) -> None:
        for net in nic.each("net"):
            index = self._number(net, "dev", len(self.network_devices))
            rate_mbps = self._number(net, "speed", UNKNOWN)
            rate_bps = UNKNOWN if rate_mbps == UNKNOWN else rate_mbps * BPS_PER_MBPS
            name = net.attributes.get("name", "")
            self.network_devices.append(_device(net, index, name, bus_id, numa, switches, rate_bps))

    def _number(self, element: Element, name: str, otherwise: int) -> int:
        text = element.attributes.get(name, str(otherwise))
        if not (text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= 9):
            self._mistake(element, f"{name} {text[:40]!r}", "a whole number")
            return otherwise
        return int(text)

    def _mistake(self, element: Element, found: str, allowed: str) -> None:
        self.mistakes.append(Mistake(where=self.document.where(element), found=found, allowed=allowed))


def _device(
    element: Element, index: int, name: str, bus_id: str, numa: int, switches: tuple[str, ...], rate_bps: int = UNKNOWN
) -> TopologyDevice:
    return TopologyDevice(
        index=index, name=name, bus_id=bus_id, numa=numa, switches=switches, rate_bps=rate_bps, line=element.line
    )


def affinity(topology: HostTopology) -> Iterator[tuple[TopologyDevice, TopologyDevice, Distance]]:
    """Yield every GPU with every network device and how far they are from each other."""
    for gpu in topology.gpus:
        for device in topology.network_devices:
            yield gpu, device, topology.distance(gpu, device)
