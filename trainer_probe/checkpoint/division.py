"""Division of the state over writers: each range of a weight's elements that several ranks hold is written by one.

Ranks that hold the same elements, as in ddp or of weights replicated over tensor-parallel ranks, each write a part of
them, or by turns where a range is short. All ranks know all tables, so that they divide alike.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabrictune.trainer_probe.checkpoint.entries import Range
from fabrictune.trainer_probe.state.pieces import Piece

MIN_ELEMENTS = 2**14  # of a range that is cut for its holders


@dataclass(frozen=True, kw_only=True)
class Span:
    """A range of a weight's part."""

    weight: str
    part: int
    begin: int
    end: int


def spans_of(pieces: Sequence[Piece]) -> list[Span]:
    """Return the ranges of a rank's pieces."""
    return [Span(weight=piece.weight, part=piece.part, begin=piece.begin, end=piece.end) for piece in pieces]


def part_sizes(tables: Sequence[Sequence[Span]]) -> dict[str, int]:
    """Return the number of elements of each part of each weight, by `weight/part`; the ranks together have them all."""
    sizes: dict[str, int] = {}
    for span in (span for table in tables for span in table):
        key = f"{span.weight}/{span.part}"
        sizes[key] = max(sizes.get(key, 0), span.end)
    return sizes


def cut_ranges(pieces: Sequence[Piece], tables: Sequence[Sequence[Span]], rank: int) -> list[Range]:
    """Return a rank's pieces, cut where what it writes begins and ends; `tables` are the ranges of all ranks."""
    written = _written_by(tables, rank)
    ranges = []
    for piece in pieces:
        place = piece.begin
        for begin, end in written.get((piece.weight, piece.part), ()):
            first, stop = max(begin, piece.begin), min(end, piece.end)
            if first < stop:
                if place < first:
                    ranges.append(Range(piece=piece, begin=place, end=first, is_own=False))
                ranges.append(Range(piece=piece, begin=first, end=stop))
                place = stop
        if place < piece.end:
            ranges.append(Range(piece=piece, begin=place, end=piece.end, is_own=False))
    return ranges


def _written_by(tables: Sequence[Sequence[Span]], rank: int) -> Mapping[tuple[str, int], list[tuple[int, int]]]:
    """Return the ranges that a rank writes by weight and part; neighbours as one."""
    held: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
    for holder, table in enumerate(tables):
        for span in table:
            held.setdefault((span.weight, span.part), []).append((span.begin, span.end, holder))
    written: dict[tuple[str, int], list[tuple[int, int]]] = {}
    turn = 0
    for key in sorted(held):
        own: list[tuple[int, int]] = []
        for begin, end, holders in _stretches(held[key]):
            if end - begin >= MIN_ELEMENTS:
                place = holders.index(rank) if rank in holders else -1
                cuts = [begin + (end - begin) * number // len(holders) for number in range(len(holders) + 1)]
                taken = (cuts[place], cuts[place + 1]) if place >= 0 else (0, 0)
            else:
                taken = (begin, end) if holders[turn % len(holders)] == rank else (0, 0)
                turn += 1
            if taken[0] < taken[1]:
                if own and own[-1][1] == taken[0]:
                    taken = own.pop()[0], taken[1]
                own.append(taken)
        if own:
            written[key] = own
    return written


def _stretches(held: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the stretches between the ends of ranges, each with the ranks that hold it, in order."""
    changes: dict[int, list[tuple[bool, int]]] = {}
    for begin, end, holder in held:
        changes.setdefault(begin, []).append((True, holder))
        changes.setdefault(end, []).append((False, holder))
    holders: dict[int, int] = {}
    previous = 0
    for place in sorted(changes):
        if holders:
            yield previous, place, sorted(holders)
        for is_begin, holder in changes[place]:
            holders[holder] = holders.get(holder, 0) + (1 if is_begin else -1)
            if not holders[holder]:
                del holders[holder]
        previous = place
