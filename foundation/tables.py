"""Tables as Parquet files, and as bytes between processes: written and read in one place, with one set of bounds.

pyarrow is imported when a file is touched and not before, so that a command that touches none starts at once.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from fabrictune.foundation.errors import FabrictuneError, Mistake
from fabrictune.foundation.output_files import replaced_file

MAX_ROWS = 200_000_000  # a larger file is refused rather than read into memory


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
    import pyarrow.parquet as pq

    pq.write_table(table, target)


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


def read_table(path: Path, *, error: type[FabrictuneError]) -> Any:
    """Return the file as a `pyarrow.Table`; raises `error` for what is no Parquet file, or has too many rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows > MAX_ROWS:
                raise error(Mistake(where=str(path), found=f"more than {MAX_ROWS:,} rows"))
            return file.read()
    except (OSError, pa.ArrowException) as reason:
        raise error(Mistake(where=str(path), found=f"not a readable Parquet file ({reason})")) from reason


def read_metadata(path: Path, *, error: type[FabrictuneError]) -> Mapping[str, str]:
    """Return the metadata of the file; raises `error` for what is no Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return _decoded(pq.read_schema(path).metadata)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as reason:
        raise error(Mistake(where=str(path), found=f"not a readable Parquet file ({reason})")) from reason


def _arrow_table(columns: Mapping[str, Any], metadata: Mapping[str, str] | None) -> Any:
    import pyarrow as pa

    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    return table.replace_schema_metadata(metadata)


def _decoded(metadata: Mapping[bytes, bytes] | None) -> Mapping[str, str]:
    return {key.decode(): value.decode() for key, value in (metadata or {}).items()}
