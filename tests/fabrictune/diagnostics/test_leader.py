"""The leader of a diagnosis, against ranks that are made up."""

from typing import Any

import pytest

from fabrictune.diagnostics import leader as leader_module
from fabrictune.diagnostics.checks import blamed_ranks, check_diagnosis
from fabrictune.diagnostics.diagnosis import Diagnosis
from fabrictune.diagnostics.leader import Leader
from fabrictune.diagnostics.plan import ALL_TO_ALL, BISECTION, NEIGHBOURS, make_plan
from fabrictune.diagnostics.results import NodeResult

PER_HOST = 4


class _Ranks:
    """Ranks whose answers are made up: some are slow, silent in groups, or break every group."""

    def __init__(self, *, slow: dict[int, float], breaking: set[int], silent: set[int]) -> None:
        self.slow, self.breaking, self.silent = slow, breaking, silent
        self.asked: list[tuple[str, tuple[int, ...]]] = []

    def ask(self, order: dict[str, Any], ranks: Any, *, limit_s: float) -> dict[int, Any]:
        ranks = tuple(ranks)
        self.asked.append((order.get("test", order["do"]), ranks))
        return {
            rank: self._answer(order, rank) for rank in ranks if order["do"] == "introduce" or rank not in self.silent
        }

    def _answer(self, order: dict[str, Any], rank: int) -> Any:
        if order["do"] == "introduce":
            return {"host": f"host{rank // PER_HOST}", "host_number": rank // PER_HOST, "pid": 1}
        if order["do"] == "node test":
            rate = (1e9 + rank % 7 * 1e6) / self.slow.get(rank, 1.0)
            return NodeResult(test=order["test"], figures={"copy_bytes_per_s": rate}).as_json()
        if order["do"] == "group test":
            (group,) = [group for group in order["groups"] if rank in group]
            is_broken = not self.breaking.isdisjoint(group) or not self.silent.isdisjoint(group)
            rate = 1e9 / max(self.slow.get(member, 1.0) for member in group)
            return {"rate_bps": 0.0 if is_broken else rate, "faults": ["3 wrong elements"] if is_broken else []}
        return {}


def _diagnose(
    monkeypatch: pytest.MonkeyPatch,
    num_ranks: int,
    only: list[str],
    *,
    slow: dict[int, float] | None = None,
    breaking: set[int] | None = None,
    silent: set[int] | None = None,
) -> tuple[Diagnosis, _Ranks]:
    ranks = _Ranks(slow=slow or {}, breaking=breaking or set(), silent=silent or set())
    monkeypatch.setattr(leader_module, "LeaderSide", lambda store: ranks)
    plan = make_plan(num_ranks, PER_HOST, only=only)
    return Leader(None, plan, ranks_per_tor=8).run(), ranks  # type: ignore[arg-type]


def test_a_host_that_is_a_tenth_slower_is_named_among_64(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 12 % more time, above the threshold of 10 %, in three tests; its neighbours are not named."""
    diagnosis, ranks = _diagnose(monkeypatch, 64, ["memory", NEIGHBOURS], slow={37: 1.12})
    report = check_diagnosis(diagnosis)
    assert blamed_ranks(report.findings, diagnosis) == [37]
    assert [finding.actual for finding in report.findings] == [
        "copies in memory: 894.6 MB/s, 12% more time (41.1 standard deviations)",
        "all-reduce with its neighbours: 892.9 Mbps, 12% more time (the others do not differ)",
    ]
    assert sum(test == "memory" and 37 in asked for test, asked in ranks.asked) == 3


def test_ranks_of_one_host_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    _, ranks = _diagnose(monkeypatch, 8, ["memory", "GPU health"])
    assert [asked for test, asked in ranks.asked if test == "memory"] == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert [asked for test, asked in ranks.asked if test == "GPU health"] == [(0, 4)]


def test_the_rank_that_breaks_every_group_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """All, six halvings, once more, and the 63 others: 9 rounds; pairs and hosts with it fail, and are not named."""
    diagnosis, _ = _diagnose(monkeypatch, 64, [ALL_TO_ALL, NEIGHBOURS, BISECTION], breaking={21})
    report = check_diagnosis(diagnosis)
    assert blamed_ranks(report.findings, diagnosis) == [21]
    assert [(finding.id, finding.entity) for finding in report.findings] == [("diagnose.node-fails", "rank 21 (host5)")]
    assert diagnosis.bisection is not None
    assert len(diagnosis.bisection.rounds) == 9


def test_a_silent_rank_is_named_and_asked_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    diagnosis, ranks = _diagnose(monkeypatch, 16, ["memory", BISECTION], silent={3})
    report = check_diagnosis(diagnosis)
    assert [(finding.id, finding.entity, finding.actual) for finding in report.findings] == [
        ("diagnose.node-silent", "rank 3 (host0)", "did not answer in memory")
    ]
    assert all(3 not in asked for _, asked in ranks.asked[5:])


def test_healthy_ranks_have_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    diagnosis, _ = _diagnose(monkeypatch, 32, ["memory", ALL_TO_ALL, NEIGHBOURS, BISECTION])
    report = check_diagnosis(diagnosis)
    assert report.findings == ()
    assert diagnosis.left_out == {}


def test_a_test_that_would_begin_after_the_limit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_module, "LeaderSide", lambda store: _Ranks(slow={}, breaking=set(), silent=set()))
    plan = make_plan(4, 4, only=["memory"], limit_s=0.0)
    diagnosis = Leader(None, plan, ranks_per_tor=4).run()  # type: ignore[arg-type]
    assert diagnosis.left_out == {"memory": "would begin after the limit of 0 s"}


def test_a_plan_for_1024_hosts_of_eight_ends_within_ten_minutes() -> None:
    """Ranks of a host take turns, hosts do not: the plan for 8,192 ranks is that for eight."""
    assert make_plan(8192, 8).expected_s == make_plan(8, 8).expected_s < 60
