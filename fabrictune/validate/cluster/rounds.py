"""Which flows are measured at once: alone, in rounds of concurrent pairs, and in bisections.

In a round every host sends to one host and receives from another, on all rails: host i to host i + r for round r, so
that N - 1 rounds have every ordered pair once. A bisection pairs host i with i xor 2^k both ways: the lowest k stay
within a leaf, the highest cross the whole fabric, and each level of it is asked for all that it has.
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


def plan_rounds(nics: NicList, num_rounds: int) -> Iterator[Round]:
    """Yield all rounds; `num_rounds` of those of pairs, evenly spread, 0 for all."""
    nodes, rails = list(nics.nics), range(nics.num_rails)
    count = len(nodes)
    for index in range(count):
        for rail in rails:
            flows = [_flow(nics, nodes[index], nodes[(index + 1) % count], rail)]
            yield Round(part="alone", flows=flows)
    for shift in _spread(count - 1, num_rounds):
        flows = [
            _flow(nics, nodes[index], nodes[(index + shift) % count], rail) for index in range(count) for rail in rails
        ]
        yield Round(part=f"pairs at distance {shift}", flows=flows)
    bit = 1
    while count > 2 and bit < count:
        flows = [
            _flow(nics, nodes[index], nodes[index ^ bit], rail)
            for index in range(count)
            for rail in rails
            if index ^ bit < count
        ]
        yield Round(part=f"bisection by {bit}", flows=flows)
        bit *= 2


def _flow(nics: NicList, source: str, destination: str, rail: int) -> Flow:
    return nics.nics[source][rail], nics.nics[destination][rail]


def _spread(largest: int, number: int) -> Sequence[int]:
    """Return the shifts from 1 to `largest`, or so many of them."""
    if not number or number >= largest:
        return range(1, largest + 1)
    return sorted({1 + round(place * (largest - 1) / max(1, number - 1)) for place in range(number)})
