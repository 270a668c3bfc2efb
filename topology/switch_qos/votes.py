"""Election of a value among those that ports or switches have, with the place of each."""

from collections import Counter
from dataclasses import dataclass, field
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


@dataclass
class Election:
    """Votes counted as they come: what is kept is the first vote for each value."""

    first: dict[Any, Vote] = field(default_factory=dict)
    count: Counter[Any] = field(default_factory=Counter)

    def add(self, vote: Vote) -> None:
        """Count a vote."""
        self.first.setdefault(vote.value, vote)
        self.count[vote.value] += 1

    def result(self) -> Elected:
        """Return the value that most votes have; there is one vote at least."""
        best, num_votes = self.count.most_common(1)[0]
        return Elected(
            first=self.first[best],
            num_votes=num_votes,
            num_voters=self.count.total(),
            others=tuple((vote, self.count[value]) for value, vote in self.first.items() if value != best),
        )
