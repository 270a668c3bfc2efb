"""Bytes that each rank sends to each other over gloo, from a trace of requests, by gloo's algorithms.

| operation | of S bytes, n ranks |
| --- | --- |
| all-reduce | ring: 2 (n-1)/n S to one neighbour |
| all-gather | ring: (n-1)/n S to one neighbour |
| reduce-scatter, all-to-all | S/n to each other rank; `trainer_probe/comm.py` sums after an all-to-all |
| send | S to the peer |

Source: pytorch/gloo `gloo/allreduce.cc` (ring), `gloo/allgather.cc`, `gloo/alltoall.cc`. Left out: broadcasts, barriers
and what only starts and ends a run.

Shapes: R ranks, N requests.
"""

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray
from fabrictune.foundation.traces import CommTrace, Operation

TO_ALL = (Operation.REDUCE_SCATTER, Operation.ALL_TO_ALL)
NEXT_BY = {Operation.ALL_GATHER: 1, Operation.ALL_REDUCE: -1}  # places along the ring to the neighbour
ROUNDS = {Operation.ALL_GATHER: 1, Operation.ALL_REDUCE: 2}


def pair_bytes(trace: CommTrace, *, step: int, num_ranks: int, is_counted_N: BoolArray | None = None) -> FloatArray:
    """Return the bytes from rank to rank in a step of the trace, of all or some of its requests; shape (R, R)."""
    bytes_RR = np.zeros((num_ranks, num_ranks))
    is_own_N = trace.step_N == step if is_counted_N is None else (trace.step_N == step) & is_counted_N
    for request in np.nonzero(is_own_N)[0].tolist():
        rank, size = int(trace.rank_N[request]), int(trace.bytes_N[request])
        members, operation = trace.groups[trace.group_N[request]], Operation(int(trace.operation_N[request]))
        share = size / len(members)
        if operation == Operation.SEND:
            bytes_RR[rank, int(trace.peer_N[request])] += size
        elif operation in TO_ALL:
            bytes_RR[rank, [member for member in members if member != rank]] += share
        elif operation in NEXT_BY and len(members) > 1:
            neighbour = members[(members.index(rank) + NEXT_BY[operation]) % len(members)]
            bytes_RR[rank, neighbour] += ROUNDS[operation] * (len(members) - 1) * share
    return bytes_RR
