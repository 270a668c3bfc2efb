"""Published results about collectives, and how ours are obtained."""

from functools import partial

import numpy as np

from collectives.algorithms import ALGORITHMS
from collectives.bounds import bus_bandwidth_bps
from collectives.checker import find_errors
from collectives.schedule import chunk_sizes
from foundation.cases import Case, exactly
from foundation.traces import Operation

_PROOF_SIZES = (1, 2, 3, 5, 8, 16, 31, 64)


def cases() -> tuple[Case, ...]:
    """Return every case of this package."""
    return (*(_proof(operation) for operation in ALGORITHMS["ring"].schedules), *_moved_bytes(), _bus_bandwidth())


def _proof(operation: Operation) -> Case:
    name = operation.name.lower().replace("_", "-")
    return Case(
        name=f"collectives.ring-{name}-errors",
        source=f"symbolic execution for {', '.join(map(str, _PROOF_SIZES))} ranks: each contribution exactly once",
        unit="errors",
        **exactly(0),
        run=lambda: sum(
            len(find_errors(ALGORITHMS["ring"].schedules[operation](num_ranks), operation))
            for num_ranks in _PROOF_SIZES
        ),
    )


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
    schedule = ALGORITHMS["ring"].schedules[Operation.ALL_REDUCE](num_ranks)
    sent = np.bincount(schedule.sender_M, weights=chunk_sizes(num_bytes, num_ranks)[schedule.chunk_M])
    return float(sent.max())


def _bus_bandwidth() -> Case:
    """1 GB over 8 ranks in 5 ms is 200 GB/s of algorithm and 350 GB/s of bus bandwidth."""
    return Case(
        name="collectives.all-reduce-bus-bandwidth",
        source="nccl-tests PERFORMANCE.md: busbw = S/t * 2(n - 1)/n",
        unit="bps",
        **exactly(350e9 * 8),
        run=lambda: bus_bandwidth_bps(Operation.ALL_REDUCE, 8, 10**9, 5 * 10**9),
    )
