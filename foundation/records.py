"""RunRecord: the directory in which every run of every package leaves its results.

`run.json` says what ran (kind, scenario text, versions, seed, configuration, machine, wall time) and what was checked
(`foundation/checks.py`); each table is one Parquet file with columns of numbers or text; `findings.jsonl` is what a
person should look at. Everything downstream reads this and nothing else. A record is written next to its place and put
into it in one step: no reader sees half of one, or a mixture of two.

`foundation/run_tables` is the schema of the tables, docs/reference/record-tables.md its page; `finding_rules` and
docs/reference/findings.md are those of the findings.
"""

import io
import json
import os
import platform
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import Columns as Columns
from fabrictune.foundation.checks import Check, CheckReport
from fabrictune.foundation.documents import refuse_half_characters
from fabrictune.foundation.errors import Mistake, RecordError, require_one_of
from fabrictune.foundation.extras import require_extra
from fabrictune.foundation.finding_rules.catalog import check_rules
from fabrictune.foundation.findings import Confidence as Confidence
from fabrictune.foundation.findings import Finding as Finding
from fabrictune.foundation.findings import Severity as Severity
from fabrictune.foundation.foreign_files import read_foreign, shown
from fabrictune.foundation.generated_tables import GeneratedTable
from fabrictune.foundation.growing_tables import read_growing
from fabrictune.foundation.output_folders import read_unchanged, write_folder
from fabrictune.foundation.record_folders import FINDINGS, FOR_OTHER_TOOLS, GROWING, HEAD, check_replaceable
from fabrictune.foundation.record_folders import MAX_JSON_BYTES as MAX_JSON_BYTES
from fabrictune.foundation.row_ranges import ranges
from fabrictune.foundation.run_tables.arrow import to_arrow, to_labelled_arrow, units_of
from fabrictune.foundation.run_tables.catalog import TABLES, check_tables
from fabrictune.foundation.run_tables.schema import TableSchema
from fabrictune.foundation.tables import ROW_GROUP_ROWS, read_columns, texts_of, write_arrow_tables

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The results of one run."""

    kind: str  # the command that made it: "sim run", "ecmp analyze", "validate local"
    run: Mapping[str, Any]  # JSON values: scenario, seed, configuration, versions, machine, wall_s
    tables: Mapping[str, Columns] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] | None = None  # None where nobody said what was checked, as in older records
    files: Mapping[str, bytes | bytearray] = field(
        default_factory=dict
    )  # written next to the tables for other tools, never read

    def write(self, directory: str | PathLike[str], *, durably: bool = False) -> Path:
        """Write the record as `directory`, which must not exist or be an earlier record; returns it.

        With `durably` it is on disk, not only on its way there, before it appears and before this returns.
        Raises RecordError where something else is there, or nothing can be written. Every table and column must be in
        the schema of the record's kind, every finding and check of a rule of the catalog.
        """
        check_tables(self.kind, self.tables)
        check_rules(finding.id for finding in self.findings)
        check_rules(check.rule for check in self.checks or ())
        assert set(self.files) <= set(FOR_OTHER_TOOLS), "a file whose name no record is known to have"
        directory = Path(directory)
        write_folder(directory, self._write_files, check=check_replaceable, durably=durably)
        return directory

    def write_growing(self, directory: str | PathLike[str], file_name: str) -> BinaryIO:
        """Write the record as `write` does, with a table that grows; returns the file for `growing_tables.append_row`.

        What the table has when the run ends is part of the record that is then written in its place.
        """
        assert GROWING[file_name] not in self.tables, "a table that grows, and is there already"
        opened: list[BinaryIO] = []

        def fill(folder: Path) -> None:
            self._write_files(folder)
            opened.append((folder / file_name).open("xb", buffering=0))

        write_folder(Path(directory), fill, check=check_replaceable)
        return opened[0]

    def with_checks(self, report: CheckReport) -> Self:
        """Return the record with these checks and their findings before its own."""
        findings, checks = (*report.findings, *self.findings), (*report.checks, *(self.checks or ()))
        return replace(self, findings=findings, checks=checks)

    def _write_files(self, directory: Path) -> None:
        checks = {} if self.checks is None else {"checks": [check.as_json() for check in self.checks]}
        head = {"format": FORMAT_VERSION, "kind": self.kind, **self.run, **checks}
        (directory / HEAD).write_text(json.dumps(head, indent=2, sort_keys=True, allow_nan=False) + "\n")
        with (directory / FINDINGS).open("w") as file:
            file.writelines(json.dumps(asdict(finding)) + "\n" for finding in self.findings)
        for name, columns in self.tables.items():
            write_arrow_tables(directory / f"{name}.parquet", _arrow_parts(TABLES[name], columns))
        for name, content in self.files.items():
            (directory / name).write_bytes(content)

    def table(self, name: str) -> "pa.Table":
        """Return a table with names next to its numbers, and units and meanings in its schema; raises RecordError.

        A column `x` of ports or NICs is followed by `x_label`; flags are truth values, codes are names.
        """
        where = f"record of {self.kind!r}"
        require_one_of(name, list(self.tables), where=where, what="table", error=RecordError)
        parts = [part for part in dict.fromkeys((name, "fabric")) if part in self.tables]  # a label is the fabric's
        foreign = [found for part in parts for found in TABLES[part].foreign(self.tables[part])]
        if foreign:
            next_step = "read it with the version that wrote it, which run.json names"
            raise RecordError(*(Mistake(where=where, found=found, next_step=next_step) for found in foreign))
        return to_labelled_arrow(TABLES[name], self.tables[name], self.tables.get("fabric"))

    def frame(self, name: str) -> "pd.DataFrame":
        """Return `table(name)` as a DataFrame with its units in `attrs["units"]`; raises RecordError, UnavailableError.

        Labels and other text are categories.
        """
        require_extra("pandas", extra="pandas", where=f"table {name}")
        table = self.table(name)
        frame = table.to_pandas()
        frame.attrs["units"] = units_of(table)
        return frame

    @classmethod
    def read(
        cls,
        directory: Path,
        *,
        tables: Collection[str] | None = None,
        columns: Mapping[str, Collection[str]] | None = None,
    ) -> Self:
        """Read a record, with all its tables or those named; raises RecordError.

        Of tables that `columns` names, other columns are left out.

        Where another record takes its place meanwhile, that is read, whole.
        """
        return read_unchanged(Path(directory), partial(cls._read_once, tables=tables, columns=columns or {}))

    @classmethod
    def _read_once(
        cls, directory: Path, *, tables: Collection[str] | None, columns: Mapping[str, Collection[str]]
    ) -> Self:
        head = _read_head(directory)
        paths = (path for path in sorted(directory.glob("*.parquet")) if path.stem in TABLES)  # others are `files`
        read = {
            path.stem: _read_columns(path, columns.get(path.stem))
            for path in paths
            if tables is None or path.stem in tables
        }
        for file_name, name in GROWING.items():
            if (tables is None or name in tables) and os.path.lexists(directory / file_name):
                read.setdefault(name, read_growing(directory / file_name, TABLES[name]))
        run = {key: value for key, value in head.items() if key not in ("format", "kind", "checks")}
        findings = tuple(_read_findings(directory))
        return cls(kind=head["kind"], run=run, tables=read, findings=findings, checks=_read_checks(directory, head))


def notes_of(record: RunRecord) -> list[str]:
    """Return what the record says that it assumes, each a sentence; none where it says nothing or something else."""
    notes = record.run.get("notes")
    return [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []


def describe_machine() -> dict[str, Any]:
    """Return what a figure's reader needs to know of this machine: processor, cores, system, Python."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


@cache
def installed_version(package: str) -> str:
    """Return which version of a package is installed here; asked once, since it is parsed each time."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def describe_run(*, seed: int, started: float, **more: Any) -> dict[str, Any]:
    """Return the common part of `run.json`; `started` is what `time.perf_counter` said at the start."""
    return {
        "seed": seed,
        "versions": {"fabrictune": installed_version("fabrictune"), "numpy": np.__version__},
        "machine": describe_machine(),
        "wall_s": round(time.perf_counter() - started, 6),
        **more,
    }


def _arrow_parts(schema: TableSchema, columns: Columns) -> Iterator["pa.Table"]:
    """Yield the rows of a table: all at once, or range by range where they are generated."""
    if not isinstance(columns, GeneratedTable):
        yield to_arrow(schema, columns)
        return
    for begin, end in ranges(0, columns.num_rows, ROW_GROUP_ROWS):
        yield to_arrow(schema, columns.rows(begin, end))


def _read_head(directory: Path) -> dict[str, Any]:
    path = directory / HEAD
    if not os.path.lexists(path):
        raise RecordError(
            Mistake(
                where=str(directory),
                found="no run.json, so no run record",
                next_step="give the folder that a run wrote, such as runs/incast",
            )
        )
    text = read_foreign(path, max_bytes=MAX_JSON_BYTES, error=RecordError)
    try:
        head = _parse_json(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(Mistake(where=str(path), found=f"not readable ({error})")) from error
    if not isinstance(head, dict) or not isinstance(head.get("kind"), str):
        raise RecordError(Mistake(where=str(path), found="not the head of a run record"))
    if head.get("format") != FORMAT_VERSION:
        found = f"format {shown(head.get('format'))}"
        raise RecordError(Mistake(where=str(path), found=found, allowed=f"format {FORMAT_VERSION}"))
    return head


def _read_checks(directory: Path, head: Mapping[str, Any]) -> tuple[Check, ...] | None:
    if "checks" not in head:
        return None
    try:
        return tuple(Check.from_json(row) for row in head["checks"])
    except (TypeError, KeyError) as error:
        raise RecordError(Mistake(where=f"{directory / HEAD}: checks", found=f"not checks ({error})")) from error


def _read_columns(path: Path, names: Collection[str] | None) -> Columns:
    return {name: _values(column) for name, column in read_columns(path, error=RecordError, names=names)}


def _values(column: Any) -> NDArray[Any]:
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind):
        return texts_of(column)
    column = column.cast(kind)
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        parts = [np.zeros(0, kind.to_pandas_dtype()), *map(np.from_dlpack, column.chunks)]
        return np.concatenate(parts)  # unlike `to_numpy`, which imports pandas where it is installed
    return np.asarray(column.to_numpy())


def _read_findings(directory: Path) -> Iterator[Finding]:
    path = directory / FINDINGS
    if not os.path.lexists(path):
        return
    content = io.BytesIO(read_foreign(path, max_bytes=MAX_JSON_BYTES, error=RecordError))
    for number, line in enumerate(content, 1):
        try:
            yield parse_finding(_parse_json(line))
        except (TypeError, ValueError, KeyError, RecursionError) as error:
            raise RecordError(Mistake(where=f"{path}:{number}", found=f"not a finding ({error})")) from error


def parse_finding(row: dict[str, Any]) -> Finding:
    """Return the finding that JSON values describe; raises TypeError, ValueError or KeyError for what is none."""
    severity, confidence, evidence = Severity(row["severity"]), Confidence(row["confidence"]), tuple(row["evidence"])
    if not all(isinstance(text, str) for name, text in row.items() if name != "evidence"):
        raise TypeError("a value that is no text")
    if not all(isinstance(text, str) for text in evidence):
        raise TypeError("evidence that is no text")
    return Finding(**{**row, "severity": severity, "confidence": confidence, "evidence": evidence})


def _parse_json(content: bytes) -> Any:
    """Return what JSON holds; raises ValueError, also for half of a character, and RecursionError."""
    text = content.decode()
    tree = json.loads(text)
    refuse_half_characters(text, tree)
    return tree
