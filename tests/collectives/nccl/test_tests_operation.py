"""Which operation an older run of nccl-tests measured, by what it prints."""

import pytest

from fabrictune.collectives.nccl.tests_operation import possible_operations
from fabrictune.collectives.nccl.tests_output import TestOutput, TestRow, Timing
from fabrictune.foundation.traces import Operation


def output(
    *,
    ratio: float,
    num_ranks: int = 8,
    reduction: str = "sum",
    root: int | None = -1,
    program: str = "",
    gbps: float = 100,
) -> TestOutput:
    """Return a run of one row."""
    timing = Timing(
        duration_ns=1, algorithm_bandwidth_bps=gbps * 1e9, bus_bandwidth_bps=ratio * gbps * 1e9, num_wrong=0
    )
    row = TestRow(
        size_bytes=1,
        num_elements=1,
        type="float",
        reduction=reduction,
        root=root,
        out_of_place=timing,
        in_place=None,
        where="",
    )
    return TestOutput(
        rows=(row,), average_bus_bandwidth_bps=None, num_out_of_bounds=0, num_ranks=num_ranks, program=program
    )


@pytest.mark.parametrize(
    ("run", "operations"),
    [
        (output(ratio=1.75), [Operation.ALL_REDUCE]),
        (output(ratio=0.875), [Operation.REDUCE_SCATTER]),
        (output(ratio=1.0), [Operation.SEND]),
        (output(ratio=1.0, reduction="", root=0), [Operation.BROADCAST]),
        (output(ratio=0.875, reduction=""), [Operation.ALL_GATHER, Operation.ALL_TO_ALL]),
        (output(ratio=1.0, num_ranks=2), [Operation.ALL_REDUCE, Operation.SEND]),
        (output(ratio=1.75, root=None), [Operation.ALL_REDUCE]),
    ],
)
def test_the_ratio_of_bandwidths_tells(run: TestOutput, operations: list[Operation]) -> None:
    """Eight ranks: 14/8, 7/8 or 1; the reduction and the root tell the rest, or it cannot be told."""
    assert list(possible_operations(run)) == operations


def test_a_program_s_name_settles_it() -> None:
    """Also for those that have no counterpart here."""
    assert possible_operations(output(ratio=1.75, program="alltoall_perf")) == (Operation.ALL_TO_ALL,)
    assert possible_operations(output(ratio=1.75, program="hypercube_perf")) == ()


def test_what_is_printed_to_hundredths_is_no_ratio() -> None:
    """0.01 GB/s over 0.01 GB/s may be anything: all that reduces without a root is left."""
    assert len(possible_operations(output(ratio=1, gbps=0.08))) == 3
