"""Measurements from files: a record of our own, the text or JSON of nccl-tests, or lines of NCCL Inspector.

What nccl-tests does not say (the operation in older text, the number of ranks where its head is missing) is given
at the import; what it says twice is compared (`tests_checks`), and what is left out is counted in notes. Of a file's
environment only settings of the network are kept, and hosts are counted, not named, unless their names are to be kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabrictune.collectives.measurement.measurements import TABLE, UNCHECKED, Measurement, from_record, to_table
from fabrictune.collectives.measurement.spec import BENCHED
from fabrictune.collectives.nccl.inspector import is_inspector, read_inspector
from fabrictune.collectives.nccl.tests_checks import (
    average_contradictions,
    bandwidth_contradictions,
    notes_on,
    rank_count,
)
from fabrictune.collectives.nccl.tests_json import read_test_json
from fabrictune.collectives.nccl.tests_operation import possible_operations
from fabrictune.collectives.nccl.tests_output import TestOutput
from fabrictune.collectives.nccl.tests_text import read_test_text
from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.finding_rules.catalog import find_rule
from fabrictune.foundation.finding_rules.collectives import (
    AVERAGE_CONTRADICTION,
    BANDWIDTH_CONTRADICTION,
    MISSING_RANKS,
)
from fabrictune.foundation.findings import Finding
from fabrictune.foundation.foreign_files import open_foreign
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.traces import Operation

MAX_FILE_BYTES = 2**40
MOST_WRONG = 2**53
SEED = 0  # nothing here is drawn at random
_NAMES = {operation: name for name, operation in BENCHED.items()}


@dataclass(frozen=True, kw_only=True)
class ImportHints:
    """Facts that the user states because the file may not have them."""

    name: str | None = None  # of the operation
    num_ranks: int | None = None
    keeps_hosts: bool = False


@dataclass(frozen=True, kw_only=True)
class MeasurementFiles:
    """Measurements, and what is known of how they came about."""

    rows: tuple[Measurement, ...]
    source: str
    num_hosts: int  # 0 where it is not known
    hosts: tuple[str, ...] = ()  # their names, where they are kept
    settings: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what was left out
    report: CheckReport = field(default_factory=CheckReport)  # of the file against itself

    def record(self, *, started: float) -> RunRecord:
        """Return a record of kind `coll import`; `started` is what `time.perf_counter` said at the start."""
        configuration: dict[str, Any] = {
            "source": self.source,
            "num_hosts": self.num_hosts,
            "hosts": list(self.hosts),
            "settings": self.settings,
        }
        run = describe_run(seed=SEED, started=started, configuration=configuration)
        notes = {"notes": list(self.notes)} if self.notes else {}
        return RunRecord(
            kind="coll import",
            run={**run, **notes},
            tables={TABLE: to_table(self.rows)},
            findings=self.report.findings,
            checks=self.report.checks,
        )


def read_measurements(path: Path, hints: ImportHints | None = None) -> MeasurementFiles:
    """Return what was measured; raises InputError, which says what has to be stated."""
    hints = hints or ImportHints()
    if is_inspector(path):
        return _from_inspector(path, hints)
    if path.is_dir():
        record = RunRecord.read(path, tables=(TABLE,))
        rows = from_record(record, where=str(path))
        return MeasurementFiles(
            rows=rows,
            source=record.kind,
            num_hosts=_hosts_of(record),
            notes=(*map(str, record.run.get("notes", ())), *_unknown_rules(record)),
            report=_report_of(record),
        )
    runs, is_json = _read_runs(path)
    hosts = tuple(dict.fromkeys(host for run in runs for host in run.hosts))
    imported = [_import(run, hints) for run in runs]
    rows = tuple(row for one in imported for row in one.rows)
    if not rows:
        found = "no row with a size and a time"
        raise InputError(Mistake(where=str(path), found=found, allowed="sizes from 1 B on, each with its time"))
    return MeasurementFiles(
        rows=rows,
        source=f"nccl-tests, {'JSON' if is_json else 'text'}",
        num_hosts=len(hosts),
        hosts=hosts if hints.keeps_hosts else (),
        settings={name: value for run in runs for name, value in run.settings.items()},
        notes=tuple(note for run in runs for note in notes_on(run)),
        report=join_reports(*(one.report for one in imported)),
    )


def _from_inspector(path: Path, hints: ImportHints) -> MeasurementFiles:
    results = read_inspector(path)
    return MeasurementFiles(
        rows=results.rows,
        source="NCCL Inspector",
        num_hosts=len(results.hosts),
        hosts=results.hosts if hints.keeps_hosts else (),
        notes=results.notes,
    )


def _read_runs(path: Path) -> tuple[tuple[TestOutput, ...], bool]:
    """Return the runs of a file, and whether it is JSON; raises InputError.

    Text may begin with a brace, too: that of a launcher's own line.
    """
    if _first_byte(path) != b"{":
        return read_test_text([path]), False
    try:
        return (read_test_json(path),), True
    except InputError as json_error:
        try:
            return read_test_text([path]), False
        except InputError:
            raise json_error from None


def _first_byte(path: Path) -> bytes:
    with open_foreign(path, max_bytes=MAX_FILE_BYTES) as file:
        return file.read(4096).lstrip()[:1]


def _hosts_of(record: RunRecord) -> int:
    configuration = record.run.get("configuration")
    number = configuration.get("num_hosts") if isinstance(configuration, dict) else None
    return number if isinstance(number, int) and number > 0 else 0


def _report_of(record: RunRecord) -> CheckReport:
    """Return the checks that an import made, of a record that is one, as far as their rules are known here."""
    if record.kind != "coll import":
        return CheckReport()
    return CheckReport(
        checks=tuple(check for check in record.checks or () if find_rule(check.rule)),
        findings=tuple(finding for finding in record.findings if find_rule(finding.id)),
    )


def _unknown_rules(record: RunRecord) -> Iterator[str]:
    """Yield a note of the checks and findings of an import that `_report_of` leaves out."""
    ids = (*(check.rule for check in record.checks or ()), *(finding.id for finding in record.findings))
    if record.kind == "coll import" and (unknown := [one for one in ids if find_rule(one) is None]):
        yield f"checks and findings of rules that this version does not have, left out: {len(unknown)}"


@dataclass(frozen=True, kw_only=True)
class _Imported:
    """One run: its rows, and the checks of the run against itself."""

    rows: tuple[Measurement, ...]
    report: CheckReport


def _import(run: TestOutput, hints: ImportHints) -> _Imported:
    name = _operation(run, hints)
    operation = BENCHED[name]
    num_ranks, missing = _num_ranks(run, operation, hints)
    subject = f"{name} at {run.rows[0].where}"
    return _Imported(
        rows=tuple(_rows(run, name, num_ranks)),
        report=join_reports(
            run_check(MISSING_RANKS.id, subject, [missing], actual=f"{num_ranks} ranks listed"),
            run_check(
                BANDWIDTH_CONTRADICTION.id, subject, bandwidth_contradictions(run, operation, num_ranks), actual="agree"
            ),
            skip_check(AVERAGE_CONTRADICTION.id, subject, "the file has no average")
            if run.average_bus_bandwidth_bps is None
            else run_check(AVERAGE_CONTRADICTION.id, subject, average_contradictions(run), actual="agrees"),
        ),
    )


def _rows(run: TestOutput, name: str, num_ranks: int) -> Iterator[Measurement]:
    for row in run.rows:
        for is_in_place, timing in ((False, row.out_of_place), (True, row.in_place)):
            if timing and timing.duration_ns > 0 and row.size_bytes > 0:
                yield Measurement(
                    name=name,
                    is_in_place=is_in_place,
                    size_bytes=row.size_bytes,
                    num_ranks=num_ranks,
                    mean_ns=timing.duration_ns,
                    num_wrong=UNCHECKED if timing.num_wrong is None else round(min(timing.num_wrong, MOST_WRONG)),
                )


def _operation(run: TestOutput, hints: ImportHints) -> str:
    if hints.name is not None:
        return hints.name
    possible: tuple[Operation, ...] = possible_operations(run)
    if len(possible) == 1:
        return _NAMES[possible[0]]
    names = [_NAMES[operation] for operation in possible]
    found = f"a run of {run.program or 'a program that it does not name'}"
    found += f", which may be {' or '.join(names)}" if names else ", which is none of the operations known here"
    next_step = "say it with --operation"
    if not names and not run.program and run.num_ranks:
        found += f": its busbw over algbw is that of none among {run.num_ranks} ranks"
        next_step += "; where the list of ranks is not whole, with --num-ranks"
    raise InputError(Mistake(where=run.rows[0].where, found=found, allowed=", ".join(BENCHED), next_step=next_step))


def _num_ranks(run: TestOutput, operation: Operation, hints: ImportHints) -> tuple[int, Finding | None]:
    """Return the number of ranks, and a finding where the run's list lacks some; raises InputError."""
    if hints.num_ranks:
        return hints.num_ranks, None
    if run.num_ranks or run.missing_ranks:
        return rank_count(run, operation)
    raise InputError(
        Mistake(
            where=run.rows[0].where, found="a run that does not list its ranks", next_step="say it with --num-ranks"
        )
    )
