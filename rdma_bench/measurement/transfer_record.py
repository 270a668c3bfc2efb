"""Bandwidths and latencies as a run record: table `rdma_transfers`."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from fabrictune.foundation.checks import CheckReport, join_reports, run_check
from fabrictune.foundation.finding_rules.rdma import PARTIAL
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.records import Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.rdma_bench.measurement.slow_hosts import check_hosts
from fabrictune.rdma_bench.measurement.transfers import MeasuredTransfer, MeasuredTransfers, TransferPlan

TABLE = "rdma_transfers"
MATRIX = "rdma matrix"
SEED = 0  # nothing here is drawn at random


def make_transfer_record(
    measured: MeasuredTransfers,
    plan: TransferPlan,
    *,
    kind: str,
    num_planned: int,
    place: str,
    started: float,
    rules: RuleSettings = CATALOG_SETTINGS,
) -> RunRecord:
    """Return the record; `place` says where the workers were, `started` what `time.perf_counter` said at the start."""
    report = join_reports(
        run_check(
            PARTIAL.id, f"{num_planned} planned cases", _is_partial(measured, num_planned), actual="all measured"
        ),
        check_hosts(measured.transfers, is_latency=plan.what == "latency", rules=rules)
        if kind == MATRIX
        else CheckReport(),
    )
    how_far = {"is_partial": bool(measured.stopped), "stopped": measured.stopped}
    return RunRecord(
        kind=kind,
        run=describe_run(seed=SEED, started=started, configuration={**asdict(plan), "place": place}, **how_far),
        tables={TABLE: to_columns(TABLE, [_row(transfer) for transfer in measured.transfers])},
        findings=report.findings,
        checks=report.checks,
    )


def _row(transfer: MeasuredTransfer) -> dict[str, Any]:
    return {
        "sender": transfer.sender,
        "receiver": transfer.receiver,
        "queue_pairs": transfer.num_queue_pairs,
        "size_bytes": transfer.size_bytes,
        "directions": transfer.num_directions,
        "bandwidth_bps": transfer.bandwidth_bps,
        "median_ns": transfer.median_ns,
        "p99_ns": transfer.p99_ns,
    }


def _is_partial(measured: MeasuredTransfers, num_planned: int) -> Iterator[Finding]:
    if measured.stopped:
        yield PARTIAL.finding(
            entity="the run",
            expected=f"{num_planned} cases",
            actual=f"stopped after {len(measured.transfers)}: {measured.stopped}",
            confidence=Confidence.MEASURED,
        )
