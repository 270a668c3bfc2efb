"""Who sends how much to whom over gloo, by hand."""

import numpy as np

from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation
from fabrictune.validate.gloo_pairs import pair_bytes


def pairs(operation: Operation, *, ranks: tuple[int, ...] = (0, 1, 2, 3), peer: int = UNKNOWN) -> list[list[float]]:
    """Return the bytes from rank to rank of one request of 400 bytes of each rank, two steps of it."""
    num = 2 * len(ranks)
    trace = CommTrace(
        groups=((0, 1, 2, 3),),
        rank_N=np.array(ranks * 2),
        operation_N=np.full(num, operation),
        group_N=np.zeros(num, np.int64),
        peer_N=np.full(num, peer),
        bytes_N=np.full(num, 400),
        compute_before_ps_N=np.zeros(num, np.int64),
        step_N=np.repeat([0, 1], len(ranks)),
        axis_N=("dp",) * num,
        policy_N=("none",) * num,
        tag_N=("",) * num,
        dependencies=Dependencies.none(num),
    )
    found: list[list[float]] = pair_bytes(trace, step=1, num_ranks=4).tolist()
    return found


def test_a_gathering_goes_round_one_way_and_a_reduction_the_other() -> None:
    """3/4 of 400 bytes to the next rank; twice that to the one before."""
    assert pairs(Operation.ALL_GATHER) == [[0, 300, 0, 0], [0, 0, 300, 0], [0, 0, 0, 300], [300, 0, 0, 0]]
    assert pairs(Operation.ALL_REDUCE) == [[0, 0, 0, 600], [600, 0, 0, 0], [0, 600, 0, 0], [0, 0, 600, 0]]


def test_a_scattering_sends_each_its_part_and_a_message_all() -> None:
    """100 bytes to each of three others; 400 to the peer, of its sender alone."""
    even = [[0 if source == target else 100 for target in range(4)] for source in range(4)]
    assert pairs(Operation.REDUCE_SCATTER) == pairs(Operation.ALL_TO_ALL) == even
    assert pairs(Operation.SEND, ranks=(1,), peer=3) == [[0] * 4, [0, 0, 0, 400], [0] * 4, [0] * 4]
    assert pairs(Operation.RECEIVE, ranks=(3,), peer=1) == [[0] * 4] * 4
