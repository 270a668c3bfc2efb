"""Parquet files as tables: written and read in one place, with one set of bounds.

pyarrow is imported when a file is touched and not before, so that a command that touches none starts at once.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabrictune.foundation.errors import FabrictuneError, Mistake

MAX_ROWS = 200_000_000  # a larger file is refused rather than read into memory


def write_table(path: Path, columns: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Write columns (arrays of NumPy or Arrow, of one length) as one Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    pq.write_table(table.replace_schema_metadata(metadata), path)


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
    """Return what was written beside the columns; raises `error` for what is no Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_schema(path).metadata or {}
        return {key.decode(): value.decode() for key, value in found.items()}
    except (OSError, pa.ArrowException, UnicodeDecodeError) as reason:
        raise error(Mistake(where=str(path), found=f"not a readable Parquet file ({reason})")) from reason
