"""Election of a value among those that ports or switches have, with the place of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fabrictune.topology.importers.sonic_tables import SonicTables


@dataclass(frozen=True, kw_only=True)
class Vote:
    """What one port, or one switch, has."""

    value: Any  # hashable; None: nothing
    tables: SonicTables
    keys: tuple[str, ...]  # table, row, field

    @property
    def where(self) -> str:
        """File, line and key."""
        return self.tables.where(*self.keys)

    def where_of(self, name: str) -> str:
        """Return the place of a field of the row that the vote comes from."""
        return self.tables.where(*self.keys, name)


@dataclass(frozen=True, kw_only=True)
class Elected:
    """The value that most have; of those that are as frequent, the first."""

    first: Vote  # of those that have it
    num_votes: int
    num_voters: int
    others: tuple[tuple[Vote, int], ...] = ()  # the first with each other value, and how many have it

    @property
    def value(self) -> Any:
        """The value that was elected."""
        return self.first.value

    @property
    def is_unanimous(self) -> bool:
        """Whether no other value was found."""
        return not self.others


def elect(votes: Sequence[Vote]) -> Elected:
    """Return the value that most votes have; there is one vote at least."""
    first: dict[Any, Vote] = {}
    count: dict[Any, int] = {}
    for vote in votes:
        first.setdefault(vote.value, vote)
        count[vote.value] = count.get(vote.value, 0) + 1
    best = max(count, key=lambda value: count[value])
    others = tuple((vote, count[value]) for value, vote in first.items() if value != best)
    return Elected(
        first=first[best],
        num_votes=count[best],
        num_voters=len(votes),
        others=others,
    )
