"""Bandwidths and latencies as a run record.

Table `rdma_transfers`, a row for each case: sender and receiver (workers), queue_pairs, size_bytes, directions (1, 2),
bandwidth_bps of all directions together, median_ns and p99_ns (0 where it was not what was measured).
"""

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from fabrictune.foundation.records import Confidence, Finding, RunRecord, Severity, describe_run
from fabrictune.rdma_bench.measurement.transfers import MeasuredTransfers, TransferPlan

TABLE = "rdma_transfers"
SEED = 0  # nothing here is drawn at random


def make_record(
    measured: MeasuredTransfers, plan: TransferPlan, *, kind: str, num_planned: int, place: str, started: float
) -> RunRecord:
    """Return the record; `place` says where the workers were, `started` what `time.perf_counter` said at the start."""
    rows = measured.transfers
    how_far = {"is_partial": bool(measured.stopped), "stopped": measured.stopped}
    return RunRecord(
        kind=kind,
        run=describe_run(seed=SEED, started=started, configuration={**asdict(plan), "place": place}, **how_far),
        tables={
            TABLE: {
                "sender": np.array([row.sender for row in rows]),
                "receiver": np.array([row.receiver for row in rows]),
                "queue_pairs": np.array([row.num_queue_pairs for row in rows]),
                "size_bytes": np.array([row.size_bytes for row in rows]),
                "directions": np.array([row.num_directions for row in rows]),
                "bandwidth_bps": np.array([row.bandwidth_bps for row in rows]),
                "median_ns": np.array([row.median_ns for row in rows]),
                "p99_ns": np.array([row.p99_ns for row in rows]),
            }
        },
        findings=tuple(_is_partial(measured, num_planned)),
    )


def _is_partial(measured: MeasuredTransfers, num_planned: int) -> Iterator[Finding]:
    if measured.stopped:
        yield Finding(
            id="rdma.partial",
            severity=Severity.WARNING,
            entity="the run",
            expected=f"{num_planned} cases",
            actual=f"{len(measured.transfers)}, then {measured.stopped}",
            next_step="measure again; what is there can be used",
            confidence=Confidence.MEASURED,
        )
