"""Jobs written down without running them."""

from fabrictune.collectives.jobs import collective_step
from fabrictune.collectives.request_matching import match_requests
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import UNKNOWN, Operation


def test_every_rank_asks_its_data_parallel_group_once() -> None:
    """tp 2, dp 3, pp 2: four groups of three, e.g. ranks 0, 2, 4 of the first stage's first tensor rank."""
    trace = collective_step(ParallelLayout(tp=2, dp=3, pp=2), 1_000)
    assert trace.groups == ((0, 2, 4), (1, 3, 5), (6, 8, 10), (7, 9, 11))
    assert sorted(trace.rank_N.tolist()) == list(range(12))
    assert set(trace.operation_N.tolist()) == {Operation.ALL_REDUCE}
    assert set(trace.bytes_N.tolist()) == {1_000}
    assert len(trace.dependencies.row_D) == 0
    assert set(trace.tag_N) == {"gradients"}
    assert set(collective_step(ParallelLayout(dp=3), 1_000, operation=Operation.ALL_GATHER).tag_N) == {"all_gather"}


def test_every_rank_sends_to_the_next_of_its_group() -> None:
    """Three in a ring: 0 to 1, 1 to 2, 2 to 0, and as many receives, which all meet; a rank alone sends nothing."""
    trace = collective_step(ParallelLayout(dp=3), 1_000, operation=Operation.SEND)
    (batch,) = match_requests(trace)
    assert trace.rank_N[batch.request_Cn].tolist() == [[0, 1], [1, 2], [2, 0]]
    assert len(collective_step(ParallelLayout(tp=3), 1_000, operation=Operation.SEND)) == 0


def test_broadcasts_begin_at_the_first_of_each_group() -> None:
    """tp 2, dp 3: rank 0 to 2 and 4, rank 1 to 3 and 5; no other operation has a root."""
    trace = collective_step(ParallelLayout(tp=2, dp=3), 1_000, operation=Operation.BROADCAST)
    assert trace.peer_N.tolist() == [0, 0, 0, 1, 1, 1]
    assert set(collective_step(ParallelLayout(tp=2, dp=3), 1_000).peer_N.tolist()) == {UNKNOWN}
