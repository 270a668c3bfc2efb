"""Tables that grow: rows appended, read back as columns, cut short, and damaged."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.growing_tables import append_row, read_growing
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.run_tables.catalog import TABLES
from fabrictune.foundation.run_tables.rows import to_rows

SCHEMA = TABLES["training"]
FILE = "training.jsonl"


def row(step: int) -> dict[str, float]:
    """A whole number where the schema has one, a half otherwise."""
    values = {column.name: 1 if column.type == "int64" else 0.5 for column in SCHEMA.columns if column.name != "step"}
    return {"step": step, **values}


def test_rows_come_back_as_the_table_of_the_record(tmp_path: Path) -> None:
    """Two rows, each there once it is appended; all the schema's columns; other tables can be asked for without it."""
    with RunRecord(kind="train run", run={"outcome": "incomplete"}).write_growing(tmp_path / "run", FILE) as file:
        assert len(RunRecord.read(tmp_path / "run").tables["training"]["step"]) == 0
        for step in (0, 1):
            append_row(file, row(step))
            record = RunRecord.read(tmp_path / "run")
            assert to_rows(record.tables["training"]) == [row(number) for number in range(step + 1)]
            assert record.table("training").num_rows == step + 1
    assert RunRecord.read(tmp_path / "run", tables=["volumes"]).tables == {}


def test_a_line_without_an_end_is_left_out(tmp_path: Path) -> None:
    """Wherever its writer was killed."""
    path = tmp_path / FILE
    with path.open("xb", buffering=0) as file:
        append_row(file, row(0))
        append_row(file, row(1))
    content = path.read_bytes()
    for end in (len(content) - 1, len(content) // 2 + 2, content.index(b"\n") + 1):
        path.write_bytes(content[:end])
        assert read_growing(path, SCHEMA)["step"].tolist() == [0]
    path.write_bytes(content[:20])
    assert read_growing(path, SCHEMA)["step"].tolist() == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[1]\n", "no JSON object"),
        (b'{"step": 1}\n', "'other columns than the first row'"),
        (b"{\n", "Expecting property name"),
        (b'{"step": true, "loss": 1}\n', "step is no number"),
        (b'{"step": 1, "loss": NaN}\n', "loss is no number"),
        (b'{"step": 1, "loss": Infinity}\n', "loss is no number"),
        (b'{"step": 1.5, "loss": 1}\n', "integer"),
        (b'{"step": 1, "loss": "x"}\n', "must be real number"),
        (b'{"step": 99999999999999999999, "loss": 1}\n', "too big"),
        (b"[" * 100_000, "too large|Expecting|recursion"),
    ],
)
def test_what_is_no_row_is_refused_by_its_line(tmp_path: Path, line: bytes, reason: str) -> None:
    """A line that has an end is whole, so what cannot be read there is damage; and a line has a length at most."""
    path = tmp_path / FILE
    path.write_bytes(b'{"step": 0, "loss": 1.0}\n' + line)
    with pytest.raises(RecordError, match=rf"{FILE}:2: not a row of training \(.*({reason})"):
        read_growing(path, SCHEMA)


def test_a_full_disk_is_an_error_of_the_append(tmp_path: Path) -> None:
    """/dev/full takes nothing."""
    with Path("/dev/full").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        append_row(file, row(0))


def test_a_record_that_grows_may_be_replaced_and_nothing_else(tmp_path: Path) -> None:
    """The whole record takes its place; a folder with a file of somebody's stays."""
    place = tmp_path / "run"
    record = RunRecord(kind="train run", run={"outcome": "incomplete"})
    record.write_growing(place, FILE).close()
    record.write_growing(place, FILE).close()
    RunRecord(kind="train run", run={"outcome": "finished"}).write(place)
    assert sorted(path.name for path in place.iterdir()) == ["findings.jsonl", "run.json"]
    (place / "mine.txt").write_text("x")
    with pytest.raises(RecordError, match=r"a run record with 'mine.txt', not written by a run"):
        record.write_growing(place, FILE)
