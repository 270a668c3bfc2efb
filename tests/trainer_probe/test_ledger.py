"""The ledger with a clock that is turned by hand: what each request depends on, and the work before it."""

from dataclasses import replace
from weakref import WeakSet

import numpy as np
import pytest

from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.trainer_probe.ledger import Ledger, Request, merge


class HandClock:
    """Nanoseconds that pass only when told to."""

    def __init__(self) -> None:
        self.now_ns = 1_000

    def read(self) -> int:
        return self.now_ns

    def ns(self, reading: int) -> int:
        return reading

    def work(self, duration_ns: int) -> None:
        self.now_ns += duration_ns


class Moment:
    """A reading that is an object."""


class MomentClock:
    """All readings that something still holds."""

    def __init__(self, readings: WeakSet[Moment]) -> None:
        self._readings = readings

    def read(self) -> Moment:
        moment = Moment()
        self._readings.add(moment)
        return moment

    def ns(self, reading: Moment) -> int:
        return 0


def issue(ledger: Ledger[int], tag: str) -> int:
    return ledger.issue(
        Request(operation=Operation.ALL_REDUCE, group=0, num_bytes=8, step=0, axis="dp", policy="none", tag=tag)
    )


def wait(ledger: Ledger[int], clock: HandClock, request: int, duration_ns: int) -> None:
    ledger.wait(request, lambda: clock.work(duration_ns))


def overlapped_ledger(rank: int = 0) -> CommTrace:
    """Return a ledger of two requests under way together, and one that follows both."""
    clock = HandClock()
    ledger = Ledger(rank, ((0, 1),), clock)
    clock.work(10)
    first = issue(ledger, "first")
    clock.work(5)
    second = issue(ledger, "second")
    wait(ledger, clock, first, 20)
    wait(ledger, clock, second, 3)
    clock.work(7)
    issue(ledger, "third")
    return ledger.trace()


def test_requests_under_way_together_do_not_wait_for_one_another() -> None:
    """Only what was waited for delays: the third depends on both, the second on neither."""
    trace = overlapped_ledger()
    assert [trace.dependencies.of(row).tolist() for row in range(3)] == [[], [], [0, 1]]


def test_work_counts_from_the_last_wait() -> None:
    """10 ns before the first; 10 + 5 before the second, which has no later wait to count from; 7 before the third."""
    assert overlapped_ledger().compute_before_ps_N.tolist() == [10_000, 15_000, 7_000]


def test_times_count_from_the_ledgers_beginning() -> None:
    """Issued at 10, 15 and 45 ns; the waits end at 35 and 38; the third is not waited for."""
    trace = overlapped_ledger()
    assert trace.issue_ps_N.tolist() == [10_000, 15_000, 45_000]
    assert trace.complete_ps_N.tolist() == [35_000, 38_000, UNKNOWN]
    assert trace.exposed_wait_ps_N.tolist() == [20_000, 3_000, UNKNOWN]


def test_merged_ledgers_keep_their_own_dependencies() -> None:
    """The second rank's rows come after the first's three, and so do the rows they depend on."""
    trace = merge([overlapped_ledger(0), overlapped_ledger(1)])
    assert trace.rank_N.tolist() == [0, 0, 0, 1, 1, 1]
    assert [trace.dependencies.of(row).tolist() for row in range(6)] == [[], [], [0, 1], [], [], [3, 4]]
    assert trace.tag_N == ("first", "second", "third") * 2


def test_waits_are_added_up_once_by_axis() -> None:
    """20 and 3 ns of dp, asked for as often as one likes, and still there once the requests are forgotten."""
    clock = HandClock()
    ledger = Ledger(0, ((0, 1),), clock)
    for duration_ns in (20, 3):
        wait(ledger, clock, issue(ledger, "one"), duration_ns)
        assert ledger.exposed_wait_ns() == ledger.exposed_wait_ns()
    ledger.forget()
    assert ledger.exposed_wait_ns() == {"dp": 23}


def test_a_ledger_that_forgets_keeps_no_reading_of_waits() -> None:
    """A GPU's readings are events: only the last stays, from which the next work counts."""
    readings = WeakSet[Moment]()
    ledger = Ledger(0, ((0, 1),), MomentClock(readings))
    for _ in range(3):
        request = ledger.issue(
            Request(operation=Operation.ALL_REDUCE, group=0, num_bytes=8, step=0, axis="dp", policy="none", tag="")
        )
        ledger.wait(request, lambda: None)
    ledger.forget()
    assert len(readings) == 1


def test_a_restarted_ledger_is_empty() -> None:
    """Warm-up is not part of what is measured."""
    clock = HandClock()
    ledger = Ledger(0, ((0, 1),), clock)
    issue(ledger, "warm-up")
    ledger.restart(clock.read())
    assert len(ledger.trace()) == 0


def test_a_ledger_may_begin_at_a_moment_that_has_passed() -> None:
    """Ranks share one beginning: what a rank did since then, here 30 ns, comes before its first request."""
    clock = HandClock()
    ledger = Ledger(1, ((0, 1),), clock)
    began_ns = clock.read()
    clock.work(30)
    ledger.restart(began_ns)
    issue(ledger, "first")
    assert ledger.trace().issue_ps_N.tolist() == [30_000]
    assert ledger.trace().compute_before_ps_N.tolist() == [30_000]


def test_ledgers_of_different_jobs_are_not_merged() -> None:
    """Group 0 of one job is not group 0 of another."""
    other = replace(overlapped_ledger(1), groups=((1, 2),))
    with pytest.raises(TraceError, match="ledger 1: other groups than ledger 0"):
        merge([overlapped_ledger(0), other])


def test_a_ledger_without_requests_is_a_trace() -> None:
    """A rank that never communicates is no error."""
    trace = Ledger(0, ((0, 1),), HandClock()).trace()
    assert len(trace) == 0
    assert trace.dependencies.offset_N1.tolist() == [0]
    assert trace.bytes_N.dtype == np.int64


def test_a_request_depends_on_what_was_waited_for_since_the_last_one() -> None:
    """The first of three in a row is done before the second is asked for; the third need not name it again."""
    clock = HandClock()
    ledger = Ledger(0, ((0, 1),), clock)
    for tag in ("first", "second", "third"):
        wait(ledger, clock, issue(ledger, tag), 4)
    trace = ledger.trace()
    assert [trace.dependencies.of(row).tolist() for row in range(3)] == [[], [0], [1]]
    assert ledger.exposed_wait_ns() == {"dp": 12}
