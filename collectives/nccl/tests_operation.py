"""Operation of a run of nccl-tests: by its program's name, or else by what only that operation prints.

Older runs do not name their program. Their rows still tell the reduction and the root, and the ratio of bus to
algorithm bandwidth, which is 2(n - 1)/n for an all-reduce and (n - 1)/n for operations in parts. An all-gather and an
all-to-all print the same, and among two ranks an all-reduce prints what a send does.

Source: nccl-tests, src/*.cu (run of types and reductions, GetBw); doc/PERFORMANCE.md.
"""

from collections.abc import Mapping

from fabrictune.collectives.bounds import bus_factor
from fabrictune.collectives.nccl.tests_output import BPS_PER_GB_PER_S, TestOutput
from fabrictune.foundation.traces import Operation

PROGRAMS: Mapping[str, Operation] = {
    "all_reduce_perf": Operation.ALL_REDUCE,
    "all_gather_perf": Operation.ALL_GATHER,
    "reduce_scatter_perf": Operation.REDUCE_SCATTER,
    "broadcast_perf": Operation.BROADCAST,
    "alltoall_perf": Operation.ALL_TO_ALL,
    "sendrecv_perf": Operation.SEND,
}
# operation -> whether it reduces, whether it has a root
_PRINTS: Mapping[Operation, tuple[bool, bool]] = {
    Operation.ALL_REDUCE: (True, False),
    Operation.REDUCE_SCATTER: (True, False),
    Operation.SEND: (True, False),  # prints a reduction, though it has none
    Operation.ALL_GATHER: (False, False),
    Operation.ALL_TO_ALL: (False, False),
    Operation.BROADCAST: (False, True),
}
_TOLERANCE = 0.02  # of a ratio of numbers printed to hundredths
_LEAST_BPS = BPS_PER_GB_PER_S  # below it a hundredth is too much


def possible_operations(output: TestOutput) -> tuple[Operation, ...]:
    """Return the operations that a run can have measured; none where its program is one that is not known here."""
    if output.program:
        return (PROGRAMS[output.program],) if output.program in PROGRAMS else ()
    timings = [(row, timing) for row in output.rows for timing in (row.out_of_place, row.in_place) if timing]
    row, timing = max(timings, key=lambda pair: pair[1].algorithm_bandwidth_bps, default=(None, None))
    if row is None or timing is None:
        return ()
    is_reduced, is_rooted = bool(row.reduction), row.root is not None and row.root >= 0
    candidates = [operation for operation, printed in _PRINTS.items() if printed == (is_reduced, is_rooted)]
    if output.num_ranks < 2 or timing.algorithm_bandwidth_bps < _LEAST_BPS:
        return tuple(candidates)
    ratio = timing.bus_bandwidth_bps / timing.algorithm_bandwidth_bps
    return tuple(
        operation for operation in candidates if abs(ratio / bus_factor(operation, output.num_ranks) - 1) < _TOLERANCE
    )
