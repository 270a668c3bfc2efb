"""The plan of a diagnosis: what runs in which order, and the time that it is expected to take.

Ranks of one host take turns where a test would be disturbed by another on the same host; everything else runs on all
ranks at once. A part that would begin after the limit is left out, and said so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fabrictune.diagnostics.node_tests.table import NODE_TESTS
from fabrictune.observability.bisection import num_rounds

LIMIT_S = 600.0
START_S = 6.0  # a rank's process, and torch
GROUP_S = 0.7  # a test of groups, in which the whole job waits for the slowest
GROUP_LIMIT_S = 30.0
ALL_TO_ALL, NEIGHBOURS, BISECTION = "all-to-all in a host", "all-reduce with neighbours", "bisection"
GROUP_TESTS = {
    ALL_TO_ALL: "all ranks of a host exchange known numbers",
    NEIGHBOURS: "pairs under one ToR sum known numbers, and are compared with the other pairs",
    BISECTION: "all ranks sum known numbers; halves of a group that fails are tested until nodes are named",
}
TESTS = (*NODE_TESTS, *GROUP_TESTS)


@dataclass(frozen=True, kw_only=True)
class PlannedTest:
    """A part of the plan."""

    name: str
    meaning: str
    expected_s: float


@dataclass(frozen=True, kw_only=True)
class DiagnosisPlan:
    """The parts in their order."""

    tests: tuple[PlannedTest, ...]
    num_ranks: int
    ranks_per_host: int
    limit_s: float = LIMIT_S

    @property
    def expected_s(self) -> float:
        """The time of all parts, where nothing fails."""
        return START_S + sum(test.expected_s for test in self.tests)

    @property
    def names(self) -> tuple[str, ...]:
        """The parts' names."""
        return tuple(test.name for test in self.tests)


def make_plan(
    num_ranks: int, ranks_per_host: int, *, only: Sequence[str] = (), limit_s: float = LIMIT_S
) -> DiagnosisPlan:
    """Return the plan for a job; `only` names the tests of it, all where it is empty."""
    tests = []
    for name, test in NODE_TESTS.items():
        turns = ranks_per_host if test.takes_turns and not test.is_of_host else 1
        tests.append(PlannedTest(name=name, meaning=test.meaning, expected_s=turns * test.expected_s))
    for name, meaning in GROUP_TESTS.items():
        tests.append(PlannedTest(name=name, meaning=meaning, expected_s=GROUP_S))
    kept = tuple(test for test in tests if not only or test.name in only)
    return DiagnosisPlan(tests=kept, num_ranks=num_ranks, ranks_per_host=ranks_per_host, limit_s=limit_s)


def bisection_s(num_ranks: int) -> float:
    """Return the time that naming one node adds, where its tests fail at once and do not wait for their limit."""
    return num_rounds(num_ranks) * GROUP_S
