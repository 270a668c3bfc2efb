"""Whose fault low flows are: the NIC that most of them share, where there is one.

While low flows are not explained, the NIC that has the largest share of its flows among them is named, if that is half
of its flows and two of them at least; what is left stands for itself.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LEAST_FRACTION, LEAST_FLOWS = 0.5, 2

Ends = tuple[str, str]  # labels of two NICs


@dataclass(frozen=True, kw_only=True)
class Blame:
    """Low flows, by their numbers, and the NIC that they share; "" where there is none."""

    nic: str
    flows: Sequence[int]
    num_flows_of_nic: int = 0


def blame_nics(ends: Sequence[Ends], is_low: Sequence[bool]) -> Iterator[Blame]:
    """Yield who is to blame for the low ones of flows."""
    of_nic: dict[str, list[int]] = defaultdict(list)
    for number, pair in enumerate(ends):
        for nic in pair:
            of_nic[nic].append(number)
    left = {number for number, low in enumerate(is_low) if low}
    while left:
        share = {nic: len(left.intersection(own)) / len(own) for nic, own in of_nic.items()}
        worst = max(share, key=lambda nic: (share[nic], len(of_nic[nic]), nic))
        explained = sorted(left.intersection(of_nic[worst]))
        if share[worst] < LEAST_FRACTION or len(explained) < LEAST_FLOWS:
            break
        yield Blame(nic=worst, flows=explained, num_flows_of_nic=len(of_nic[worst]))
        left.difference_update(explained)
    yield from (Blame(nic="", flows=(number,)) for number in sorted(left))
