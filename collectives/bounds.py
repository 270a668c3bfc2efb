"""Bus factors of nccl-tests, which make bandwidths comparable over operations and numbers of ranks.

`num_bytes` is nccl-tests' size: the full buffer of the operation on one rank (the output of an all-gather, the input
of a reduce-scatter).

Source: NVIDIA nccl-tests, doc/PERFORMANCE.md; Patarasuk and Yuan, JPDC 69 (2009).
"""

from collections.abc import Callable, Mapping

from fabrictune.foundation.traces import Operation

_BUS_FACTORS: Mapping[Operation, Callable[[int], float]] = {
    Operation.ALL_REDUCE: lambda n: 2 * (n - 1) / n,
    Operation.REDUCE_SCATTER: lambda n: (n - 1) / n,
    Operation.ALL_GATHER: lambda n: (n - 1) / n,
    Operation.ALL_TO_ALL: lambda n: (n - 1) / n,
    Operation.BROADCAST: lambda n: 1.0,
    Operation.SEND: lambda n: 1.0,
    Operation.RECEIVE: lambda n: 1.0,
}


def bus_factor(operation: Operation, num_ranks: int) -> float:
    """Return bus bandwidth over algorithm bandwidth: the buffers a rank must at least send, as a share of one."""
    assert operation in _BUS_FACTORS, f"no bus bandwidth is defined for {operation.name}"
    return _BUS_FACTORS[operation](num_ranks)
