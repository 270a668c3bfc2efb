"""Output folders: only what is ours is replaced or removed, in one step, by any number of writers at a time."""

import errno
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation import output_folders
from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord

TOKEN = "0123456789abcdef"


def record(seed: int, num_rows: int = 1) -> RunRecord:
    """Return a record whose head and table both say its seed."""
    column = np.full(num_rows, seed)
    return RunRecord(kind="sim run", run={"seed": seed}, tables={"aborts": {"qp": column, "time_ps": column}})


def content(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("head", ["{}", "[]", "no JSON", '{"format": "1", "kind": "sim run"}', '{"format": 1}'])
def test_a_folder_with_a_foreign_run_json_is_left_alone(tmp_path: Path, head: str) -> None:
    """Other tools call their files so too."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("x")
    (tmp_path / "run.json").write_text(head)
    before = content(tmp_path)
    with pytest.raises(RecordError, match="not an empty folder, and no run record"):
        record(1).write(tmp_path)
    assert content(tmp_path) == before


@pytest.mark.parametrize("name", ["notes.txt", "mine.parquet", "src/code.py"])
def test_a_record_with_a_file_of_someone_is_left_alone(tmp_path: Path, name: str) -> None:
    """A person may keep notes, tables or a folder in a record."""
    run = record(1).write(tmp_path / "run")
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).write_text("x")
    before = content(run)
    with pytest.raises(RecordError) as caught:
        record(2).write(run)
    own = name.partition("/")[0]
    assert str(caught.value) == (
        f"{run}: a run record with {own!r}, not written by a run\n  next: move it, or name another"
    )
    assert content(run) == before


def test_a_page_in_a_record_goes_with_it(tmp_path: Path) -> None:
    """It is of the run that is replaced."""
    run = record(1).write(tmp_path / "run")
    (run / "report.html").write_text("page")
    record(2).write(run)
    assert sorted(path.name for path in run.iterdir()) == ["aborts.parquet", "findings.jsonl", "run.json"]


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_is_neither_followed_nor_replaced(tmp_path: Path, is_dangling: bool) -> None:
    """`--out latest` names the link, not a folder."""
    if not is_dangling:
        record(1).write(tmp_path / "run")
    (tmp_path / "latest").symlink_to("run")
    with pytest.raises(RecordError, match="a link\n  next: name the folder it leads to"):
        record(2).write(tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()


def test_a_head_that_is_a_link_is_no_mark(tmp_path: Path) -> None:
    """The folder's own files make it ours."""
    head = record(1).write(tmp_path / "run") / "run.json"
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "run.json").symlink_to(head)
    with pytest.raises(RecordError, match="not an empty folder, and no run record"):
        record(2).write(folder)


def test_a_relative_place_is_that_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--out .` in an empty folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    record(1).write(Path())
    assert RunRecord.read(tmp_path / "here").run["seed"] == 1


def test_a_replacement_is_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process killed before or after it leaves a record: there is no moment without one."""
    run, seen = record(1).write(tmp_path / "run"), []
    rename = Path.rename

    def renamed(path: Path, target: Path) -> Path:
        seen.append((path.name, Path(target).name))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(Path, "replace", renamed)
    record(2).write(run)
    assert seen == []
    assert RunRecord.read(run).run["seed"] == 2


def test_a_durable_folder_is_on_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut a folder that was renamed too early has empty files: fsync(2) comes first, for each."""
    events: list[object] = []
    fsync, put_in_place = os.fsync, output_folders._put_in_place

    def synced(descriptor: int) -> None:
        events.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def put(new: Path, directory: Path, old: Path) -> None:
        events.append("renamed")
        put_in_place(new, directory, old)

    def fill(new: Path) -> None:
        (new / "run.json").write_text("{}")
        (new / "metrics.jsonl").write_text("{}")

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(output_folders, "_put_in_place", put)
    folder = tmp_path / "point"
    output_folders.write_folder(folder, fill, check=lambda _: None, durably=True)
    written = {path.stat().st_ino for path in (folder, *folder.iterdir())}
    place = events.index("renamed")
    assert set(events[:place]) == written
    assert events[place + 1 :] == [tmp_path.stat().st_ino]


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL])
def test_a_file_system_without_exchange_takes_two_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Such as NFS."""
    monkeypatch.setattr(output_folders, "renameat2", lambda *_: number)
    run = record(1).write(tmp_path / "run")
    record(2).write(run)
    assert RunRecord.read(run).run["seed"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_the_earlier_folder_comes_back_where_the_second_rename_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that is full, or gone."""
    run, rename = record(1).write(tmp_path / "run"), Path.rename

    def failing(path: Path, target: Path) -> Path:
        if path.name == "new":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return rename(path, target)

    monkeypatch.setattr(output_folders, "renameat2", lambda *_: errno.ENOSYS)
    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(RecordError, match=r"cannot be written \(No space left on device\)"):
        record(2).write(run)
    assert RunRecord.read(run).run["seed"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_record_lost_between_two_renames_is_put_back(tmp_path: Path) -> None:
    """The next writer of that name finds it where the killed one left it; a failing one keeps it."""
    run, scratch = record(1).write(tmp_path / "run"), tmp_path / f".run-{TOKEN}"
    scratch.mkdir()
    run.rename(scratch / "old")
    broken: Any = {"aborts": {"qp": np.ones(1, int), "time_ps": np.ones(2, int)}}
    with pytest.raises(ValueError, match="expected length"):
        RunRecord(kind="sim run", run={}, tables=broken).write(tmp_path / "run")
    assert RunRecord.read(tmp_path / "run").run["seed"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_litter_of_a_killed_run_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """Folders of that name and form, without a lock, that hold only what a writer puts there."""
    litter = tmp_path / f".run-{TOKEN}"
    (litter / "new").mkdir(parents=True)
    (litter / "new" / "run.json").write_text("{")
    kept = [
        tmp_path / f".walk-{TOKEN}" / "new" / "run.json",
        tmp_path / ".run-backup" / "new" / "run.json",
        tmp_path / f".run-{TOKEN[::-1]}" / "new" / "folder" / "file",
        tmp_path / f".run-{'a' * 16}" / "mine",
    ]
    for path in kept:
        path.parent.mkdir(parents=True)
        path.write_text("x")
    (tmp_path / f".run-{'b' * 16}").symlink_to(tmp_path / ".run-backup")
    record(1).write(tmp_path / "run")
    assert not litter.exists()
    assert all(path.exists() for path in kept)
    assert (tmp_path / f".run-{'b' * 16}").is_symlink()


def test_what_a_living_writer_makes_is_no_litter(tmp_path: Path) -> None:
    """The second of two writers of one name leaves the first one's folder alone; the last to end is read."""
    run = tmp_path / "run"

    def fill(folder: Path) -> None:
        record(2).write(run)
        (folder / "run.json").write_text('{"format": 1, "kind": "sim run", "seed": 1}')

    output_folders.write_folder(run, fill, check=lambda _: None)
    assert RunRecord.read(run).run["seed"] == 1


def test_many_writers_and_readers_of_one_name(tmp_path: Path) -> None:
    """No write is lost or fails, and every record that is read is that of one run."""
    run, failures, mixed = record(1).write(tmp_path / "run"), [], []
    is_over = threading.Event()

    def write(first: int) -> None:
        try:
            for seed in range(first, first + 30):
                record(seed, num_rows=seed).write(run)
        except Exception as error:
            failures.append(error)

    def read() -> None:
        while not is_over.is_set():
            try:
                found = RunRecord.read(run)
            except Exception as error:
                failures.append(error)
                return
            if found.tables["aborts"]["qp"].tolist() != [found.run["seed"]] * found.run["seed"]:
                mixed.append(found.run["seed"])

    writers = [threading.Thread(target=write, args=(first,)) for first in (1, 101, 201)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    is_over.set()
    for thread in readers:
        thread.join()
    assert (failures, mixed) == ([], [])
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
