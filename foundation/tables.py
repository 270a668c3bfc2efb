"""Tables as Parquet files, and as bytes between processes: written and read in one place, with one set of bounds.

A few hundred bytes of Parquet can hold gigabytes: a run of equal values, or one long text named by every row. The size
in memory is therefore worked out, from the footer and from dictionaries of text, before anything is unfolded.

pyarrow is imported when a file is touched and not before, so that a command that touches none starts at once.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.errors import FabrictuneError, Mistake
from fabrictune.foundation.foreign_files import open_foreign, shown
from fabrictune.foundation.output_files import replaced_file
from fabrictune.foundation.texts import TextColumn, Texts

MAX_ROWS = 200_000_000
ROW_GROUP_ROWS = 2**20  # of a file: what is compressed at a time
MAX_FILE_BYTES = 64 * 2**30
MAX_RATIO = 20  # bytes in memory a byte of a file, beyond the first MIN_DECODED_BYTES
MIN_DECODED_BYTES = 256 * 2**20  # that any file may hold, since constant columns take almost no place in it
_TEXTS_A_CHUNK = 2**16
_TOO_LARGE = f"a table of more than {MAX_RATIO} times its file's size in memory"
_VALUE_BYTES = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "BYTE_ARRAY": 4}  # by Parquet's physical type; 8 for others


def write_table(target: Path | BinaryIO, columns: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Write columns (arrays of NumPy or Arrow, of one length) as one Parquet file, whole or not at all.

    Raises InputError where the file cannot be written.
    """
    table = _arrow_table(columns, metadata)
    if not isinstance(target, Path):
        write_arrow_table(target, table)
        return
    with replaced_file(target) as half:
        write_arrow_table(half, table)


def write_arrow_table(target: Path | BinaryIO, table: Any) -> None:
    """Write a `pyarrow.Table`, with the metadata of its fields, as one Parquet file."""
    write_arrow_tables(target, [table])


def write_arrow_tables(target: Path | BinaryIO, tables: Iterable[Any]) -> None:
    """Write tables of the same fields, one or more, one after another as one Parquet file."""
    import pyarrow.parquet as pq

    tables = iter(tables)
    first = next(tables)
    with pq.ParquetWriter(target, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table, ROW_GROUP_ROWS)


def table_to_bytes(columns: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return columns (arrays of NumPy or Arrow, of one length) as an Arrow IPC stream, for another process."""
    import pyarrow as pa

    table, sink = _arrow_table(columns, metadata), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_from_bytes(content: bytes) -> tuple[Any, Mapping[str, str]]:
    """Return the `pyarrow.Table` that `table_to_bytes` wrote, and its metadata."""
    import pyarrow as pa

    with pa.ipc.open_stream(content) as reader:
        table = reader.read_all()
    return table, _decoded(table.schema.metadata)


def arrow_texts(texts: TextColumn) -> Any:
    """Return texts as a `pyarrow.ChunkedArray`: a long array would be copied, and held twice, as it grows."""
    import pyarrow as pa

    parts = [texts[first : first + _TEXTS_A_CHUNK] for first in range(0, len(texts), _TEXTS_A_CHUNK)]
    arrays = [part.to_arrow() if isinstance(part, Texts) else pa.array(part, pa.string()) for part in parts]
    return pa.chunked_array(arrays, pa.string())


def columns_of(table: Any) -> dict[str, Any]:
    """Return the columns of a `pyarrow.Table` by name: taken out one by one, each frees its memory."""
    return dict(zip(table.column_names, table.columns, strict=True))


def texts_of(column: Any) -> NDArray[np.object_]:
    """Return the texts of an Arrow column, in each chunk one object for equal ones; None for an empty cell."""
    parts = [np.zeros(0, np.object_)]
    for chunk in getattr(column, "chunks", [column]):
        encoded = chunk.dictionary_encode()
        texts = np.array([*encoded.dictionary.to_pylist(), None], np.object_)
        places = encoded.indices
        if places.null_count:
            places = places.fill_null(len(texts) - 1)
        parts.append(texts[np.from_dlpack(places)])
    return np.concatenate(parts)


def read_table(path: Path, *, error: type[FabrictuneError]) -> Any:
    """Return the file as a `pyarrow.Table`; raises `error` for what is no Parquet file, or outgrows the limits."""
    import pyarrow as pa

    with _opened(path, error) as file:
        limit = _checked_limit(file, path, error)
        table = file.read()
        table.validate(full=True)  # text that is no UTF-8
        _check_texts(table, limit, path, error)
        table = _plain_text(table)
    pa.default_memory_pool().release_unused()  # what dictionaries of text took
    return table


def read_columns(
    path: Path, *, error: type[FabrictuneError], names: Collection[str] | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the name and the `pyarrow.ChunkedArray` of each column; one at a time is in memory, text in dictionaries.

    With `names` others are left out. Raises `error` for what is no Parquet file, or outgrows the limits.
    """
    import pyarrow as pa

    with _opened(path, error) as file:
        left = _checked_limit(file, path, error)
        for name in file.schema_arrow.names:
            if names is not None and name not in names:
                continue
            table = file.read(columns=[name], use_threads=False).select([name])
            table.validate(full=True)
            left -= _check_texts(table, left, path, error)
            column = table.column(0)
            del table
            yield name, column
            del column
            pa.default_memory_pool().release_unused()


def _checked_limit(file: Any, path: Path, error: type[FabrictuneError]) -> int:
    """Return how much memory the file's values may take, which they do by its footer; raises `error` beyond a limit."""
    limit = MIN_DECODED_BYTES + MAX_RATIO * path.stat().st_size
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        _refuse(error, path, f"the column {shown(Counter(names).most_common(1)[0][0])} twice")
    if file.metadata.num_rows > MAX_ROWS:
        _refuse(error, path, f"more than {MAX_ROWS:,} rows")
    if _num_bytes(file.metadata) > limit:
        _refuse(error, path, _TOO_LARGE)
    return limit


def read_metadata(path: Path, *, error: type[FabrictuneError]) -> Mapping[str, str]:
    """Return what was written beside the columns; raises `error` for what is no Parquet file."""
    with _opened(path, error) as file:
        return _decoded(file.schema_arrow.metadata)


def read_num_rows(path: Path, *, error: type[FabrictuneError]) -> int:
    """Return the number of rows by the file's footer; raises `error` for what is no Parquet file."""
    with _opened(path, error) as file:
        return int(file.metadata.num_rows)


@contextmanager
def _opened(path: Path, error: type[FabrictuneError]) -> Iterator[Any]:
    """Open a Parquet file, its text as dictionaries; what is wrong with it raises `error`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_foreign(path, max_bytes=MAX_FILE_BYTES, error=error) as raw:
            schema = pq.ParquetFile(raw).schema_arrow
            texts = [field.name for field in schema if field.type in (pa.string(), pa.large_string(), pa.binary())]
            with pq.ParquetFile(raw, read_dictionary=texts) as file:
                yield file
    except (OSError, ValueError, pa.ArrowException) as reason:
        raise error(Mistake(where=str(path), found=f"not a readable Parquet file ({reason})")) from reason


def _num_bytes(metadata: Any) -> int:
    """Return how much memory the values take by the footer: unpacked as they are, and decoded from runs."""
    chunks = [
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    ]
    unpacked = sum(int(chunk.total_uncompressed_size) for chunk in chunks)
    return max(unpacked, sum(int(chunk.num_values) * _VALUE_BYTES.get(chunk.physical_type, 8) for chunk in chunks))


def _check_texts(table: Any, limit: int, path: Path, error: type[FabrictuneError]) -> int:
    """Return the size of the table with its dictionaries of text written out; raises `error` beyond the limit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    num_bytes = int(table.nbytes)
    for column in table.columns:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else None
        if kind is not None and (pa.types.is_string(kind) or pa.types.is_binary(kind)):
            for chunk in column.chunks:
                num_bytes += pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
        if num_bytes > limit:
            _refuse(error, path, _TOO_LARGE)
    return num_bytes


def _plain_text(table: Any) -> Any:
    """Return the table with dictionaries of text written out."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            plain = pa.field(field.name, field.type.value_type, field.nullable, field.metadata)
            table = table.set_column(place, plain, table.column(place).cast(field.type.value_type))
    return table


def _refuse(error: type[FabrictuneError], path: Path, found: str) -> NoReturn:
    raise error(Mistake(where=str(path), found=found)) from None


def _arrow_table(columns: Mapping[str, Any], metadata: Mapping[str, str] | None) -> Any:
    import pyarrow as pa

    arrays = {
        name: column if isinstance(column, pa.ChunkedArray) else pa.array(column) for name, column in columns.items()
    }
    table = pa.table(arrays)
    return table.replace_schema_metadata(metadata)


def _decoded(metadata: Mapping[bytes, bytes] | None) -> Mapping[str, str]:
    return {key.decode(): value.decode() for key, value in (metadata or {}).items()}
