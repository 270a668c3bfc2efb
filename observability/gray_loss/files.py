"""Counts by path in files: the record of a simulation with table `path_counts`, or CSV.

A CSV file has the columns `flow`, `links` (names in the direction of the flow, `;` between them) and `received`; it may
have `sent`, and `share`, of the flow's packets: equal by default.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import InputError, Mistake, quote
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.run_tables.rows import to_rows
from fabrictune.observability.gray_loss.counts import UNKNOWN, CountedPath, PathCounts, gather_counts

TABLE = "path_counts"
MAX_FILE_BYTES = 32 * 2**20
MAX_LINKS = 64  # of a path
MAX_PACKETS = 2**53
MAX_MISTAKES = 10
NEEDED, OPTIONAL = ("flow", "links", "received"), ("sent", "share")


def read_counts(path: Path) -> PathCounts:
    """Return the counts of a record's folder or a CSV file; raises InputError and RecordError."""
    if path.is_dir():
        record = RunRecord.read(path, tables={TABLE})
        if TABLE not in record.tables:
            next_step = (
                "simulate with `path_choice: {mode: entropy}` and `capture: {at: receiver}`, `max` above its packets"
            )
            raise InputError(Mistake(where=str(path), found=f"no table {TABLE}", next_step=next_step))
        rows = to_rows(record.tables[TABLE])
        return gather_counts(
            CountedPath(
                flow=str(row["qp"]),
                links=_names(row["links"]),
                received=row["received_packets"],
                share=row["share_fraction"],
            )
            for row in rows
        )
    return gather_counts(_read_csv(path))


def _read_csv(path: Path) -> list[CountedPath]:
    try:
        reader = csv.DictReader(read_text(path, max_bytes=MAX_FILE_BYTES).splitlines(), strict=True, restval="")
        names = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        missing = [name for name in NEEDED if name not in names]
        foreign = [name for name in names if name not in (*NEEDED, *OPTIONAL)]
        if missing or foreign:
            found = f"no column {quote(missing[0])}" if missing else f"column {quote(foreign[0])}"
            allowed = f"{', '.join(NEEDED)}; optional: {', '.join(OPTIONAL)}"
            raise InputError(Mistake(where=str(path), found=found, allowed=allowed))
        mistakes: list[Mistake] = []
        rows = [_row(values, f"{path}: row {number}", mistakes) for number, values in enumerate(reader, 1)]
    except csv.Error as error:
        raise InputError(Mistake(where=str(path), found=f"not CSV ({error})")) from error
    if not rows:
        raise InputError(Mistake(where=str(path), found="no rows", allowed="a row for each path of each flow"))
    if mistakes:
        raise InputError(*mistakes[:MAX_MISTAKES])
    return rows


def _row(values: Mapping[Any, Any], where: str, mistakes: list[Mistake]) -> CountedPath:
    texts = {str(name): str(value).strip() for name, value in values.items() if name is not None}
    received = _count(texts["received"], where, "received", mistakes)
    sent = _count(texts["sent"], where, "sent", mistakes) if texts.get("sent") else UNKNOWN
    links = _names(texts["links"])
    if None in values or not links or len(links) > MAX_LINKS:
        found = "more cells than columns" if None in values else f"{len(links)} links"
        mistakes.append(Mistake(where=where, found=found, allowed=f"1 to {MAX_LINKS} links, with `;` between them"))
    if sent != UNKNOWN and received > sent:
        mistakes.append(Mistake(where=where, found=f"{received} received of {sent} sent", allowed="at most those sent"))
    try:
        share = float(texts.get("share") or 1.0)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        mistakes.append(Mistake(where=where, found=f"share {quote(texts['share'])}", allowed="above 0, up to 1"))
    return CountedPath(flow=texts["flow"], links=links, received=received, sent=sent, share=share)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(";") if name.strip()]


def _count(text: str, where: str, column: str, mistakes: list[Mistake]) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= 16 and int(text) <= MAX_PACKETS:
        return int(text)
    allowed = f"a whole number up to {MAX_PACKETS}"
    mistakes.append(Mistake(where=f"{where}, {column}", found=quote(text), allowed=allowed))
    return 0
