"""What gloo does for a collective of two ranks beside its messages, and what each part costs.

| operation | on the loopback | beside it |
| --- | --- | --- |
| all-gather | two messages of a quarter, at once | half copied to gloo's buffer before, all to the output after |
| reduce-scatter | a message of half (all-to-all) | half copied to its place before, the halves summed after |

Both wait for a worker thread and back, which is in the call's cost, and fault on new pages of their buffers.

Source: pytorch/gloo `gloo/allgather.cc` and `gloo/alltoall.cc`; pytorch/pytorch
`torch/csrc/distributed/c10d/ProcessGroupGloo.cpp`, `_allgather_base` and `allgather`; `trainer_probe/comm.py`. Left
out: other numbers of ranks.

Shapes: N requests.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import CommTrace, Operation
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S
from fabrictune.validate.calibration import Calibration

NUM_RANKS = 2


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of a collective's time, in picoseconds."""

    call_ps: float  # whatever the size: threads that wake one another, notifications, the smallest exchange
    exchange_ps: float  # its bytes, beyond the smallest exchange
    copy_ps: float
    sum_ps: float
    page_ps: float  # new pages

    @property
    def total_ps(self) -> float:
        """Return the time of the collective."""
        return float(sum(getattr(self, part.name) for part in fields(self)))


def parts_of(operation: Operation, num_bytes: int, page_faults: float, calibration: Calibration) -> Parts:
    """Return the parts of a gathering or scattering of a size in nccl-tests' bytes, with this many page faults."""
    assert operation in (Operation.ALL_GATHER, Operation.REDUCE_SCATTER), operation
    half, copy = num_bytes / NUM_RANKS, calibration.copy
    is_gathering = operation == Operation.ALL_GATHER
    return Parts(
        call_ps=calibration.call_ps[operation.name.lower()],
        exchange_ps=calibration.exchange.beyond_smallest_ps(half),
        copy_ps=copy.beyond_smallest_ps(half) + (copy.beyond_smallest_ps(num_bytes) if is_gathering else 0.0),
        sum_ps=0.0 if is_gathering else calibration.sum.beyond_smallest_ps(num_bytes),
        page_ps=page_faults * calibration.page_ps,
    )


def with_software(trace: CommTrace, software_ps_N: IntArray) -> CommTrace:
    """Return the trace with each request's time beside its messages as work of its rank after it.

    What depends on a request starts so much later; a request that depends on several waits for the software of each.
    """
    waiting_D = np.repeat(np.arange(len(trace)), np.diff(trace.dependencies.offset_N1))
    after_ps_N = np.zeros(len(trace), np.int64)
    np.add.at(after_ps_N, waiting_D, software_ps_N[trace.dependencies.row_D])
    return replace(trace, compute_before_ps_N=trace.compute_before_ps_N + after_ps_N)


def link_ps(num_bytes: int, calibration: Calibration) -> float:
    """Return what the messages of a collective of a size take on the calibrated link."""
    return calibration.latency_ps + num_bytes / NUM_RANKS * BITS_PER_BYTE * PS_PER_S / calibration.rate_bps
