"""Closed forms: what a collective cannot be faster than, and the bandwidth nccl-tests reports for it.

`num_bytes` is nccl-tests' size: the full buffer of the operation on one rank (the output of an all-gather, the input
of a reduce-scatter).

Source: NVIDIA nccl-tests, doc/PERFORMANCE.md; Patarasuk and Yuan, JPDC 69 (2009).
"""

from collections.abc import Callable, Mapping

from foundation.traces import Operation

BITS_PER_BYTE = 8
PS_PER_S = 10**12

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


def bus_bandwidth_bps(operation: Operation, num_ranks: int, num_bytes: int, duration_ps: int) -> float:
    """Return nccl-tests' busbw, in bits a second: comparable with the rate of a rank's link for any rank count."""
    return num_bytes * BITS_PER_BYTE * bus_factor(operation, num_ranks) / (duration_ps / PS_PER_S)


def ring_all_reduce_ps(num_ranks: int, num_bytes: int, rate_bps: float, latency_ps: float) -> float:
    """Return the time of a ring all-reduce where nothing disturbs it.

    `rate_bps` is the rate of one rank's link for payload, `latency_ps` one message's time from sender to receiver
    beyond its own bytes over the rate: 2(n - 1)/n * bytes / rate + 2(n - 1) * latency.
    """
    wire_ps = bus_factor(Operation.ALL_REDUCE, num_ranks) * num_bytes * BITS_PER_BYTE / rate_bps * PS_PER_S
    return wire_ps + 2 * (num_ranks - 1) * latency_ps
