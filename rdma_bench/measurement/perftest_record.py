"""Results of perftest's programs as a run record: table `perftest`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fabrictune.foundation.checks import run_check, skip_check
from fabrictune.foundation.finding_rules.rdma import MESSAGE_RATE_CONTRADICTION
from fabrictune.foundation.records import Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.units import format_rate
from fabrictune.rdma_bench.measurement.perftest_files import PerftestFile, PerftestRow, rate_contradictions

TABLE = "perftest"
KIND = "rdma import"
SEED = 0  # nothing here is drawn at random
_COLUMN_OF = {"num_queue_pairs": "queue_pairs"}


def make_perftest_record(files: Sequence[PerftestFile], *, started: float) -> RunRecord:
    """Return the record of several files; `started` is what `time.perf_counter` said at the start."""
    rows = [(file.path, row) for file in files for row in file.rows]
    compared = [row for _, row in rows if row.bandwidth_bps > 0 and row.messages_per_s > 0]
    subject = f"{len(compared):,} rows with a bandwidth and a rate of messages"
    report = (
        run_check(MESSAGE_RATE_CONTRADICTION.id, subject, _contradictions(compared), expected="the same of both")
        if compared
        else skip_check(MESSAGE_RATE_CONTRADICTION.id, f"{len(rows):,} rows", "no row has both")
    )
    configuration = {"sources": [str(file.path) for file in files]}
    run: dict[str, Any] = describe_run(seed=SEED, started=started, configuration=configuration)
    notes = [note for file in files for note in file.notes]
    return RunRecord(
        kind=KIND,
        run={**run, **({"notes": notes} if notes else {})},
        tables={TABLE: to_columns(TABLE, [_row(path, row) for path, row in rows])},
        findings=report.findings,
        checks=report.checks,
    )


def _row(path: Path, row: PerftestRow) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in PerftestRow.__slots__ if name != "where"}
    return {"source": path.name, **{_COLUMN_OF.get(name, name): value for name, value in values.items()}}


def _contradictions(rows: Sequence[PerftestRow]) -> Iterator[Finding]:
    for row, product_bps in rate_contradictions(rows):
        yield MESSAGE_RATE_CONTRADICTION.finding(
            entity=f"{row.device or 'a device'}, {row.size_bytes} B",
            expected=f"{format_rate(product_bps)}, its rate of messages times their size",
            actual=format_rate(row.bandwidth_bps),
            confidence=Confidence.MEASURED,
            evidence=(row.where,),
        )
