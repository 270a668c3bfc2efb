"""Jobs written down without running them."""

from collectives.jobs import collective_step
from foundation.layout import ParallelLayout
from foundation.traces import Operation


def test_every_rank_asks_its_data_parallel_group_once() -> None:
    """tp 2, dp 3, pp 2: four groups of three, e.g. ranks 0, 2, 4 of the first stage's first tensor rank."""
    trace = collective_step(ParallelLayout(tp=2, dp=3, pp=2), 1_000)
    assert trace.groups == ((0, 2, 4), (1, 3, 5), (6, 8, 10), (7, 9, 11))
    assert sorted(trace.rank_N.tolist()) == list(range(12))
    assert set(trace.operation_N.tolist()) == {Operation.ALL_REDUCE}
    assert set(trace.bytes_N.tolist()) == {1_000}
    assert len(trace.dependencies.row_D) == 0
