"""A record is whole or absent, reads back as it was written, and says what is wrong with a bad one."""

import json
import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.foreign_files import read_foreign
from fabrictune.foundation.records import MAX_JSON_BYTES, Confidence, Finding, RunRecord, Severity, describe_run

FINDING = Finding(
    id="ecmp.link-overloaded",
    severity=Severity.WARNING,
    entity="tor-0:eth1 -> agg-0:eth1",
    expected="at most 400 Gbps",
    actual="800 Gbps from 2 flows",
    next_step="place the rings on one ToR set",
    confidence=Confidence.PREDICTED,
    evidence=("loads row 3",),
)


def record(**run: Any) -> RunRecord:
    """Return a small record."""
    table = {"port": np.array([0, 1]), "cause": np.array(["a", "\u00fc"], object), "packets": np.array([3, 2**40])}
    rates = {
        "qp": np.array([0, 1]),
        "throughput_fraction": np.array([0.1, np.nan]),
        "fair_rate_bps": np.array([10**11, 0]),
    }
    empty = {"qp": np.zeros(0, np.int64), "time_ps": np.zeros(0, np.int64)}
    return RunRecord(
        kind="sim run",
        run={"seed": 1, **run},
        tables={"drops": table, "throughput": rates, "aborts": empty},
        findings=(FINDING,),
    )


def test_a_record_reads_back_as_it_was_written(tmp_path: Path) -> None:
    """Head, tables of whole numbers, numbers and text, an empty table, findings."""
    written = record(scenario="seed: 1\n")
    read = RunRecord.read(written.write(tmp_path / "runs" / "first"))
    assert (read.kind, read.run, read.findings) == (written.kind, written.run, written.findings)
    assert set(read.tables) == {"drops", "throughput", "aborts"}
    for name, columns in written.tables.items():
        for column, values in columns.items():
            np.testing.assert_array_equal(read.tables[name][column], values)
            assert read.tables[name][column].dtype == values.dtype


def test_the_same_record_makes_the_same_bytes(tmp_path: Path) -> None:
    """Golden records are compared byte for byte."""
    first, second = (record().write(tmp_path / name) for name in ("first", "second"))
    assert {path.name: path.read_bytes() for path in first.iterdir()} == {
        path.name: path.read_bytes() for path in second.iterdir()
    }


def test_files_for_other_tools_are_not_read_as_tables(tmp_path: Path) -> None:
    """A trace is Parquet too, and lies beside the tables; a record that was read can be written again."""
    written = replace(record(), files={"comm_trace.parquet": b"noise"}).write(tmp_path / "run")
    read = RunRecord.read(written)
    assert set(read.tables) == set(record().tables)
    assert read.write(tmp_path / "again").exists()


def test_an_earlier_record_is_replaced_whole(tmp_path: Path) -> None:
    """Nothing of the earlier one stays, not even a table the later one lacks, and no scratch folder either."""
    record().write(tmp_path / "run")
    RunRecord(kind="sim run", run={"seed": 2}).write(tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["findings.jsonl", "run.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    """`--out ~` must not empty a home."""
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RecordError) as caught:
        record().write(tmp_path)
    assert str(caught.value) == f"{tmp_path}: not an empty folder, and no run record\n  next: name another"
    assert (tmp_path / "thesis.tex").exists()


def test_a_file_in_the_place_of_the_folder_is_left_alone(tmp_path: Path) -> None:
    """The place given may be a file."""
    path = tmp_path / "run"
    path.write_text("x")
    with pytest.raises(RecordError, match="not an empty folder, and no run record"):
        record().write(path)


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """A file stands where a folder above the record should."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(RecordError, match="cannot be written"):
        record().write(tmp_path / "file" / "run")


def test_a_failing_writer_keeps_the_earlier_record(tmp_path: Path) -> None:
    """The second write fails on its last table (columns of unequal length); the first record still reads."""
    record().write(tmp_path / "run")
    broken = RunRecord(kind="sim run", run={}, tables={"aborts": {"qp": np.ones(1, int), "time_ps": np.ones(2, int)}})
    with pytest.raises(ValueError, match="expected length"):
        broken.write(tmp_path / "run")
    assert RunRecord.read(tmp_path / "run").run["seed"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def write_until_killed(directory: Path) -> None:
    """Write a record whose last column kills the process as it is read."""

    class Deadly:
        def __arrow_array__(self, type: object = None) -> object:  # noqa: A002 - pyarrow's name
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError("unreachable")

    port = np.arange(10)
    tables: Any = {
        "aborts": {"qp": port, "time_ps": port},
        "drops": {"port": port, "packets": port, "cause": Deadly()},
    }
    RunRecord(kind="sim run", run={}, tables=tables).write(directory)


def test_a_killed_writer_leaves_no_half_record(tmp_path: Path) -> None:
    """The process dies by SIGKILL after its first table is on disk: no folder of that name appears."""
    process = multiprocessing.get_context("spawn").Process(target=write_until_killed, args=(tmp_path / "run",))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert list(tmp_path.glob(".run-*/new/aborts.parquet")), "it died in the middle of writing"
    with pytest.raises(RecordError, match=r"no run\.json, so no run record"):
        RunRecord.read(tmp_path / "run")


NO_RECORD = "{folder}: no run.json, so no run record\n  next: give the folder that a run wrote, such as runs/incast"


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (None, NO_RECORD),
        (b"", "{head}: not readable (Expecting value: line 1 column 1 (char 0))"),
        (b"[]", "{head}: not the head of a run record"),
        (b'{"format": 1}', "{head}: not the head of a run record"),
        (b'{"format": 1, "kind": 3}', "{head}: not the head of a run record"),
        (b'{"format": 2, "kind": "sim run"}', "{head}: format 2\n  allowed: format 1"),
        (b'{"kind": "sim run"}', "{head}: format None\n  allowed: format 1"),
    ],
)
def test_a_bad_head_is_refused(tmp_path: Path, head: bytes | None, message: str) -> None:
    """Absent, empty, another JSON value, incomplete, of another version."""
    if head is not None:
        (tmp_path / "run.json").write_bytes(head)
    with pytest.raises(RecordError) as caught:
        RunRecord.read(tmp_path)
    assert str(caught.value) == message.format(folder=tmp_path, head=tmp_path / "run.json")


@pytest.mark.parametrize("noise", [b"\xff\xfe\x00", b"[" * 100_000])
def test_noise_in_head_or_findings_is_refused(tmp_path: Path, noise: bytes) -> None:
    """Bytes that are no UTF-8, and brackets nested deeper than the reader's stack."""
    (tmp_path / "run.json").write_bytes(noise)
    with pytest.raises(RecordError, match=r"run\.json: not readable"):
        RunRecord.read(tmp_path)
    (tmp_path / "run.json").write_text('{"format": 1, "kind": "sim run"}')
    (tmp_path / "findings.jsonl").write_bytes(noise)
    with pytest.raises(RecordError, match=r"findings.jsonl:1: not a finding"):
        RunRecord.read(tmp_path)


def test_a_head_larger_than_any_real_one_is_not_read(tmp_path: Path) -> None:
    """One byte above 64 MiB, a hole on disk."""
    with (tmp_path / "run.json").open("wb") as file:
        file.truncate(MAX_JSON_BYTES + 1)
    with pytest.raises(
        RecordError,
        match=r"a file of 67108865 bytes\n  allowed: at most 67108864 bytes\n  next: leave out",
    ):
        RunRecord.read(tmp_path)


@pytest.mark.parametrize("field", ["severity", "evidence", "entity"])
def test_a_finding_without_a_field_is_named_by_its_line(tmp_path: Path, field: str) -> None:
    """The second line lacks a field; the first is whole."""
    directory = record().write(tmp_path / "run")
    path = directory / "findings.jsonl"
    whole = path.read_text()
    path.write_text(whole + json.dumps({key: value for key, value in json.loads(whole).items() if key != field}) + "\n")
    with pytest.raises(RecordError, match=r"findings.jsonl:2: not a finding"):
        RunRecord.read(directory)


def test_a_table_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    """A record that was damaged on its way."""
    directory = record().write(tmp_path / "run")
    (directory / "drops.parquet").write_bytes(b"noise")
    with pytest.raises(RecordError, match=r"drops\.parquet: not a readable Parquet file"):
        RunRecord.read(directory)


def test_severities_are_ordered() -> None:
    """`--fail-on warning` compares ranks."""
    assert [severity.rank for severity in Severity] == [0, 1, 2, 3]
    assert Severity("critical").rank > Severity.INFO.rank


def test_a_run_describes_itself() -> None:
    """What a figure's reader needs: seed, versions, machine, time taken."""
    run = describe_run(seed=3, started=0.0, scenario="x")
    assert set(run) == {"seed", "versions", "machine", "wall_s", "scenario"}
    assert set(run["machine"]) == {"processor", "cores", "system", "python"}
    assert json.loads(json.dumps(run)) == run


def saved(directory: Path) -> Path:
    """Return a directory with a record."""
    return record().write(directory)


@pytest.mark.parametrize("name", ["run.json", "findings.jsonl", "drops.parquet"])
@pytest.mark.parametrize("link_to", ["/dev/zero", None])
def test_a_device_or_a_pipe_in_a_record_is_refused(name: str, link_to: str | None, tmp_path: Path) -> None:
    """Its size is 0, and neither ends."""
    path = saved(tmp_path / "run") / name
    path.unlink()
    path.symlink_to(link_to) if link_to else os.mkfifo(path)
    with pytest.raises(RecordError, match=rf"{name}: not a file$"):
        RunRecord.read(tmp_path / "run")


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size at the start was right."""
    path = tmp_path / "growing"
    path.write_bytes(b"x" * 100)
    monkeypatch.setattr(os, "fstat", lambda descriptor: os.stat_result((0o100644, *[0] * 9)))
    with pytest.raises(
        RecordError,
        match=r"growing: more than 99 bytes\n  allowed: at most 99 bytes\n  next: leave out",
    ):
        read_foreign(path, max_bytes=99, error=RecordError)


def test_only_the_tables_that_are_asked_for_are_read(tmp_path: Path) -> None:
    """A broken table that nobody needs harms nobody."""
    directory = saved(tmp_path / "run")
    (directory / "drops.parquet").write_bytes(b"PAR1")
    assert list(RunRecord.read(directory, tables=("throughput",)).tables) == ["throughput"]


def test_half_a_character_in_a_record_is_refused(tmp_path: Path) -> None:
    """Half of a surrogate pair, which no page can hold: it was a UnicodeEncodeError and an empty page."""
    directory = saved(tmp_path / "run")
    head = directory / "run.json"
    head.write_text(head.read_text().replace('"seed": 1', '"name": "\\ud800"'))
    with pytest.raises(RecordError, match=r"run.json: not readable \('\\ud800' is half of a character\)$"):
        RunRecord.read(directory)


@pytest.mark.parametrize(("field", "value"), [("entity", {}), ("actual", 5), ("evidence", [[]])])
def test_a_finding_of_other_values_than_text_is_named_by_its_line(field: str, value: Any, tmp_path: Path) -> None:
    """Pages and terminals sort and print them."""
    path = saved(tmp_path / "run") / "findings.jsonl"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(RecordError, match=r"findings.jsonl:1: not a finding \((a value|evidence) that is no text\)$"):
        RunRecord.read(tmp_path / "run")
