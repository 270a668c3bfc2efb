"""The waits-for graph of a job's ranks.

A rank that waits for request i of a group waits for all members that have not issued i. Followed from rank to rank this
ends at ranks that wait for nobody, at requests that all members have issued, or runs in a circle.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A rank's wait for a request."""

    rank: int
    group: int
    number: int
    members: tuple[int, ...]
    blockers: tuple[int, ...]  # members that have not issued the request; none: all have


def find_roots(waits: Mapping[int, Wait], begin: Iterable[int]) -> tuple[int, ...]:
    """Return where the waits of some ranks end: ranks that do not wait, or wait for a request that all have issued."""
    seen = set(begin)
    open_ranks = sorted(seen)
    roots = []
    while open_ranks:
        rank = open_ranks.pop()
        wait = waits.get(rank)
        if wait is None or not wait.blockers:
            roots.append(rank)
            continue
        open_ranks += [blocker for blocker in wait.blockers if blocker not in seen]
        seen.update(wait.blockers)
    return tuple(sorted(roots))


def find_circle(waits: Mapping[int, Wait]) -> tuple[int, ...]:
    """Return ranks that wait for one another in a circle, in its order from the lowest; () where none do."""
    finished: set[int] = set()
    for begin in sorted(waits):
        path: list[int] = []
        places: dict[int, int] = {}
        stack: list[tuple[int, int]] = [(begin, 0)]  # rank, and the blocker to follow next
        while stack:
            rank, place = stack.pop()
            if place == 0:
                places[rank] = len(path)
                path.append(rank)
            blockers = waits[rank].blockers if rank in waits else ()
            while place < len(blockers) and blockers[place] in finished:
                place += 1
            if place == len(blockers):
                finished.add(rank)
                path.pop()
                del places[rank]
                continue
            stack.append((rank, place + 1))
            if blockers[place] in places:
                circle = path[places[blockers[place]] :]
                lowest = circle.index(min(circle))
                return tuple(circle[lowest:] + circle[:lowest])
            stack.append((blockers[place], 0))
    return ()
