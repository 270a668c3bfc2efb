"""Parquet files are bounded by what they take in memory, before they are unfolded."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.tables import read_metadata, read_table, write_table

TOO_LARGE = r"a table of more than 20 times its file's size in memory$"


def test_a_table_reads_back_as_it_was_written(tmp_path: Path) -> None:
    """Numbers, text with repeats and without, an empty text, and metadata."""
    columns = {"number": np.arange(3), "text": np.array(["a", "", "a"], object), "flag": np.array([True, False, True])}
    write_table(tmp_path / "t.parquet", columns, {"key": "value"})
    table = read_table(tmp_path / "t.parquet", error=RecordError)
    assert table.to_pydict() == {"number": [0, 1, 2], "text": ["a", "", "a"], "flag": [True, False, True]}
    assert [str(field.type) for field in table.schema] == ["int64", "string", "bool"]
    assert read_metadata(tmp_path / "t.parquet", error=RecordError) == {"key": "value"}


def test_a_run_of_equal_values_is_refused_before_it_is_unfolded(tmp_path: Path) -> None:
    """40 million zeros are 320 MB in memory and 170 kB in the file."""
    path = tmp_path / "bomb.parquet"
    zeros = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**7, np.int8)), pa.array([0], pa.int64()))
    with pq.ParquetWriter(path, pa.schema([("zero", pa.int64())]), store_schema=False) as writer:
        for _ in range(4):
            writer.write_table(pa.table({"zero": zeros.cast(pa.int64())}))
    assert path.stat().st_size < 200_000
    before = pa.total_allocated_bytes()
    with pytest.raises(RecordError, match=TOO_LARGE):
        read_table(path, error=RecordError)
    assert pa.total_allocated_bytes() - before < 2**20


def test_a_long_text_named_by_every_row_is_refused_before_it_is_unfolded(tmp_path: Path) -> None:
    """100,000 rows of one text of 10,000 characters: 1 GB in memory."""
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"text": pa.DictionaryArray.from_arrays(np.zeros(10**5, np.int32), ["x" * 10**4])}), path)
    with pytest.raises(RecordError, match=TOO_LARGE):
        read_table(path, error=RecordError)


def test_packed_zeros_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    """One text of 400 MB, which zstd packs into 13 kB."""
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"text": ["x" * (400 * 10**6)]}), path, compression="zstd", write_statistics=False)
    with pytest.raises(RecordError, match=TOO_LARGE):
        read_table(path, error=RecordError)


def test_text_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    """As a flipped bit in a file makes it; a reader of the column would fail on it."""
    offsets, text = pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"a\xff")
    column = pa.Array.from_buffers(pa.string(), 1, [None, offsets, text])
    pq.write_table(pa.table({"name": column}), tmp_path / "x.parquet")
    with pytest.raises(RecordError, match="not a readable Parquet file"):
        read_table(tmp_path / "x.parquet", error=RecordError)


def test_a_column_twice_is_refused(tmp_path: Path) -> None:
    """It was a KeyError."""
    path = tmp_path / "twice.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["time", "time"]), path)
    with pytest.raises(RecordError, match=r"twice.parquet: the column 'time' twice$"):
        read_table(path, error=RecordError)


@pytest.mark.parametrize("link_to", ["/dev/zero", None])
def test_a_device_or_a_pipe_is_no_table(link_to: str | None, tmp_path: Path) -> None:
    """A pipe waits for a writer for ever."""
    path = tmp_path / "t.parquet"
    path.symlink_to(link_to) if link_to else os.mkfifo(path)
    for read in (read_table, read_metadata):
        with pytest.raises(RecordError, match=r"t.parquet: not a file$"):
            read(path, error=RecordError)
