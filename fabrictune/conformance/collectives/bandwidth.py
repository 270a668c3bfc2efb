"""Bytes that must be moved, and the bandwidth that nccl-tests reports for them."""

from functools import partial

import numpy as np

from fabrictune.collectives.bounds import bus_factor
from fabrictune.collectives.schedule import GroupShape
from fabrictune.collectives.schedules import ring
from fabrictune.foundation.cases import Case, exactly
from fabrictune.foundation.metrics.formulas import bus_bandwidth_bps
from fabrictune.foundation.traces import Operation


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (*_moved_bytes(), _bus_bandwidth())


def _moved_bytes() -> tuple[Case, ...]:
    """The most a rank sends: with chunks of S/n bytes each rank sends 2(n - 1) of them."""
    return tuple(
        Case(
            name=f"collectives.ring-all-reduce-bytes-{num_ranks}-ranks",
            source="closed form: 2(n - 1)/n * S; Patarasuk and Yuan, JPDC 69 (2009)",
            unit="B",
            **exactly(2 * (num_ranks - 1) * num_bytes / num_ranks),
            run=partial(_most_bytes_sent, num_ranks, num_bytes),
        )
        for num_ranks, num_bytes in ((2, 2**20), (8, 128 * 10**6), (48, 48 * 10**6))
    )


def _most_bytes_sent(num_ranks: int, num_bytes: int) -> float:
    schedule = ring.all_reduce(GroupShape(num_members=num_ranks))
    sent = np.bincount(schedule.sender_M, weights=schedule.bytes_M(num_bytes))
    return float(sent.max())


def _bus_bandwidth() -> Case:
    """1 GB over 8 ranks in 5 ms is 200 GB/s of algorithm and 350 GB/s of bus bandwidth."""
    return Case(
        name="collectives.all-reduce-bus-bandwidth",
        source="nccl-tests PERFORMANCE.md: busbw = S/t * 2(n - 1)/n",
        unit="bps",
        **exactly(350e9 * 8),
        run=lambda: bus_bandwidth_bps(10**9, bus_factor(Operation.ALL_REDUCE, 8), 5 * 10**9),
    )
