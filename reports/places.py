"""Hosts, rails and jobs that a row or a shape of a page is about: what the page's filter chooses among.

They are read off the names in it: of ports and NICs, `host3:nic0`, of nodes, rails and jobs. Names with spaces are not
found, and what they name is never left out.

Shapes: C NICs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
from markupsafe import Markup

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.visible_text import printable
from fabrictune.reports.aggregation import node_rails
from fabrictune.reports.blocks import Cell
from fabrictune.reports.fabric_view import FabricView
from fabrictune.reports.record_view import JOBS, Run
from fabrictune.topology.fabric import NO_RAIL

HOST, RAIL, JOB = "h", "r", "j"
KINDS: Mapping[str, str] = {HOST: "host", RAIL: "rail", JOB: "job"}
MAX_CHOICES = 2_000  # of a kind; what is of others is not filtered
RAIL_NAME = re.compile(r"\brail (\d+)\b")
HINTED = re.compile(r"<(rect|line|path|circle|g)( [^>]*)?><title>([^<]*)</title>")
Place = tuple[str, str]  # kind and name


@dataclass(frozen=True, kw_only=True, eq=False)
class FabricPlaces:
    """What names of one run's fabric stand for."""

    fabric: FabricView
    node_of: Mapping[str, int]
    rail_N: IntArray
    jobs_of_nic: Mapping[int, Sequence[str]]

    @classmethod
    def of(cls, run: Run, fabric: FabricView) -> Self:
        """Return the places of a fabric, and the jobs that use its NICs."""
        nodes = {name: node for node, name in enumerate(fabric.node_name_N)}
        return cls(fabric=fabric, node_of=nodes, rail_N=node_rails(fabric), jobs_of_nic=_jobs_of_nics(run))

    @cached_property
    def jobs_of_node(self) -> dict[int, list[str]]:
        """The jobs that use any NIC of a node."""
        jobs: dict[int, list[str]] = {}
        for nic, names in self.jobs_of_nic.items():
            jobs.setdefault(int(self.fabric.port_node_P[self.fabric.nic_port_C[nic]]), []).extend(names)
        return jobs

    @cached_property
    def jobs(self) -> frozenset[str]:
        """The names of all jobs."""
        return frozenset(job for names in self.jobs_of_nic.values() for job in names)

    def places_of(self, name: str) -> Iterator[Place]:
        """Yield the host, the rail and the jobs of a port, a node or a job; nothing of another name."""
        if name in self.jobs:
            yield JOB, name
        if (port := self.fabric.port_number.get(name)) is not None:
            yield from self._places_of_port(port)
        elif (node := self.node_of.get(name)) is not None:
            yield from self._places_of_node(node)
            yield from ((JOB, job) for job in self.jobs_of_node.get(node, ()))

    def _places_of_port(self, port: int) -> Iterator[Place]:
        nic = int(self.fabric.port_nic_P[port])
        if nic < 0:
            yield from self._places_of_node(int(self.fabric.port_node_P[port]))
            return
        yield HOST, self.fabric.node_name_N[self.fabric.port_node_P[port]]
        if (rail := int(self.fabric.port_rail_P[port])) != NO_RAIL:
            yield RAIL, str(rail)
        yield from ((JOB, job) for job in self.jobs_of_nic.get(nic, ()))

    def _places_of_node(self, node: int) -> Iterator[Place]:
        if self.fabric.is_host_N[node]:
            yield HOST, self.fabric.node_name_N[node]
        if (rail := int(self.rail_N[node])) != NO_RAIL:
            yield RAIL, str(rail)


@dataclass(frozen=True, kw_only=True)
class Places:
    """The places of a page's runs, and those that were found on it so far."""

    fabrics: Sequence[FabricPlaces]
    found: dict[Place, str] = field(default_factory=dict)  # and what stands for each in the page

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Self:
        """Return the places of all runs that have a fabric."""
        return cls(fabrics=[FabricPlaces.of(run, fabric) for run in runs if (fabric := run.fabric) is not None])

    def of_text(self, text: str) -> Markup:
        """Return the attribute of what a text is about; nothing where it names no place."""
        tags = dict.fromkeys(tag for place in self._named(text) if (tag := self._tag(place)))
        return Markup(' data-at="{}"').format(" ".join(tags)) if tags else Markup()

    def of_row(self, row: Sequence[Cell]) -> Markup:
        """Return the attribute of a row; numbers in it name nothing."""
        return self.of_text(" ".join(cell.text for cell in row if cell.sort is None))

    def of_shapes(self, drawing: Markup) -> Markup:
        """Return a drawing in which each shape has such an attribute whose hint names a place."""

        def written(shape: re.Match[str]) -> str:
            name, attributes, hint = shape.groups(default="")
            return f"<{name}{attributes}{self.of_text(Markup(hint).unescape())}><title>{hint}</title>"  # noqa: S704

        return Markup(HINTED.sub(written, drawing)) if self.fabrics else drawing  # noqa: S704 -- as escaped as it was

    def choices(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return each kind of which several places were found, with what stands for each of them, and their names."""
        kinds = {
            name: [(tag, place) for (own, place), tag in self.found.items() if own == kind]
            for kind, name in KINDS.items()
        }
        return [
            (name, [(tag, _shown(name, place)) for tag, place in sorted(places, key=lambda each: _in_order(each[1]))])
            for name, places in kinds.items()
            if len(places) > 1
        ]

    def _named(self, text: str) -> Iterator[Place]:
        """Yield the places that a text names."""
        if not self.fabrics:
            return
        for number in RAIL_NAME.findall(text):
            yield RAIL, number
        for name in text.split():
            for fabric in self.fabrics:
                yield from fabric.places_of(name.rstrip(",;:"))

    def _tag(self, place: Place) -> str:
        """Return what stands for a place, "" beyond the most of its kind."""
        if place not in self.found:
            count = sum(kind == place[0] for kind, _ in self.found)
            if count >= MAX_CHOICES:
                return ""
            self.found[place] = f"{place[0]}{count}"
        return self.found[place]


def _jobs_of_nics(run: Run) -> dict[int, list[str]]:
    """Return the parts of the traffic that each NIC sends or receives; none where there is one kind of traffic."""
    transfers = run.table(JOBS)
    if transfers is None or "part" not in transfers:
        return {}
    jobs: dict[int, list[str]] = {}
    for job in dict.fromkeys(transfers["part"].tolist()):
        is_own = (transfers["part"] == job) & (transfers["qp"] >= 0)
        for nic in np.unique([transfers["source"][is_own], transfers["destination"][is_own]]).tolist():
            jobs.setdefault(nic, []).append(job)
    return jobs


def _shown(kind: str, place: str) -> str:
    """Return a place for people: a rail is a number, the others are names."""
    return f"rail {place}" if kind == KINDS[RAIL] else printable(place)


def _in_order(name: str) -> list[tuple[int, str]]:
    """Return what puts host2 before host10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
