"""Measured beside simulated: durations counted from the last to ask to the last to be done, on both sides."""

import numpy as np

from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation
from fabrictune.validate.comparison import collective_times, step_times


def test_collectives_are_compared_in_order_of_time() -> None:
    """Two all-reduces of two ranks. Measured: the first from 12 to 50, the second from 60 to 90.

    Simulated: requests are asked for at 5, 8, 30 and 31; the first is done at 27 and 28, the second at 41 and 51.
    """
    zeros = np.zeros(4, np.int64)
    trace = CommTrace(
        groups=((0, 1),),
        rank_N=np.array([0, 0, 1, 1]),
        operation_N=zeros + Operation.ALL_REDUCE,
        group_N=zeros,
        peer_N=zeros + UNKNOWN,
        bytes_N=np.array([8, 16, 8, 16]),
        compute_before_ps_N=zeros,
        step_N=np.array([0, 1, 0, 1]),
        axis_N=("dp",) * 4,
        policy_N=("none",) * 4,
        tag_N=("",) * 4,
        dependencies=Dependencies.none(4),
        issue_ps_N=np.array([10, 60, 12, 55]),
        complete_ps_N=np.array([50, 90, 45, 80]),
        exposed_wait_ps_N=np.array([30, 20, 28, 18]),
    )
    transfers = {
        "operation": np.array([0, 1, 2, 3, 0, 1, 2, 3, 4]),
        "finish_ps": np.array([5, 30, 8, 31, 27, 41, 28, 51, 99]),  # the last of a request behind the trace's
    }
    times = collective_times(trace, transfers, zeros)
    assert times.step_C.tolist() == [0, 1]
    assert times.bytes_C.tolist() == [8, 16]
    assert times.operation_C == ("all_reduce", "all_reduce")
    assert times.measured_ps_C.tolist() == [38, 30]
    assert times.simulated_ps_C.tolist() == [20, 20]
    late = collective_times(trace, transfers, np.array([0, 3, 10, 1]))
    assert late.simulated_ps_C.tolist() == [30, 21], "what a request takes beside its messages is added to its end"
    steps = step_times(trace, times)
    assert steps.measured_ps_S.tolist() == [38, 30]
    assert steps.simulated_ps_S.tolist() == [20, 20]
    assert steps.work_ps_S.tolist() == [38 - 29, 30 - 19], "less what the two ranks wait on average"
