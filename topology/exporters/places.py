"""Places: names such as `host0`, `host1` as a name that they share and a number each, for formats that count.

Numbers begin at 0 and have no gaps, in the order of the numbers at the ends of the names: `swp1` to `swp32` become
`swp` 0 to 31, and a name that stands alone has number 0.
"""

import re
from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass, replace

FALLBACK = "x"  # of a name of which nothing is left


@dataclass(frozen=True)
class Place:
    """A name that several share, and a number."""

    name: str
    number: int

    def moved(self, steps: int) -> "Place":
        """Return the place so many numbers further on."""
        return replace(self, number=self.number + steps) if steps else self


@dataclass(frozen=True)
class Group:
    """Those that share a name: how many, and what they were called."""

    name: str
    count: int
    description: str


def numbered(
    names: Sequence[str], kinds: Sequence[Hashable] | None = None
) -> tuple[tuple[Place, ...], tuple[Group, ...]]:
    """Return the place of each name, and the groups in the order of their firsts; names of two kinds share none."""
    kind_of = kinds or [None] * len(names)
    ends = [_split(name) for name in names]
    members: dict[tuple[str, Hashable], list[int]] = {}
    for row, (stem, _) in enumerate(ends):
        members.setdefault((stem, kind_of[row]), []).append(row)
    place_of: dict[int, Place] = {}
    groups: list[Group] = []
    taken: set[str] = set()
    for (stem, _), rows in members.items():
        rows.sort(key=lambda row: ends[row][1])
        name = unused(stem, taken)
        taken.add(name)
        first, last = names[rows[0]], names[rows[-1]]
        groups.append(Group(name, len(rows), first if len(rows) == 1 else f"{first} to {last}"))
        place_of |= {row: Place(name, number) for number, row in enumerate(rows)}
    return tuple(place_of[row] for row in range(len(names))), tuple(groups)


def unused(name: str, taken: Container[str]) -> str:
    """Return a name, with a number behind it where it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found


def plain(name: str) -> str:
    """Return a name of letters, digits, hyphens and underscores."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_") or FALLBACK


def _split(name: str) -> tuple[str, int]:
    """Return a name without the number at its end, and the number; -1 for none."""
    stem = re.sub(r"[0-9]{1,18}$", "", name)
    return plain(stem), int(name[len(stem) :] or -1)
