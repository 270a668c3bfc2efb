"""The ledger of a plan with a clock that is turned by hand: work beside requests, and what is entered again."""

import pytest

from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation

pytest.importorskip("torch")

from fabrictune.trainer_probe.ledger import Request
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.operation_clock import OperationClock
from fabrictune.trainer_probe.planning.operation_costs import RooflineCosts
from fabrictune.trainer_probe.planning.plan_ledger import PlanLedger


def make_ledger() -> tuple[PlanLedger, OperationClock]:
    """Return a ledger of rank 1 in a group of two, and its clock, turned by hand."""
    clock = OperationClock(RooflineCosts(HardwareSpec()))
    return PlanLedger(1, ((0, 1),), clock), clock


def issue(ledger: PlanLedger, tag: str) -> int:
    return ledger.issue(
        Request(operation=Operation.ALL_REDUCE, group=0, num_bytes=8, step=0, axis="dp", policy="none", tag=tag)
    )


def wait(ledger: PlanLedger, request: int) -> None:
    ledger.wait(request, lambda: None)


def waits(trace: CommTrace) -> list[list[int]]:
    return [sorted(trace.dependencies.of(row).tolist()) for row in range(len(trace))]


def test_work_beside_a_request_is_waited_for_too() -> None:
    """10 before the first, 5 beside it: the second waits for the first and for 15 of work from the beginning."""
    ledger, clock = make_ledger()
    clock.advance(10_000)
    first = issue(ledger, "first")
    clock.advance(5_000)
    wait(ledger, first)
    issue(ledger, "second")
    trace = ledger.trace()
    assert trace.tag_N == ("first", "work", "second")
    assert trace.compute_before_ps_N.tolist() == [10_000, 15_000, 0]
    assert waits(trace) == [[], [], [0, 1]]
    assert trace.groups[trace.group_N[1]] == (1,)


def test_a_request_that_is_waited_for_at_once_stands_for_the_work_before_it() -> None:
    """No row for work that the request itself has in front of it; the work behind the last is a row."""
    ledger, clock = make_ledger()
    clock.advance(10_000)
    wait(ledger, issue(ledger, "first"))
    clock.advance(7_000)
    trace = ledger.trace()
    assert trace.tag_N == ("first", "work")
    assert trace.compute_before_ps_N.tolist() == [10_000, 7_000]
    assert waits(trace) == [[], [0]]


def test_work_beside_a_request_that_is_waited_for_first_covers_another() -> None:
    """Two under way, 4 of work, both waited for: one row of work, since nothing passed between the waits."""
    ledger, clock = make_ledger()
    both = [issue(ledger, "one"), issue(ledger, "other")]
    clock.advance(4_000)
    for request in both:
        wait(ledger, request)
    issue(ledger, "next")
    trace = ledger.trace()
    assert trace.tag_N == ("one", "other", "work", "next")
    assert waits(trace)[3] == [0, 1, 2]


def gather(ledger: PlanLedger, clock: OperationClock, tag: str) -> None:
    """Ask for something with work before, beside and behind it."""
    clock.advance(3_000)
    request = issue(ledger, f"{tag}.gather")
    clock.advance(2_000)
    wait(ledger, request)
    clock.advance(6_000)


def test_what_is_entered_again_has_other_names_and_the_same_work() -> None:
    """As if it had been asked for twice."""
    traces = []
    for is_repeated in (False, True):
        ledger, clock = make_ledger()
        with ledger.recording() as recording:
            gather(ledger, clock, "batch0")
        if is_repeated:
            ledger.replay(recording, old="batch0", new="batch1")
        else:
            gather(ledger, clock, "batch1")
        traces.append(ledger.trace())
    asked, repeated = traces
    assert repeated.tag_N == asked.tag_N
    assert repeated.compute_before_ps_N.tolist() == asked.compute_before_ps_N.tolist()
    assert waits(repeated) == waits(asked)


def test_times_are_not_known() -> None:
    """A plan has no moments at which requests were made; only work and order."""
    ledger, _ = make_ledger()
    wait(ledger, issue(ledger, "first"))
    trace = ledger.trace()
    assert trace.issue_ps_N.tolist() == trace.complete_ps_N.tolist() == trace.exposed_wait_ps_N.tolist() == [UNKNOWN]
