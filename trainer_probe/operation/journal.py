"""The journal of a job: its events in the order in which they were recorded, durable before `append` returns.

A path is an SQLite database (write-ahead log, synchronized at each append), `redis://...` a list in a Redis server
(`redis_journal.py`). An event that is sent again with the origin of an earlier one, since its answer was lost, is not
recorded twice.

Left out: SQLite on a network's file system, whose locks and shared memory its log cannot trust.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from fabrictune.foundation.errors import InputError, Mistake, RecordError
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.operation.journal_entries import (
    MAX_EVENT_BYTES,
    Origin,
    decode_event,
    encode_values,
)

FILE_NAME = "journal.sqlite"

_APPLICATION = 0x46547032  # in SQLite's header
_WAIT_S = 30.0  # for another process that writes
_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY,
    elapsed_s REAL NOT NULL,
    time_ns INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    sender TEXT,
    sent_number INTEGER
);
CREATE UNIQUE INDEX IF NOT EXISTS origins ON events (sender, sent_number) WHERE sender IS NOT NULL;
"""


class Journal(Protocol):
    """Events of a job."""

    def append(self, kind: str, values: Mapping[str, Any], *, elapsed_s: float, origin: Origin | None = None) -> int:
        """Record an event and return its number, once it is durable; that of the first where the origin repeats."""
        ...

    def read(self, after: int = 0) -> Iterator[Event]:
        """Return the events with higher numbers than `after`, in order."""
        ...

    def close(self) -> None:
        """End the use of the journal."""
        ...


def open_journal(url: str, *, is_read_only: bool = False) -> Journal:
    """Return the journal of a folder, a file (with a suffix), or a Redis server: `redis://host:port/database?name=JOB`.

    It is made where it is missing, unless it is only read. Raises InputError and RecordError for what is no journal,
    StartupError for a server that cannot be used.
    """
    if "://" in url:
        from fabrictune.trainer_probe.operation.redis_journal import open_redis_journal

        return open_redis_journal(url)
    path = Path(url)
    if path.is_dir() or not path.suffix:
        path = path / FILE_NAME
    return SqliteJournal(path, is_read_only=is_read_only)


class SqliteJournal:
    """A journal in an SQLite database; any thread may use it."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            if is_read_only and not path.exists():
                raise InputError(Mistake(where=str(path), found="there is no journal"))
            if not is_read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
            mode = "ro" if is_read_only else "rwc"
            self._database = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode={mode}",
                uri=True,
                timeout=_WAIT_S,
                isolation_level=None,
                check_same_thread=False,
            )
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error
        try:
            self._database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * MAX_EVENT_BYTES)
            if is_read_only:
                self._check()
            else:
                self._prepare()
        except sqlite3.Error as error:
            self._database.close()
            raise self._unusable(error) from error
        except BaseException:
            self._database.close()
            raise

    def append(self, kind: str, values: Mapping[str, Any], *, elapsed_s: float, origin: Origin | None = None) -> int:
        """Record an event and return its number, once it is durable; that of the first where the origin repeats."""
        sender, sent_number = origin or (None, None)
        row = (elapsed_s, time.time_ns(), kind, encode_values(values), sender, sent_number)
        try:
            with self._lock:
                self._database.execute("BEGIN IMMEDIATE")
                try:
                    number = self._insert(row)
                    self._database.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        self._database.execute("ROLLBACK")
                    raise
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return number

    def read(self, after: int = 0) -> Iterator[Event]:
        """Return the events with higher numbers than `after`, in order; raises RecordError where one is damaged."""
        while True:
            try:
                with self._lock:
                    rows = self._database.execute(
                        "SELECT number, elapsed_s, time_ns, kind, body FROM events WHERE number > ? "
                        "ORDER BY number LIMIT 100",
                        (after,),
                    ).fetchall()
            except sqlite3.Error as error:
                raise self._unusable(error) from error
            if not rows:
                return
            for row in rows:
                yield decode_event(*row, where=str(self._path))
            after = rows[-1][0]

    def close(self) -> None:
        """End the use of the journal."""
        with self._lock:
            self._database.close()

    def _insert(self, row: tuple[Any, ...]) -> int:
        sender, sent_number = row[-2:]
        if sender is not None:
            found = self._database.execute(
                "SELECT number FROM events WHERE sender = ? AND sent_number = ?", (sender, sent_number)
            ).fetchone()
            if found is not None:
                return int(found[0])
        cursor = self._database.execute(
            "INSERT INTO events (elapsed_s, time_ns, kind, body, sender, sent_number) VALUES (?, ?, ?, ?, ?, ?)", row
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _prepare(self) -> None:
        """Make the tables of a new database, or check those of another."""
        is_new = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if not is_new:
            self._check()
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")  # each commit is on the disk when it returns
        if is_new:
            self._database.execute("BEGIN IMMEDIATE")
            for statement in filter(str.strip, _SCHEMA.split(";")):
                self._database.execute(statement)
            self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._database.execute("COMMIT")

    def _check(self) -> None:
        if self._database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise RecordError(Mistake(where=str(self._path), found="not the journal of a job"))

    def _unusable(self, error: Exception) -> RecordError:
        return RecordError(
            Mistake(
                where=str(self._path),
                found=f"cannot be used as a journal ({error})",
                next_step="look at the file and at the disk's room, or name another place",
            )
        )
