"""Counters of all nodes as one snapshot, and where each device is: its rail, and the switch port at its other end.

Counters are those of `rdma counters` (files of the kernel, `ethtool -S`, `rdma statistic`); of a SONiC switch the PFC
frames of `show pfc counters`. RDMA devices and interfaces keep their own names, and share the place of their interface.

Source: sonic-utilities, scripts/pfcstat.
Left out: SONiC's queue and drop counters, whose tables differ by release.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.fleet.collect.node_reading import NodeReading, Section
from fabrictune.fleet.facts.fact import FleetFacts, natural
from fabrictune.fleet.facts.gather import gather_facts
from fabrictune.rdma_bench.counters.snapshots import Snapshot, merge_readings
from fabrictune.rdma_bench.counters.text_forms import read_lines

PFC = "show pfc counters"
TEXTS = ("ethtool -S ", "rdma statistic show link")
_COUNTER_FILE = re.compile(r"/sys/class/(infiniband|net)/.*/(counters|hw_counters|statistics)/[^/]+")
_PFC_TITLE = re.compile(r"\s*Port (Rx|Tx)((?:\s+PFC\d)+)\s*")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a device is."""

    rail: int | None = None
    other_end: str = ""  # `leaf1 Ethernet8`


def fleet_snapshot(readings: Sequence[NodeReading]) -> Snapshot:
    """Return the counters of all nodes, devices named `node/device`; raises InputError where there is none."""
    parts = [(reading.name, read_lines(_lines(reading), Path(reading.name))) for reading in readings]
    return merge_readings(parts, "the nodes")


def places_of(readings: Sequence[NodeReading]) -> Mapping[str, Place]:
    """Return the place of each device by its name in the snapshot."""
    facts = gather_facts(readings)
    interfaces = {(fact.node, fact.device) for fact in facts.named("rdma.netdev")}
    rails: dict[tuple[str, str], int] = {}
    for node in {node for node, _ in interfaces}:
        own = sorted((device for owner, device in interfaces if owner == node), key=natural)
        rails |= {(node, device): rail for rail, device in enumerate(own)}
    places: dict[str, Place] = {}
    for link in facts.links:
        for near, far in ((link.host, link.switch), (link.switch, link.host)):
            places["/".join(near)] = Place(rail=rails.get(link.host), other_end=" ".join(far))
    for name, interface in _rdma_names(readings, facts):
        known = places.get(interface, Place(rail=rails.get((interface.split("/")[0], interface.split("/")[1]))))
        places[name] = places[interface] = known
    return places


def _lines(reading: NodeReading) -> Iterator[str]:
    for section in reading.sections:
        if section.kind == "file" and _COUNTER_FILE.fullmatch(section.name) and section.lines:
            yield f"{section.name}: {section.lines[0].strip()}"
        elif section.kind == "command" and section.name.startswith(TEXTS):
            yield f"# {section.name}"
            yield from section.lines
        elif section.name == PFC:
            yield from _pfc_lines(section)


def _pfc_lines(section: Section) -> Iterator[str]:
    """Yield a table of PFC frames as the counters of each port."""
    direction, priorities = "", list[str]()
    for line in section.lines:
        words = line.replace(",", "").split()
        if title := _PFC_TITLE.fullmatch(line):
            direction, priorities = title[1].lower(), title[2].replace("PFC", "").split()
        elif direction and len(words) == len(priorities) + 1 and not words[0].startswith("-"):
            yield f"# ethtool -S {words[0]}"
            yield from (
                f"{direction}_prio{priority}_pause: {count}"
                for priority, count in zip(priorities, words[1:], strict=True)
                if count.isdecimal()
            )


def _rdma_names(readings: Sequence[NodeReading], facts: FleetFacts) -> Iterator[tuple[str, str]]:
    """Yield the names that RDMA devices have in the snapshot, each with that of its interface."""
    for fact in facts.named("rdma.netdev"):
        match = re.search(r"/infiniband/([^/]+)/", fact.where)
        if match:
            yield f"{fact.node}/{match[1]}/1", f"{fact.node}/{fact.device}"
