"""Closed forms against numbers worked out by hand and published factors."""

import pytest

from fabrictune.collectives.bounds import bus_factor
from fabrictune.foundation.metrics.formulas import bus_bandwidth_bps
from fabrictune.foundation.traces import Operation


@pytest.mark.parametrize(
    ("operation", "num_ranks", "factor"),
    [
        (Operation.ALL_REDUCE, 2, 1.0),
        (Operation.ALL_REDUCE, 8, 1.75),
        (Operation.ALL_GATHER, 8, 0.875),
        (Operation.REDUCE_SCATTER, 4, 0.75),
        (Operation.ALL_TO_ALL, 4, 0.75),
        (Operation.BROADCAST, 8, 1.0),
        (Operation.SEND, 2, 1.0),
        (Operation.RECEIVE, 2, 1.0),
    ],
)
def test_bus_factors_are_those_of_nccl_tests(operation: Operation, num_ranks: int, factor: float) -> None:
    """PERFORMANCE.md: 2(n - 1)/n for all-reduce, (n - 1)/n for its halves and all-to-all, 1 for all others."""
    assert bus_factor(operation, num_ranks) == factor


def test_bus_bandwidth_is_comparable_with_the_link() -> None:
    """A perfect ring keeps every link busy: 4 ranks, 1 GB at 8 Gbps take 1.5 s, and busbw gives the 8 Gbps back."""
    factor = bus_factor(Operation.ALL_REDUCE, 4)
    assert bus_bandwidth_bps(10**9, factor, 1_500_000_000_000) == pytest.approx(8e9)
