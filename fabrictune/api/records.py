"""Records: read, measured, and shown as one HTML page."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from fabrictune.foundation.errors import Mistake, RecordError
from fabrictune.foundation.metrics.measures import measure_all
from fabrictune.foundation.records import RunRecord
from fabrictune.reports import page


def read_record(path: str | PathLike[str]) -> RunRecord:
    """Return the record in a folder that a run wrote. Raises RecordError."""
    return RunRecord.read(Path(path))


def metrics(record: RunRecord) -> dict[str, float]:
    """Return every metric of a simulated run by its name, such as "completion_time.p99", in base units.

    Durations are in ps, rates in bits a second, sizes in bytes. Metrics of one part of a mixture are named after it:
    "slowdown.p99 of bystanders". A value that the record does not have is nan, one that never ended is infinite.
    Source: `foundation/metrics/catalog.py` lists and defines them. Raises RecordError for a record without transfers.
    """
    if "transfers" not in record.tables:
        where = str(record.run.get("name", record.kind))
        raise RecordError(Mistake(where=where, found="no table of transfers", next_step="choose a simulated run"))
    return measure_all(record)


def write_page(
    records: Sequence[RunRecord] | RunRecord, out: str | PathLike[str], *, labels: Sequence[str] = (), title: str = ""
) -> Path:
    """Write one self-contained HTML page on one record, or on several side by side; returns its path.

    `labels` name the records on the page, by default with their own names. Raises RecordError, InputError.
    """
    shown = [records] if isinstance(records, RunRecord) else list(records)
    names = dict.fromkeys(str(record.run.get("name", record.kind)) for record in shown)
    html = page.build_page(shown, title=title or " and ".join(names), labels=labels)
    return page.write_html(html, Path(out))
