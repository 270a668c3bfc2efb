"""Records: read, and shown as one HTML page."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from fabrictune.foundation.records import RunRecord
from fabrictune.reports import page


def read_record(path: str | PathLike[str]) -> RunRecord:
    """Return the record in a folder that a run wrote. Raises RecordError."""
    return RunRecord.read(Path(path))


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
