"""A small trace with something of everything."""

import pytest

from fabrictune.collectives.traces.builder import TraceRow, build_trace
from fabrictune.foundation.traces import CommTrace, Operation


@pytest.fixture
def both() -> CommTrace:
    """Two ranks: an all-reduce, a message from 0 to 1 after 5 ps of work, and a broadcast that waits for both."""
    pair = (0, 1)
    requests = []
    for rank in pair:
        first = 3 * rank
        message = Operation.RECEIVE if rank else Operation.SEND
        requests += [
            TraceRow(rank=rank, operation=Operation.ALL_REDUCE, group=pair, num_bytes=1000, tag="gradients"),
            TraceRow(
                rank=rank,
                operation=message,
                group=pair,
                num_bytes=10,
                peer=1 - rank,
                compute_before_ps=5,
                waits=(first,),
            ),
            TraceRow(
                rank=rank, operation=Operation.BROADCAST, group=pair, num_bytes=7, peer=1, waits=(first, first + 1)
            ),
        ]
    return build_trace(requests)
