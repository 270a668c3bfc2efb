"""Hash functions of the table that choose as a learned choice does, with fields and rotation.

The switch takes the low bits of a function's value as an index. Two such indexes choose alike, whatever next hop
belongs to which, where the same exclusive ors of header bits can be made of them; seeds change constants alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fabrictune.topology.hash_learning.elimination import Basis
from fabrictune.topology.hash_learning.fields import field_uses
from fabrictune.topology.hash_learning.headers import NUM_BITS
from fabrictune.topology.hash_learning.linear_choice import LinearChoice
from fabrictune.topology.hashing.five_tuples import FiveTuples, HeaderField
from fabrictune.topology.hashing.functions import HASHES
from fabrictune.topology.hashing.spec import MAX_ROTATION, HashSpec

FIXED: tuple[HeaderField, ...] = ("protocol", "destination_port")  # alike in all RoCEv2 flows


@dataclass(frozen=True, kw_only=True)
class KnownFunction:
    """A function of the table under which the observed headers choose as they did."""

    name: str
    fields: tuple[HeaderField, ...]
    rotation: int
    index_shift: int | None  # by the seed, if next hops are numbered in the order of their names; None: they are not


def find_known_functions(choice: LinearChoice) -> tuple[KnownFunction, ...]:
    """Return every function, choice of fields and rotation that explains a whole choice."""
    if not choice.is_whole or 1 << len(choice.functionals) != len(choice.codes):
        return ()
    learned = Basis(choice.functionals)
    flows = _span_flows(choice)
    return tuple(
        KnownFunction(name=name, fields=fields, rotation=rotation, index_shift=_index_shift(choice, spec))
        for name, function in HASHES.items()
        if function.is_shifted_by_seed
        for fields in _possible_fields(choice)
        for rotation in range(MAX_ROTATION + 1)
        for spec in (HashSpec(function=name, fields=fields, rotation=rotation),)
        if _index_space(spec, flows, len(learned)) == learned
    )


def _index_shift(choice: LinearChoice, spec: HashSpec) -> int | None:
    """Return the exclusive or between the unseeded index and the place of the next hop by name; None for several."""
    flows = _five_tuples([header.bits for header in choice.group.headers])
    index_F = spec.choose_among(flows, np.zeros(len(flows), np.uint64), np.full(len(flows), len(choice.codes)))
    names = sorted(choice.group.next_hops, key=_natural)
    place = {hop: names.index(name) for hop, name in enumerate(choice.group.next_hops)}
    agreed = {
        index ^ place[hop]
        for header, hop, index in zip(choice.group.headers, choice.group.chosen, index_F.tolist(), strict=True)
        if choice.next_hops_of(header) == (choice.group.next_hops[hop],)
    }
    return agreed.pop() if len(agreed) == 1 else None


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that puts Ethernet8 before Ethernet12."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def _possible_fields(choice: LinearChoice) -> Iterator[tuple[HeaderField, ...]]:
    """Yield the hashed fields, with each choice of those that may be: a fold can hash a field beside the index."""
    uses = field_uses(choice)
    hashed = {field for field, use in uses.items() if use == "hashed"}
    open_fields = [field for field, use in uses.items() if use != "hashed" and field != "destination_qp"]
    for number in range(len(open_fields), -1, -1):
        for others in combinations(open_fields, number):
            chosen = hashed | set(others)
            yield tuple(field for field in (*uses, *FIXED) if field in chosen or field in FIXED)


def _span_flows(choice: LinearChoice) -> FiveTuples:
    """Return the first header, and it with each vector of the observed span added."""
    first = choice.group.headers[0].bits
    return _five_tuples([first, *(first ^ vector for vector in choice.span.vectors)])


def _five_tuples(headers: Sequence[int]) -> FiveTuples:
    def column(shift: int, width: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([header >> shift & (1 << width) - 1 for header in headers], np.int64)

    return FiveTuples(
        source_ipv4_F=column(NUM_BITS - 32, 32),
        destination_ipv4_F=column(NUM_BITS - 64, 32),
        source_port_F=column(NUM_BITS - 88, 16),
        destination_qpn_F=column(0, 24),
    )


def _index_space(spec: HashSpec, flows: FiveTuples, num_bits: int) -> Basis:
    """Return the space of exclusive ors of a function's index bits, over the coordinates of the span."""
    value_F = spec.hash_flows(flows, np.zeros(len(flows), np.uint64))
    changed = (value_F[1:] ^ value_F[0]).tolist()
    return Basis(sum((change >> bit & 1) << place for place, change in enumerate(changed)) for bit in range(num_bits))
