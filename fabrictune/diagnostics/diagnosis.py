"""The facts of a diagnosis: who took part, what each test found, and who was silent."""

from collections.abc import Mapping
from dataclasses import dataclass

from fabrictune.diagnostics.plan import DiagnosisPlan
from fabrictune.diagnostics.results import NodeResult
from fabrictune.observability.bisection import Bisection, Group


@dataclass(frozen=True, kw_only=True)
class RankFacts:
    """A rank that took part."""

    rank: int
    host: str
    host_number: int  # of its machine: ranks of one host have the same

    @property
    def label(self) -> str:
        """The rank for people: a name that a shell takes."""
        return f"rank {self.rank} ({self.host})"


@dataclass(frozen=True, kw_only=True)
class GroupResult:
    """A test of a group."""

    test: str
    round: int
    ranks: Group
    rate_bps: float  # the slowest member's bus bandwidth; 0 where the test failed
    faults: tuple[str, ...]

    @property
    def is_failing(self) -> bool:
        """Whether it failed for a member."""
        return bool(self.faults)


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """All that was found."""

    plan: DiagnosisPlan
    ranks: Mapping[int, RankFacts]
    results: Mapping[tuple[str, int], NodeResult]  # by test and rank
    groups: tuple[GroupResult, ...]
    bisection: Bisection | None
    silent: Mapping[int, str]  # by rank: the part in which it did not answer
    left_out: Mapping[str, str]  # by test: why
    elapsed_s: float

    def label(self, rank: int) -> str:
        """Return a rank for people, also one that never answered."""
        facts = self.ranks.get(rank)
        return facts.label if facts else f"rank {rank}"
