"""Measured beside simulated: durations counted from the last to ask to the last to be done, on both sides."""

import numpy as np

from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation
from fabrictune.validate.comparison import compare_collectives


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
        exposed_wait_ps_N=zeros,
    )
    transfers = {
        "operation": np.array([0, 1, 2, 3, 0, 1, 2, 3]),
        "finish_ps": np.array([5, 30, 8, 31, 27, 41, 28, 51]),
    }
    table = compare_collectives(trace, transfers).table()
    assert table["step"].tolist() == [0, 1]
    assert table["bytes"].tolist() == [8, 16]
    assert table["operation"].tolist() == ["all_reduce", "all_reduce"]
    assert table["measured_ps"].tolist() == [38, 30]
    assert table["simulated_ps"].tolist() == [20, 20]
    assert table["ratio"].tolist() == [20 / 38, 20 / 30]
