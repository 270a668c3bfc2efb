"""The guilty nodes of a job, found by halving: every round tests disjoint groups of nodes, all of them at once.

A group that fails is halved until single nodes are left: with n nodes, log2(n) rounds and a few more. A test may need
several nodes; a node that is alone is then tested with companions out of groups that have passed. False alarms are kept
out by these rules:

- The verdict on a group is the result that comes first `votes` times; one test decides with `votes=1`.
- A group that fails although neither half does is tested again. If it passes, the first failure was a false alarm; if
  it fails, its fault shows only between the halves: it is unresolved, and no node of it is named.
- A node is named only when it fails once more, with other companions where there are some.
- All nodes that are not named are tested together at the end. If they fail, the search begins again among them.

Source: Dorfman, "The Detection of Defective Members of Large Populations", Annals of Mathematical Statistics 14 (1943);
Hwang, "A Method for Detecting All Defective Members in a Population by Group Testing", JASA 67 (1972).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log2

Group = tuple[int, ...]
Oracle = Callable[[Sequence[Group]], Sequence[bool]]  # whether each of these disjoint groups fails

MAX_SEARCHES = 4
MAX_PAIRINGS = 3  # rounds in which suspects are paired with one another, where no node has passed
NOBODY = -1  # the partner of the node that an odd number leaves over


@dataclass(frozen=True, kw_only=True)
class Bisection:
    """What a search found, and what it took."""

    guilty: tuple[int, ...]
    unresolved: tuple[Group, ...]  # groups that fail, of which no node could be named
    false_alarms: tuple[Group, ...]  # groups that failed, and passed when tested again
    rounds: tuple[tuple[Group, ...], ...]  # the groups that were tested at once

    @property
    def num_tests(self) -> int:
        """Tests of all rounds."""
        return sum(map(len, self.rounds))


def num_rounds(num_nodes: int, *, votes: int = 1) -> int:
    """Return the rounds that a search takes for one guilty node whose tests always fail: all, halves, again, the rest.

    It holds from four nodes on. Several guilty nodes of one half take no more; noise takes up to twice as many votes.
    """
    return votes * (3 + max(1, ceil(log2(max(2, num_nodes)))))


def find_guilty(
    nodes: Iterable[int], fails: Oracle, *, votes: int = 1, least_nodes: int = 2, companions: Iterable[int] = ()
) -> Bisection:
    """Return the nodes because of which groups fail; `least_nodes` is how many a test needs.

    `companions` are other nodes, which are known to pass.
    """
    return _Search(fails, votes=votes, least_nodes=least_nodes, passed=companions).run(tuple(nodes))


class _Search:
    """The state of a search: who has passed, and what has been tested."""

    def __init__(self, fails: Oracle, *, votes: int, least_nodes: int, passed: Iterable[int]) -> None:
        self._fails, self._votes, self._least_nodes = fails, votes, least_nodes
        self._suspects: Group = ()
        self._passed = list(passed)  # nodes of groups that passed: companions, the last used last
        self._rounds: list[tuple[Group, ...]] = []
        self._unresolved: list[Group] = []
        self._false_alarms: list[Group] = []

    def run(self, nodes: Group) -> Bisection:
        guilty: list[int] = []
        self._suspects = rest = nodes
        for _ in range(MAX_SEARCHES):
            if len(rest) < self._least_nodes or not self._judge([rest])[rest]:
                break
            found = self._confirm(self._narrow(rest))
            guilty += found
            doubtful = {node for group in self._unresolved for node in group}
            rest = tuple(node for node in rest if node not in found and node not in doubtful)
            if not found:
                break
        return Bisection(
            guilty=tuple(sorted(guilty)),
            unresolved=tuple(self._unresolved),
            false_alarms=tuple(self._false_alarms),
            rounds=tuple(self._rounds),
        )

    def _narrow(self, group: Group) -> list[Group]:
        """Return the single nodes that a failing group comes down to."""
        failing = [group]
        suspects: list[Group] = []
        while failing:
            halves = {group: _halves(group) for group in failing}
            verdicts = self._judge([half for pair in halves.values() for half in pair])
            self._retest([group for group, pair in halves.items() if not any(verdicts[half] for half in pair)])
            found = [half for pair in halves.values() for half in pair if verdicts[half]]
            suspects += [half for half in found if len(half) == 1]
            failing = [half for half in found if len(half) > 1]
        return suspects

    def _retest(self, groups: list[Group]) -> None:
        for group, is_failing in self._judge(groups).items():
            (self._unresolved if is_failing else self._false_alarms).append(group)

    def _confirm(self, suspects: list[Group]) -> list[int]:
        """Return the nodes that fail again."""
        known = [group for group in suspects if group not in self._unresolved]
        verdicts = self._judge(known)
        self._false_alarms += [group for group, is_failing in verdicts.items() if not is_failing]
        return [group[0] for group, is_failing in verdicts.items() if is_failing and group not in self._unresolved]

    def _judge(self, groups: Sequence[Group]) -> dict[Group, bool]:
        """Return whether each group fails; one that cannot be tested for want of companions fails, unresolved."""
        results: dict[Group, list[bool]] = {group: [] for group in groups}
        pending = list(groups)
        while pending:
            tested = self._round(pending)
            if not tested:
                self._pair_up()
                cleared = [group for group in pending if set(group) <= set(self._passed)]
                results.update({group: [False] * self._votes for group in cleared})
                pending = [group for group in pending if group not in cleared]
                tested = self._round(pending)
            if pending and not tested:
                self._unresolved += [group for group in pending if group not in self._unresolved]
                results.update({group: [True] * self._votes for group in pending})
                break
            for group, is_failing in tested.items():
                results[group].append(is_failing)
            pending = [group for group in pending if max(map(results[group].count, (True, False))) < self._votes]
        verdicts = {group: result.count(True) >= self._votes for group, result in results.items()}
        for group, is_failing in verdicts.items():
            if not is_failing:
                self._passed += [node for node in group if node not in self._passed]
        return verdicts

    def _round(self, groups: Sequence[Group]) -> dict[Group, bool]:
        """Test those groups at once for which there are companions."""
        filled: dict[Group, Group] = {}
        taken = {node for group in groups for node in group}
        for group in groups:
            needed = max(0, self._least_nodes - len(group))
            companions = [node for node in self._passed if node not in taken][:needed]
            if len(companions) == needed:
                filled[group] = (*group, *companions)
                taken.update(companions)
        used = {node for group, whole in filled.items() for node in whole[len(group) :]}
        self._passed = [node for node in self._passed if node not in used] + [
            node for node in self._passed if node in used
        ]
        return dict(zip(filled, self._test(list(filled.values())), strict=True))

    def _pair_up(self) -> None:
        """Where no node has passed, pair the suspects with one another, round after round, until a pair passes."""
        first, *others = self._suspects if len(self._suspects) % 2 == 0 else (*self._suspects, NOBODY)
        for shift in range(1, 1 + MAX_PAIRINGS):
            if self._passed or len(self._suspects) < 3 or self._least_nodes != 2:
                return
            order = [first, *others[shift:], *others[:shift]]
            pairs = [pair for pair in zip(order[: len(order) // 2], order[::-1], strict=False) if NOBODY not in pair]
            for pair, is_failing in zip(pairs, self._test(pairs), strict=True):
                self._passed += [] if is_failing else pair

    def _test(self, groups: Sequence[Group]) -> list[bool]:
        if not groups:
            return []
        self._rounds.append(tuple(groups))
        return list(self._fails(groups))


def _halves(group: Group) -> tuple[Group, Group]:
    middle = (len(group) + 1) // 2
    return group[:middle], group[middle:]
