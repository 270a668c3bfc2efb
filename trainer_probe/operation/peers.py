"""Which node keeps copies of which other node's checkpoints.

Nodes are put in order of ToR set, then of replica, and each takes the one a fixed number of places further on, so that
every node keeps the copies of exactly one other. Of all distances the one is taken with which most nodes have their
copies on another ToR set, and among those most in another replica. Where no ToR set has more than half of the nodes,
none shares one with its copies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Shortcoming = Literal["", "same ToR set", "ToR sets not known", "same replicas", "no other node"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A node: below which ToR switches, and which data-parallel replicas its ranks belong to."""

    node: str
    tor_set: str = ""  # "" where it is not known
    replicas: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Peer:
    """The node that keeps another's copies, and what it lacks."""

    node: str  # "" where there is no other
    shortcoming: Shortcoming = ""


def peers_of(places: Sequence[Place]) -> dict[str, Peer]:
    """Return the peer of each node; each is the peer of one other."""
    order = sorted(places, key=lambda place: (place.tor_set, place.replicas, place.node))
    if len(order) < 2:
        return {place.node: Peer(node="", shortcoming="no other node") for place in order}
    distance = max(range(1, len(order)), key=lambda distance: (*_quality(order, distance), -distance))
    pairs = zip(order, order[distance:] + order[:distance], strict=True)
    return {own.node: Peer(node=other.node, shortcoming=_shortcoming(own, other)) for own, other in pairs}


def peer_of(node: str, places: Sequence[Place]) -> Peer:
    """Return the peer of one node."""
    return peers_of(places)[node]


def _quality(order: Sequence[Place], distance: int) -> tuple[int, int]:
    """Return how many nodes have a peer on another ToR set, and how many in another replica."""
    pairs = list(zip(order, [*order[distance:], *order[:distance]], strict=True))
    return (
        sum(_is_elsewhere(own, other) for own, other in pairs),
        sum(not set(own.replicas) & set(other.replicas) for own, other in pairs),
    )


def _is_elsewhere(own: Place, other: Place) -> bool:
    return own.tor_set != other.tor_set and bool(own.tor_set) and bool(other.tor_set)


def _shortcoming(own: Place, other: Place) -> Shortcoming:
    if not own.tor_set or not other.tor_set:
        return "ToR sets not known"
    if own.tor_set == other.tor_set:
        return "same ToR set"
    return "same replicas" if set(own.replicas) & set(other.replicas) else ""
