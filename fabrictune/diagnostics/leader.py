"""The leader of a diagnosis: it asks the ranks for one test after another, and narrows down what fails.

Whoever is slower than its peers is tested twice more, and the best counts. A pair of neighbours is tested in a ring:
each rank once with the rank before it and once with the one behind it, of which the better figure counts, so that a
slow rank does not make its neighbours look slow.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fabrictune.diagnostics.diagnosis import Diagnosis, GroupResult, RankFacts
from fabrictune.diagnostics.exchange import LeaderSide
from fabrictune.diagnostics.group_test import Operation
from fabrictune.diagnostics.node_tests.table import NODE_TESTS
from fabrictune.diagnostics.peers import best_of, slow_nodes
from fabrictune.diagnostics.plan import ALL_TO_ALL, BISECTION, GROUP_LIMIT_S, NEIGHBOURS, DiagnosisPlan
from fabrictune.diagnostics.results import NodeResult
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.time_limits import scaled
from fabrictune.observability.bisection import Bisection, Group, find_guilty

if TYPE_CHECKING:
    import torch.distributed as dist

START_S = 120.0
GRACE_S = 10.0  # for an answer, beyond its test's own limit
NUM_REPEATS = 2
END_S = 1.0


class Leader:
    """Asks the ranks, and keeps what they answer."""

    def __init__(
        self,
        store: "dist.Store",
        plan: DiagnosisPlan,
        *,
        ranks_per_tor: int,
        rules: RuleSettings = CATALOG_SETTINGS,
        start_s: float = START_S,
        group_limit_s: float = GROUP_LIMIT_S,
    ) -> None:
        self._ranks = LeaderSide(store)
        self._plan, self._rules, self._ranks_per_tor = plan, rules, ranks_per_tor
        self._start_s, self._group_limit_s = start_s, group_limit_s
        self._facts: dict[int, RankFacts] = {}
        self._results: dict[tuple[str, int], NodeResult] = {}
        self._groups: list[GroupResult] = []
        self._silent: dict[int, str] = {}
        self._left_out: dict[str, str] = {}
        self._bisection: Bisection | None = None

    def run(self, progress: Progress | None = None) -> Diagnosis:
        """Carry the plan out; the ranks end with it."""
        began_s = time.monotonic()
        self._introduce()
        for number, name in enumerate(self._plan.names):
            if time.monotonic() - began_s > self._plan.limit_s:
                self._left_out[name] = f"would begin after the limit of {self._plan.limit_s:g} s"
            elif name in NODE_TESTS:
                self._test_nodes(name)
            else:
                {ALL_TO_ALL: self._within_hosts, NEIGHBOURS: self._with_neighbours, BISECTION: self._bisect}[name]()
            if progress:
                progress((number + 1) / len(self._plan.names), name)
        self._ranks.ask({"do": "end"}, self._alive, limit_s=scaled(END_S))
        return Diagnosis(
            plan=self._plan,
            ranks=self._facts,
            results=self._results,
            groups=tuple(self._groups),
            bisection=self._bisection,
            silent=self._silent,
            left_out=self._left_out,
            elapsed_s=time.monotonic() - began_s,
        )

    @property
    def _alive(self) -> list[int]:
        return [rank for rank in range(self._plan.num_ranks) if rank not in self._silent]

    def _ask(self, order: dict[str, Any], ranks: Iterable[int], *, part: str, limit_s: float) -> dict[int, Any]:
        asked = [rank for rank in ranks if rank not in self._silent]
        answers = self._ranks.ask(order, asked, limit_s=limit_s)
        self._silent |= {rank: part for rank in asked if rank not in answers}
        return answers

    def _introduce(self) -> None:
        order, limit_s = {"do": "introduce"}, scaled(self._start_s)
        for rank, answer in self._ask(order, self._alive, part="start", limit_s=limit_s).items():
            self._facts[rank] = RankFacts(rank=rank, host=str(answer["host"]), host_number=int(answer["host_number"]))

    def _test_nodes(self, test: str) -> None:
        for ranks in self._turns(test):
            self._run(test, ranks)
        for _ in range(NUM_REPEATS):
            for rank in {slow.rank for slow in slow_nodes(self._of(test), self._rules)}:
                self._run(test, [rank])

    def _of(self, test: str) -> dict[tuple[str, int], NodeResult]:
        return {key: result for key, result in self._results.items() if key[0] == test}

    def _run(self, test: str, ranks: Sequence[int]) -> None:
        limit_s = scaled(NODE_TESTS[test].limit_s + GRACE_S)
        order = {"do": "node test", "test": test}
        for rank, answer in self._ask(order, ranks, part=test, limit_s=limit_s).items():
            result, earlier = NodeResult.from_json(answer), self._results.get((test, rank))
            self._results[test, rank] = best_of(earlier, result) if earlier else result

    def _hosts(self) -> list[list[int]]:
        """Return the ranks of each host that answer."""
        hosts: dict[int, list[int]] = {}
        for rank in self._alive:
            hosts.setdefault(self._facts[rank].host_number, []).append(rank)
        return list(hosts.values())

    def _turns(self, test: str) -> Iterator[list[int]]:
        """Yield the ranks that run a test at once."""
        hosts = self._hosts()
        if NODE_TESTS[test].is_of_host:
            yield [ranks[0] for ranks in hosts]
        elif not NODE_TESTS[test].takes_turns:
            yield self._alive
        else:
            for turn in range(max(map(len, hosts), default=0)):
                yield [ranks[turn] for ranks in hosts if turn < len(ranks)]

    def _within_hosts(self) -> None:
        groups = [tuple(ranks) for ranks in self._hosts() if len(ranks) > 1]
        if groups:
            self._test_groups(ALL_TO_ALL, groups, "all_to_all")
        else:
            self._left_out[ALL_TO_ALL] = "no host has two ranks"

    def _with_neighbours(self) -> None:
        alive = self._alive
        tors = [alive[begin : begin + self._ranks_per_tor] for begin in range(0, len(alive), self._ranks_per_tor)]
        for first in (0, 1):
            rings = [ranks[first:] + ranks[:first] for ranks in tors if len(ranks) > 1 + first]
            pairs = [pair for ring in rings for pair in zip(ring[::2], ring[1::2], strict=False)]
            if pairs:
                self._test_groups(NEIGHBOURS, pairs, "all_reduce")
        best: dict[int, float] = {}
        for group in self._groups:
            if group.test == NEIGHBOURS and not group.is_failing:
                best |= {rank: max(group.rate_bps, best.get(rank, 0.0)) for rank in group.ranks}
        for rank, rate_bps in best.items():
            self._results[NEIGHBOURS, rank] = NodeResult(test=NEIGHBOURS, figures={"all_reduce_bps": rate_bps})
        if not any(group.test == NEIGHBOURS for group in self._groups):
            self._left_out[NEIGHBOURS] = "no ToR has two ranks that answer"

    def _bisect(self) -> None:
        if len(self._alive) < 2:
            self._left_out[BISECTION] = "fewer than two ranks answer"
            return

        def fails(groups: Sequence[Group]) -> list[bool]:
            return [result.is_failing for result in self._test_groups(BISECTION, groups, "all_reduce")]

        self._bisection = find_guilty(self._alive, fails)

    def _test_groups(self, test: str, groups: Sequence[Group], operation: Operation) -> list[GroupResult]:
        """Test disjoint groups at once; a group fails without a test if one of its ranks was silent before."""
        limit_s = scaled(self._group_limit_s)
        tested = [group for group in groups if self._silent.keys().isdisjoint(group)]
        order = {"do": "group test", "groups": tested, "operation": operation, "limit_s": limit_s}
        members = [rank for group in tested for rank in group]
        # Making a group and each of its requests may take the limit once.
        answers = self._ranks.ask(order, members, limit_s=2 * limit_s + scaled(GRACE_S))
        self._silent |= {rank: test for rank in members if rank not in answers}
        number = 1 + max((result.round for result in self._groups), default=-1)
        results = [
            GroupResult(
                test=test,
                round=number,
                ranks=tuple(group),
                rate_bps=min(float(answers.get(rank, {"rate_bps": 0.0})["rate_bps"]) for rank in group),
                faults=tuple(self._faults(group, answers)),
            )
            for group in groups
        ]
        self._groups += results
        return results

    @staticmethod
    def _faults(group: Group, answers: dict[int, Any]) -> Iterator[str]:
        for rank in group:
            if rank not in answers:
                yield f"rank {rank}: does not answer"
            else:
                yield from (f"rank {rank}: {fault}" for fault in answers[rank]["faults"])
