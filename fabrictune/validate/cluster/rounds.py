"""Which flows are measured at once: alone, in rounds of concurrent pairs, and in bisections.

Alone, each host sends to the next, and several times to one that is half of all hosts away, each time from another
source port: there a slow link between switches is met, and no collision explains it. In a round every host sends to one
and receives from another, on all rails: host i to host i + r for round r, so that N - 1 rounds have every ordered pair
once. A bisection pairs host i with i xor 2^k both ways: the lowest k stay within a leaf, the highest cross the whole
fabric, and each level of it is asked for all that it has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabrictune.validate.cluster.nics import NicList
from fabrictune.validate.cluster.rate_model import Flow


@dataclass(frozen=True, kw_only=True)
class Round:
    """Flows that run at once."""

    part: str
    flows: Sequence[Flow]


def plan_rounds(nics: NicList, num_rounds: int, num_paths: int) -> Iterator[Round]:
    """Yield all rounds that have flows; `num_rounds` of those of pairs, evenly spread, 0 for all.

    `num_paths` is how often each host sends alone to the one that is half of all away.
    """
    count = len(nics.nics)
    for index in range(count):
        for flow in _flows(nics, [(index, (index + 1) % count)]):
            yield Round(part="alone", flows=[flow])
    for index in range(count):
        for flow in _flows(nics, [(index, (index + count // 2) % count)]) if count > 2 else ():
            yield from [Round(part="alone, across", flows=[flow])] * num_paths
    for shift in _spread(count - 1, num_rounds):
        flows = _flows(nics, [(index, (index + shift) % count) for index in range(count)])
        yield from _round(f"pairs at distance {shift}", flows)
    bit = 1
    while count > 2 and bit < count:
        flows = _flows(nics, [(index, index ^ bit) for index in range(count) if index ^ bit < count])
        yield from _round(f"bisection by {bit}", flows)
        bit *= 2


def _round(part: str, flows: Sequence[Flow]) -> Iterator[Round]:
    if flows:
        yield Round(part=part, flows=flows)


def _flows(nics: NicList, pairs: Sequence[tuple[int, int]]) -> list[Flow]:
    """Return the flows between pairs of hosts on every rail that both have."""
    nodes = list(nics.nics)
    ends = (
        (nics.on_rail(nodes[source], rail), nics.on_rail(nodes[destination], rail))
        for source, destination in pairs
        for rail in nics.rails
    )
    return [(near, far) for near, far in ends if near and far]


def _spread(largest: int, number: int) -> Sequence[int]:
    """Return the shifts from 1 to `largest`, or so many of them."""
    if not number or number >= largest:
        return range(1, largest + 1)
    return sorted({1 + round(place * (largest - 1) / max(1, number - 1)) for place in range(number)})
