"""Times, spread and stragglers of notes whose numbers are small enough to follow."""

import numpy as np

from fabrictune.collectives.measurement.spec import BenchCase
from fabrictune.collectives.measurement.timing import Straggler, TimingSamples, find_straggler

ALL_REDUCE = BenchCase(name="all_reduce", size_bytes=8, is_in_place=True)
BROADCAST = BenchCase(name="broadcast", size_bytes=8, is_in_place=True)


def notes(began_RK: list[list[int]], ended_RK: list[list[int]]) -> TimingSamples:
    """Return the notes of one case."""
    num_ranks = len(began_RK)
    return TimingSamples(
        began_ns_RCK=np.array(began_RK)[:, None, :],
        ended_ns_RCK=np.array(ended_RK)[:, None, :],
        num_wrong_RC=np.zeros((num_ranks, 1), np.int64),
        host_R=np.zeros(num_ranks, np.int64),
        clock_error_ns_R=np.zeros(num_ranks, np.int64),
    )


def test_a_time_is_that_of_the_whole_loop_averaged_over_ranks() -> None:
    """Rank 0 needs 30 ns for two iterations, rank 1 24: 15 and 12, on average 13.5."""
    found = notes([[0, 20], [6, 20]], [[15, 30], [16, 30]])
    assert found.mean_ns_C.tolist() == [13.5]


def test_an_iteration_lasts_from_the_last_to_come_to_the_last_to_go() -> None:
    """First: 6 to 16 after 6 of waiting; second: both come at 20, the last goes at 30."""
    found = notes([[0, 20], [6, 20]], [[15, 30], [16, 30]])
    assert found.iteration_ns_CK.tolist() == [[10, 10]]
    assert found.skew_ns_CK.tolist() == [[6, 0]]
    assert found.last_rank_CK.tolist() == [[1, 0]]


def late(rank: int, *, by_ns: int) -> TimingSamples:
    """Return four iterations of 100 ns among four ranks, one of which is always late."""
    began = [[100 * k + (by_ns if own == rank else own) for k in range(4)] for own in range(4)]
    return notes(began, [[100 * (k + 1) for k in range(4)] for _ in range(4)])


def test_who_is_always_late_is_a_straggler() -> None:
    """Rank 1 comes 60 ns after the first, every time; loops take 400, 340, 398 and 397 ns, iterations a quarter."""
    found = find_straggler(late(1, by_ns=60), [ALL_REDUCE])
    assert found == Straggler(rank=1, last_fraction=1.0, late_fraction=60 / (1535 / 4 / 4))


def test_who_costs_nobody_time_is_none() -> None:
    """Always last, by 5 of 100 ns."""
    assert find_straggler(late(1, by_ns=5), [ALL_REDUCE]) is None


def test_who_is_last_in_his_turn_is_none() -> None:
    """Two ranks, last by turns: each in half of the iterations."""
    began = [[0, 150], [50, 100]]
    assert find_straggler(notes(began, [[100, 200]] * 2), [ALL_REDUCE]) is None


def test_nobody_is_late_for_a_broadcast() -> None:
    """Its root is done before the others have come, and so always first."""
    assert find_straggler(late(1, by_ns=60), [BROADCAST]) is None
