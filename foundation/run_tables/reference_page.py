"""The page docs/reference/record-tables.md, generated from the catalog: `make reference` writes it."""

from collections.abc import Iterator
from pathlib import Path

from fabrictune.foundation.run_tables.catalog import SUBJECTS
from fabrictune.foundation.run_tables.schema import FLAG, Column, TableSchema

PATH = Path(__file__).resolve().parents[2] / "docs" / "reference" / "record-tables.md"
HEAD = """# Tables of run records

A run record is a folder: `run.json` says what ran, `findings.jsonl` what to look at, and each table is a Parquet file
of its name. Three types are stored: `int64`, `float64` and `string`. A value that does not exist, such as the end of a
transfer that never ended, is -1. The schema of a file holds `unit` and `meaning` of each column as field metadata.

```python
import fabrictune as ft

record = ft.read_record("runs/incast")
record.tables["ports"]["max_queue_bytes"]  # NumPy arrays
record.table("transfers")  # a pyarrow.Table with the names of NICs and ports, and units in its schema
record.frame("transfers")  # the same as a pandas.DataFrame, units in attrs["units"]: pip install "fabrictune[pandas]"
```

In `table` and `frame`, a column that refers to a port, a NIC or an address is followed by its name in `<column>_label`,
flags are truth values and codes are names.

This page is generated from `foundation/run_tables` by `make reference`.
"""
COLUMN_HEAD = "| column | type | unit | meaning |\n| --- | --- | --- | --- |"


def reference_page() -> str:
    """Return the page's text."""
    sections = [f"## {subject}\n\n" + "\n\n".join(map(_section, tables)) for subject, tables in SUBJECTS.items()]
    return "\n".join([HEAD, *(f"{section}\n" for section in sections)])


def _section(table: TableSchema) -> str:
    kinds = ", ".join(f"`{kind}`" for kind in table.kinds)
    rows = "\n".join(map(_row, table.columns))
    return f"### {table.name}\n\nA row is {table.row}. Records: {kinds}.\n\n{COLUMN_HEAD}\n{rows}"


def _row(column: Column) -> str:
    name = f"`{column.name}`" + (" (optional)" if column.is_optional else "")
    return f"| {name} | {column.type} | {column.unit} | {'; '.join(_meaning(column))} |"


def _meaning(column: Column) -> Iterator[str]:
    yield column.meaning
    if column.codes is FLAG:
        yield "1 yes, 0 no"
    elif column.codes:
        yield ", ".join(f"{code} {name}" for code, name in column.codes.items())


if __name__ == "__main__":
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(reference_page())
