"""Cabling: nodes and cables as files name them, before they are a Fabric.

Importers fill it and go on after a mistake, so that one run reports every mistake of a file, each with its line. What
is left out or filled in is kept as notes for the reader. A switch whose tier no file gives gets its distance in links
to the nearest host, which is its tier in every CLOS fabric; one without hosts that is called a leaf, as border leaves
are, is a leaf.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from fabrictune.foundation.checks import CheckReport
from fabrictune.foundation.errors import FabricError, InputError, Mistake, nearest_name
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import NO_RAIL, UNKNOWN_TIER, Fabric, NodeKind
from fabrictune.topology.importers.roles import named, tier_of_name

MAX_MISTAKES = 100  # shown of one topology
MAX_GUESSES = 1_000  # names among which the nearest is sought

End = tuple[str, str]  # node, interface


def the_only(paths: Sequence[Path]) -> Path:
    """Return the one file of a format in which one file is a whole fabric; raises InputError for more."""
    if len(paths) != 1:
        raise InputError(Mistake(where=str(paths[1]), found="a second file", allowed="one file of this format"))
    return paths[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class CabledNode:
    """A host or switch."""

    kind: NodeKind
    tier: int
    where: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Cable:
    """A link between two interfaces."""

    ends: tuple[End, End]
    rate_bps: int
    delay_ps: int
    where: str
    rail: int = NO_RAIL  # of the NIC at the end on a host


@dataclass
class Cabling:
    """Nodes and cables read so far."""

    name: str
    nodes: dict[str, CabledNode] = field(default_factory=dict)
    cables: list[Cable] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checked: CheckReport = field(default_factory=CheckReport)

    def add_node(self, name: str, kind: NodeKind, *, where: str, tier: int = UNKNOWN_TIER) -> None:
        """Add a node, unless one of its name is known."""
        self.nodes.setdefault(name, CabledNode(kind=kind, tier=tier, where=where))

    def finish(self) -> Fabric:
        """Return the fabric, once; raises FabricError with every mistake, those of the cables last."""
        self._check_cables()
        if self.mistakes:
            raise FabricError(*self.mistakes)
        tiers = self._tiers()
        draft = FabricDraft(self.name)
        index = {
            name: draft.add_host(name) if node.kind == NodeKind.HOST else draft.add_switch(name, tier=tiers[name])
            for name, node in self.nodes.items()
        }
        for cable in self.cables:
            first, second = cable.ends
            draft.add_link(
                (index[first[0]], first[1]),
                (index[second[0]], second[1]),
                rate_bps=cable.rate_bps,
                delay_ps=cable.delay_ps,
                rail=cable.rail,
            )
        self.cables.clear()  # a million of them take more than the fabric
        return draft.finish(notes=self.notes, checked=self.checked)

    def add_mistakes(self, *mistakes: Mistake) -> None:
        """Note mistakes; raises FabricError at once when there are too many to read."""
        self.mistakes.extend(mistakes)
        if len(self.mistakes) >= MAX_MISTAKES:
            raise FabricError(*self.mistakes)

    def _check_cables(self) -> None:
        used: dict[End, Cable] = {}
        for cable in self.cables:
            for end in cable.ends:
                self._check_end(cable, end, used)
            (first, _), (second, _) = cable.ends
            if first == second:
                found = f"a link from {first!r} to itself"
                self.add_mistakes(Mistake(where=cable.where, found=found, allowed="two different nodes"))

    def _check_end(self, cable: Cable, end: End, used: dict[End, Cable]) -> None:
        node, interface = end
        if node not in self.nodes:
            self.add_mistakes(
                Mistake(
                    where=cable.where,
                    found=f"a link to the node {node!r}, which does not exist",
                    nearest=nearest_name(node, islice(self.nodes, MAX_GUESSES)),
                    next_step="add the node, or correct its name",
                )
            )
        elif end in used:
            self.add_mistakes(
                Mistake(
                    where=cable.where,
                    found=f"the interface {node}:{interface} a second time (first at {used[end].where})",
                    allowed="one link for each interface",
                )
            )
        used.setdefault(end, cable)

    def _tiers(self) -> dict[str, int]:
        """Return each node's tier: the one given, or else its distance from the hosts."""
        neighbours: dict[str, list[str]] = {name: [] for name in self.nodes}
        for cable in self.cables:
            (first, _), (second, _) = cable.ends
            neighbours[first].append(second)
            neighbours[second].append(first)
        tiers = {name: 0 for name, node in self.nodes.items() if node.kind == NodeKind.HOST}
        frontier = list(tiers)
        while frontier:
            reached = _unseen((near for name in frontier for near in neighbours[name]), tiers)
            tiers.update(dict.fromkeys(reached, tiers[frontier[0]] + 1))
            frontier = reached
        given = {name: node.tier for name, node in self.nodes.items() if node.tier != UNKNOWN_TIER}
        leaves = [name for name, tier in tiers.items() if tier > 1 and name not in given and tier_of_name(name) == 1]
        if leaves:
            self.notes.append(f"switches without hosts, taken as leaves by their names: {named(leaves)}")
        return dict.fromkeys(self.nodes, UNKNOWN_TIER) | tiers | dict.fromkeys(leaves, 1) | given


def _unseen(names: Iterable[str], seen: dict[str, int]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name not in seen]
