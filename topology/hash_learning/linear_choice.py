"""The linear part of a switch's choice: exclusive ors of header bits that say which next hop a header gets.

A CRC, an exclusive-or fold and a Toeplitz hash are linear over GF(2): each bit of the result is an exclusive or of
header bits and a constant, which holds seed and initial value. A switch with 2^k next hops takes k such bits as an
index, and nobody knows which index belongs to which next hop. That does not matter: a function f of next hops is sought
together with header bits w and a constant c such that f(next hop) = <w, header> + c for every flow, which is one linear
system in f, w and c together. Its solutions beside the constant f are the index's bits, in some basis of them.

A choice that is not linear has no solution: m equations more than unknowns are met by chance once in 2^m. Where some
observations are wrong (a path that changed meanwhile), systems of a few observations at a time are solved, and what
most others confirm is taken.

Left out: groups whose number of next hops is no power of two have an index modulo that number, of which only the
power of two in it is linear.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fabrictune.foundation.seeds import stream
from fabrictune.topology.hash_learning.choices import ChoiceGroup
from fabrictune.topology.hash_learning.elimination import Basis, nullspace, parity
from fabrictune.topology.hash_learning.headers import FlowHeader

MARGIN = 20  # equations beyond the unknowns: chance gives a relation once in a million
MAX_DRAWS = 400
LEAST_CONFIRMED = 0.9


@dataclass(frozen=True, kw_only=True)
class LinearChoice:
    """Relations between header bits and next hops, D of them; headers count from the group's first one."""

    group: ChoiceGroup
    span: Basis  # of the differences of observed headers
    functionals: tuple[int, ...]  # D, over the coordinates in `span`
    codes: tuple[int, ...]  # of each next hop, a bit a relation; those of the first header's next hop are 0
    num_confirmed: int  # observations that agree

    @property
    def is_whole(self) -> bool:
        """Whether the relations tell all next hops apart."""
        return len(set(self.codes)) == len(self.codes)

    def code_of(self, difference: int) -> int | None:
        """Return how a difference of headers changes the code; None where no observation tells."""
        coordinates = self.span.coordinates(difference)
        if coordinates is None:
            return None
        return sum(parity(row & coordinates) << place for place, row in enumerate(self.functionals))

    def next_hops_of(self, header: FlowHeader) -> tuple[str, ...]:
        """Return the next hops that a header may get: one where the relations are whole, none where it is unknown."""
        code = self.code_of(header.bits ^ self.group.headers[0].bits)
        return tuple(
            hop for hop, own in zip(self.group.next_hops, self.codes, strict=True) if code is not None and own == code
        )


@dataclass(frozen=True, kw_only=True)
class NoLinearChoice:
    """Why no relation is reported."""

    group: ChoiceGroup
    num_unknowns: int
    num_missing: int  # observations that it would take to tell; 0 where there are enough and none fits

    @property
    def is_refuted(self) -> bool:
        """Whether the observations rule a linear hash out."""
        return not self.num_missing


def learn_linear_choice(group: ChoiceGroup) -> LinearChoice | NoLinearChoice:
    """Return the relations that a group's observations have, or why there are none."""
    origin = group.headers[0].bits
    span = Basis(header.bits ^ origin for header in group.headers)
    num_unknowns = len(group.next_hops) - 1 + len(span)
    if len(group) < num_unknowns + MARGIN:
        return NoLinearChoice(group=group, num_unknowns=num_unknowns, num_missing=num_unknowns + MARGIN - len(group))
    rows = [_equation(group, span, row) for row in range(len(group))]
    found = _solve(group, span, rows)
    if found is None or not found.is_whole:
        found = _solve_some(group, span, num_unknowns, found)
    return found or NoLinearChoice(group=group, num_unknowns=num_unknowns, num_missing=0)


def _equation(group: ChoiceGroup, span: Basis, row: int) -> int:
    """Return an observation as an equation: bits of the coordinates, then of the next hop, as differences to row 0."""
    coordinates = span.coordinates(group.headers[row].bits ^ group.headers[0].bits)
    assert coordinates is not None, "a header is in the span of all"
    is_other = group.chosen[row] != group.chosen[0]
    return coordinates | (1 << len(span) + group.chosen[row] if is_other else 0)


def _solve(group: ChoiceGroup, span: Basis, rows: Sequence[int]) -> LinearChoice | None:
    """Return the relations that all of some observations have, with how many of all agree."""
    width = len(span)
    solutions = [
        solution
        for solution in nullspace([*rows, 1 << width + group.chosen[0]], width + len(group.next_hops))
        if solution >> width  # else a relation between header bits alone, which the rows leave open
    ]
    if not solutions:
        return None
    mask = (1 << width) - 1
    codes = tuple(
        sum((solution >> width + hop & 1) << place for place, solution in enumerate(solutions))
        for hop in range(len(group.next_hops))
    )
    choice = LinearChoice(
        group=group,
        span=span,
        functionals=tuple(solution & mask for solution in solutions),
        codes=codes,
        num_confirmed=0,
    )
    agreeing = sum(
        choice.code_of(header.bits ^ group.headers[0].bits) == codes[hop]
        for header, hop in zip(group.headers, group.chosen, strict=True)
    )
    return replace(choice, num_confirmed=agreeing)


def _solve_some(group: ChoiceGroup, span: Basis, num_unknowns: int, best: LinearChoice | None) -> LinearChoice | None:
    """Return relations of some observations that nearly all others confirm, if they are more than those at hand.

    A wrong observation leaves those relations alone that its two next hops have in common, so that few relations do not
    mean that there are no more.
    """
    draw = stream(0, "hash learning")
    for _ in range(MAX_DRAWS):
        drawn = draw.choice(len(group), size=num_unknowns + MARGIN, replace=False).tolist()
        if len({group.chosen[row] for row in drawn}) < len(group.next_hops):
            continue  # a next hop that is not there would be a relation of its own
        order = [*drawn, *sorted(set(range(len(group))) - set(drawn))]
        own = replace(
            group,
            headers=tuple(group.headers[row] for row in order),
            chosen=tuple(group.chosen[row] for row in order),
        )
        found = _solve(own, span, [_equation(own, span, row) for row in range(len(drawn))])
        if found is None or found.num_confirmed < LEAST_CONFIRMED * len(group):
            continue
        if best is None or len(found.functionals) > len(best.functionals):
            best = found
            if best.is_whole:
                break
    return best
