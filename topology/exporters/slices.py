"""Links between slices: joints that follow one another on both sides, as one.

`host[0] nic[0]` to `tor[0] down[0]` and `host[1] nic[0]` to `tor[0] down[1]` are `host[0:2] nic[0]` to `tor[0]
down[0:2]`, joined one to one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabrictune.topology.exporters.places import Place

MOVES = ((1, 0, 1, 0), (1, 0, 0, 1), (0, 1, 1, 0), (0, 1, 0, 1))  # on each side the node or its port


@dataclass(frozen=True)
class Joint:
    """One link: node and port of either end, and the name of its kind."""

    places: tuple[Place, ...]  # node, port, node, port
    kind: str


@dataclass(frozen=True)
class JoinedSlices:
    """Joints that follow one another."""

    first: Joint
    moves: tuple[int, ...]  # 1 for each of the four places that moves from joint to joint
    count: int

    def texts(self) -> tuple[str, ...]:
        """Return the slice of each of the four places."""
        return tuple(
            f"{place.name}[{place.number}:{place.number + self.count}]"
            if moves and self.count > 1
            else f"{place.name}[{place.number}]"
            for place, moves in zip(self.first.places, self.moves, strict=True)
        )


def joined_slices(joints: Sequence[Joint]) -> Iterator[JoinedSlices]:
    """Yield the joints, each once, in as long slices as can be had from the first that is left."""
    left = set(joints)
    for joint in joints:
        if joint in left:
            slices = max((_longest(joint, moves, left) for moves in MOVES), key=lambda found: found.count)
            left.difference_update(_moved(joint, slices.moves, steps) for steps in range(slices.count))
            yield slices


def _longest(joint: Joint, moves: tuple[int, ...], left: set[Joint]) -> JoinedSlices:
    count = 1
    while _moved(joint, moves, count) in left:
        count += 1
    return JoinedSlices(joint, moves, count)


def _moved(joint: Joint, moves: tuple[int, ...], steps: int) -> Joint:
    places = (place.moved(steps * move) for place, move in zip(joint.places, moves, strict=True))
    return Joint(tuple(places), joint.kind)
