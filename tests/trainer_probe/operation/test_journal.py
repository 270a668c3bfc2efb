"""Journals in SQLite and in a real Redis server, whose writers are killed for real."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fabrictune.collectives.startup.addresses import PASSWORD_VARIABLE
from fabrictune.collectives.startup.servers import Server, start_redis
from fabrictune.foundation.errors import FabrictuneWarning, InputError, RecordError, StartupError
from fabrictune.trainer_probe.operation.journal import FILE_NAME, Journal, SqliteJournal, open_journal

# Forks a writer, kills it after a few events, and forks the next, which repeats the last event that was said to be
# durable and goes on. What a writer had said until it was dead is passed on.
KILLER = """
import os, signal, sys
from fabrictune.trainer_probe.operation.journal import open_journal
if "://" in sys.argv[1]:
    import fabrictune.collectives.startup.redis_connection
first = 0
for kill in range(20):
    read_end, write_end = os.pipe()
    writer = os.fork()
    if writer == 0:
        journal = open_journal(sys.argv[1])
        for number in range(first, first + 1_000_000):
            found = journal.append("step", {"step": number, "text": "x" * 500}, elapsed_s=0, origin=("driver", number))
            os.write(write_end, f"{number} {found}\\n".encode())
    os.close(write_end)
    with os.fdopen(read_end) as lines:
        for count, line in enumerate(lines):
            if count == 3 + kill % 5:
                os.kill(writer, signal.SIGKILL)
            print(line, end="")
            first = int(line.split()[0])
    assert os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]) == -signal.SIGKILL
"""


@contextmanager
def always_durable(folder: Path, port: int = 0, password: str = "") -> Iterator[Server]:
    """A Redis server that writes each event to disk before it answers."""
    settings = {"appendonly": "yes", "appendfsync": "always", "dir": str(folder)}
    with start_redis(port=port, password=password, settings=settings) as server:
        yield server


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty journal of each kind."""
    if request.param == "sqlite":
        yield str(tmp_path / "job")
        return
    request.getfixturevalue("has_redis")
    with always_durable(tmp_path) as server:
        monkeypatch.setenv(PASSWORD_VARIABLE, server.address.password or "")
        yield f"{server.address}/0?name=test"


@contextmanager
def opened(url: str) -> Iterator[Journal]:
    journal = open_journal(url)
    try:
        yield journal
    finally:
        journal.close()


def test_events_are_read_as_they_were_appended(url: str) -> None:
    """Numbered from 1; reading goes on after any of them, and another reader sees what is there."""
    with opened(url) as journal:
        numbers = [journal.append("step", {"step": step, "loss": 0.5}, elapsed_s=step / 2) for step in range(250)]
        assert numbers == list(range(1, 251))
        with opened(url) as other:
            assert [event.values["step"] for event in other.read()] == list(range(250))
        (event, *_) = journal.read(after=17)
    assert (event.number, event.kind, event.values, event.elapsed_s) == (18, "step", {"step": 17, "loss": 0.5}, 8.5)


def test_an_origin_is_recorded_once(url: str) -> None:
    """A sender whose answer was lost sends again, perhaps to a driver that has started since."""
    with opened(url) as journal:
        assert journal.append("saved", {"step": 1}, elapsed_s=0, origin=("node a", 7)) == 1
        assert journal.append("saved", {"step": 1}, elapsed_s=0, origin=("node b", 7)) == 2
    with opened(url) as journal:
        assert journal.append("saved", {"step": 1}, elapsed_s=0, origin=("node a", 7)) == 1
        assert journal.append("saved", {"step": 2}, elapsed_s=0) == 3
        assert len(list(journal.read())) == 3


def test_two_writers_share_a_journal(url: str) -> None:
    """A driver and the one that takes its place may both write for a moment: each number is given once."""
    with opened(url) as first, opened(url) as second:
        found: list[int] = []

        def write(journal: Journal) -> None:
            found.extend(journal.append("step", {}, elapsed_s=0) for _ in range(20))

        threads = [threading.Thread(target=write, args=(journal,)) for journal in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == list(range(1, 41))


def test_twenty_kills_lose_and_double_nothing(url: str) -> None:
    """What a writer said to be durable before its SIGKILL is there, once, and numbers have no gap."""
    command = [sys.executable, "-P", "-c", KILLER, url]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    said: dict[int, int] = {}
    for line in output.splitlines():
        step, number = map(int, line.split())
        assert said.setdefault(step, number) == number
    with opened(url) as journal:
        events = list(journal.read())
    steps = [event.values["step"] for event in events]
    assert len(said) >= 60
    assert steps == sorted(set(steps))
    assert {event.values["step"]: event.number for event in events}.items() >= said.items()
    assert [event.number for event in events] == list(range(1, len(events) + 1))


def test_redis_may_be_away_for_a_while(has_redis: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append waits for a server that is killed and started again with its data."""
    with always_durable(tmp_path) as server:
        password = server.address.password or ""
        monkeypatch.setenv(PASSWORD_VARIABLE, password)
        journal = open_journal(str(server.address))
        assert journal.append("step", {"step": 0}, elapsed_s=0) == 1
        server.kill()
        appending = threading.Thread(target=journal.append, args=("step", {"step": 1}), kwargs={"elapsed_s": 1})
        appending.start()
        with always_durable(tmp_path, server.address.port, password):
            appending.join()
            assert [event.values["step"] for event in journal.read()] == [0, 1]
            journal.close()


def test_redis_that_forgets_is_said(has_redis: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server in memory alone loses the journal with its host."""
    with start_redis() as server:
        monkeypatch.setenv(PASSWORD_VARIABLE, server.address.password or "")
        with pytest.warns(FabrictuneWarning, match="keeps events in memory"):
            open_journal(str(server.address)).close()


def test_passwords_stay_out_of_messages(has_redis: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one in the address nor a wrong one is repeated."""
    with pytest.raises(InputError) as in_address:
        open_journal("redis://me:hunter2@localhost/0")
    monkeypatch.setenv(PASSWORD_VARIABLE, "hunter3")
    with start_redis() as server, pytest.raises(StartupError) as refused:
        open_journal(str(server.address))
    assert PASSWORD_VARIABLE in str(in_address.value)
    assert PASSWORD_VARIABLE in str(refused.value)
    assert "hunter" not in f"{in_address.value} {refused.value}"


@pytest.mark.parametrize("content", [b"SQLite format 3\0" + b"\xff" * 5000, b"{}", b"x" * 100_000])
def test_other_files_are_no_journals(tmp_path: Path, content: bytes) -> None:
    """Neither foreign nor damaged ones are written to."""
    path = tmp_path / "file.sqlite"
    path.write_bytes(content)
    for is_read_only in (False, True):
        with pytest.raises(RecordError, match=r"file\.sqlite: cannot be used as a journal"):
            open_journal(str(path), is_read_only=is_read_only)
    assert path.read_bytes() == content


def test_another_database_is_no_journal(tmp_path: Path) -> None:
    """A program's own tables stay its own."""
    path = tmp_path / "other.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE other (number INTEGER)")
    database.commit()
    database.close()
    with pytest.raises(RecordError, match="not the journal of a job"):
        open_journal(str(path))


def test_reading_makes_no_journal(tmp_path: Path) -> None:
    """A question about a job that is not there leaves nothing behind."""
    with pytest.raises(InputError, match="there is no journal"):
        open_journal(str(tmp_path / "job"), is_read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_beside_the_writer_sees_each_event(tmp_path: Path) -> None:
    """`train status` reads while the driver writes."""
    writer = open_journal(str(tmp_path))
    reader = open_journal(str(tmp_path), is_read_only=True)
    for step in range(3):
        writer.append("step", {"step": step}, elapsed_s=0)
        assert [event.values["step"] for event in reader.read(after=step)] == [step]
    writer.close()
    reader.close()


def test_a_damaged_event_is_named(tmp_path: Path) -> None:
    """Its number says where."""
    journal = SqliteJournal(tmp_path / FILE_NAME)
    journal.append("step", {}, elapsed_s=0)
    journal._database.execute("UPDATE events SET body = '[1'")
    with pytest.raises(RecordError, match="event 1: damaged"):
        list(journal.read())
    journal.close()


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A file where a folder is needed."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="cannot be used as a journal"):
        open_journal(os.fspath(tmp_path / "file" / "job"))
