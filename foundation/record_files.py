"""Files of a record's folder beside its tables: those for other tools, and tables of another version.

They are named and measured, never read: of a Parquet file the footer alone says how many rows it has. Links and folders
are not followed.
"""

from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.record_folders import FOR_OTHER_TOOLS
from fabrictune.foundation.run_tables.catalog import TABLES
from fabrictune.foundation.tables import read_num_rows

TABLE = ".parquet"
UNKNOWN_TABLE = "a table that this version does not know"
DAMAGED = "not a readable Parquet file"


@dataclass(frozen=True, kw_only=True)
class RecordFile:
    """One file beside the tables of a record."""

    name: str
    meaning: str
    num_bytes: int
    num_rows: int | None  # None for what is no table


def files_beside_tables(directory: Path) -> tuple[RecordFile, ...]:
    """Return the files for other tools and the unknown tables of a record's folder, by name."""
    names = sorted(path.name for path in directory.iterdir() if path.name in FOR_OTHER_TOOLS or _is_unknown(path))
    files = (_describe(directory / name) for name in names)
    return tuple(file for file in files if file is not None)


def _is_unknown(path: Path) -> bool:
    return path.suffix == TABLE and path.stem not in TABLES


def _describe(path: Path) -> RecordFile | None:
    """Return what is known of a file; None where it is no regular file, or gone."""
    try:
        status = path.lstat()
    except OSError:
        return None
    if not S_ISREG(status.st_mode):
        return None
    meaning, num_rows = FOR_OTHER_TOOLS.get(path.name, UNKNOWN_TABLE), None
    if path.suffix == TABLE:
        try:
            num_rows = read_num_rows(path, error=RecordError)
        except RecordError:
            meaning = DAMAGED
    return RecordFile(name=path.name, meaning=meaning, num_bytes=status.st_size, num_rows=num_rows)
