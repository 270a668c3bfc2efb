"""Timelines of ranks by hand: work, and waits by axis in the order in which requests are waited for."""

from collections.abc import Sequence

import numpy as np

from fabrictune.collectives.overlapped_work import with_overlapped_work
from fabrictune.collectives.rank_timelines import rank_timelines
from fabrictune.foundation.job_traces import ALONE
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation


def rank_trace(
    axes: Sequence[str],
    work_ps: Sequence[int],
    waits: Sequence[Sequence[int]],
    *,
    steps: Sequence[int] = (),
    measured: Sequence[tuple[int, int, int]] = (),
) -> CommTrace:
    """Return requests of rank 0; `measured` are issue, completion and exposed wait of each."""
    num_requests = len(axes)
    zeros = np.zeros(num_requests, np.int64)
    issue, complete, exposed = np.array(measured or [(UNKNOWN,) * 3] * num_requests, np.int64).T
    return CommTrace(
        groups=((0, 1),),
        rank_N=zeros,
        operation_N=zeros + Operation.ALL_REDUCE,
        group_N=zeros,
        peer_N=zeros + UNKNOWN,
        bytes_N=zeros + 8,
        compute_before_ps_N=np.array(work_ps, np.int64),
        step_N=np.array(steps or [0] * num_requests, np.int64),
        axis_N=tuple(axes),
        policy_N=("none",) * num_requests,
        tag_N=("",) * num_requests,
        dependencies=Dependencies.from_lists(waits),
        issue_ps_N=issue,
        complete_ps_N=complete,
        exposed_wait_ps_N=exposed,
    )


def test_waits_count_for_the_axes_waited_for_in_order() -> None:
    """Requests of tp and dp, issued at 10 and 14, complete at 40 and 50; the third waits for both, then works 5.

    Work: 10, the 4 more until the second, and 5. Waiting from 14 on: for tp until 40, for dp from there to 50, and
    for the last request, pp, from 55 to 60.
    """
    trace = rank_trace(("tp", "dp", "pp"), (10, 14, 5), ((), (), (0, 1)))
    timelines = rank_timelines(trace, np.array([10, 14, 55]), np.array([40, 50, 60]))
    assert timelines.axes == ("dp", "pp", "tp")
    assert timelines.work_ps_RS.tolist() == [[19]]
    assert timelines.exposed_ps_RSA.tolist() == [[[10, 5, 26]]]
    assert timelines.step_ps_S.tolist() == [60]


def test_a_request_that_is_complete_before_its_wait_exposes_nothing() -> None:
    """The second request is named after the first, and complete before it."""
    trace = rank_trace(("tp", "dp", "pp"), (10, 14, 5), ((), (), (0, 1)))
    timelines = rank_timelines(trace, np.array([10, 14, 45]), np.array([40, 30, 45]))
    assert timelines.exposed_ps_RSA.tolist() == [[[0, 0, 26]]]


def test_steps_last_from_end_to_end() -> None:
    """The first step ends at 40, the second at 60; the work between counts for the second."""
    trace = rank_trace(("dp", "dp"), (10, 15), ((), (0,)), steps=(3, 4))
    timelines = rank_timelines(trace, np.array([10, 55]), np.array([40, 60]))
    assert timelines.step_S.tolist() == [3, 4]
    assert timelines.step_ps_S.tolist() == [40, 20]
    assert timelines.duration_ps_RS.tolist() == [[40, 20]]
    assert timelines.work_ps_RS.tolist() == [[10, 15]]
    assert timelines.exposed_ps_RSA.tolist() == [[[30], [5]]]


def test_work_beside_a_request_becomes_one_of_its_own() -> None:
    """A request issued at 10 and waited for from 30 to 40: 20 of work beside it, which the next one waits for as well.

    On a network that takes no time the next request then comes at 30 + 5, and not at 10 + 5.
    """
    trace = rank_trace(("dp", "dp"), (10, 5), ((), (0,)), measured=((10, 40, 10), (45, 50, 5)))
    whole = with_overlapped_work(trace)
    assert list(whole.axis_N) == ["dp", "dp", ALONE]
    assert whole.compute_before_ps_N.tolist() == [10, 5, 30]
    assert [whole.dependencies.of(row).tolist() for row in range(3)] == [[], [2, 0], []]
    assert whole.groups == ((0, 1), (0,))
    timelines = rank_timelines(whole, np.array([10, 35, 30]), np.array([10, 35, 30]))
    assert timelines.work_ps_RS.tolist() == [[35]]
    assert timelines.exposed_ps_RSA.tolist() == [[[0]]]


def test_measured_waits_are_the_same_exposed_communication() -> None:
    """Requests issued at 10 and 12, waits from 30 to 40 and from 46 to 50, the next request at 57, waited for until 60.

    The ledger's exposed waits are 10, 4 and 3; the work is all the rest of 60.
    """
    measured = ((10, 40, 10), (12, 50, 4), (57, 60, 3))
    trace = with_overlapped_work(rank_trace(("tp", "dp", "tp"), (10, 12, 7), ((), (), (0, 1)), measured=measured))
    alone = trace.issue_ps_N == UNKNOWN
    issue_ps_N, complete_ps_N = trace.issue_ps_N.copy(), trace.complete_ps_N.copy()
    for row in np.flatnonzero(alone).tolist():
        ready_ps = max((int(complete_ps_N[wait]) for wait in trace.dependencies.of(row)), default=0)
        issue_ps_N[row] = complete_ps_N[row] = ready_ps + trace.compute_before_ps_N[row]
    assert complete_ps_N[alone].tolist() == [30, 46]
    timelines = rank_timelines(trace, issue_ps_N, complete_ps_N)
    assert timelines.exposed_ps_RSA.sum(axis=(0, 1)).tolist() == [4, 13]
    assert timelines.work_ps_RS.tolist() == [[43]]


def test_profiles_without_waits_stay_as_they_are() -> None:
    """Without measured waits nothing is known of the work beside a request."""
    trace = rank_trace(("dp", "dp"), (10, 5), ((), (0,)))
    assert with_overlapped_work(trace) is trace


def test_times_that_cannot_be_are_not_measured() -> None:
    """A wait longer than since the beginning, and times beyond the clock: the file is damaged, not the work longer."""
    for measured in ((10, 5, 10), (10, 2**63 - 1, 10), (-7, 20, 10)):
        trace = rank_trace(("dp",), (10,), ((),), measured=(measured,))
        assert with_overlapped_work(trace) is trace
