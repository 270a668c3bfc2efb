"""Measurements from files of every kind, and what has to be told where the file does not say it."""

from pathlib import Path

import pytest

from fabrictune.collectives.measurement.files import ImportHints, read_measurements
from fabrictune.collectives.measurement.measurements import UNCHECKED, Measurement, to_table
from fabrictune.foundation.errors import InputError, RecordError
from fabrictune.foundation.records import RunRecord

HEAD = [f"#  Rank  {rank} Group  0 Pid  1 on node-{rank % 2} device  0 [0x00] A100" for rank in range(4)]
ROW = "  1048576  262144  float  sum  -1  100.00  10.49  15.73  0  N/A  N/A  N/A  N/A"
MEASURED = Measurement(
    name="all_reduce", is_in_place=False, size_bytes=1048576, num_ranks=4, mean_ns=100_000.0, num_wrong=0
)


def written(folder: Path, *lines: str) -> Path:
    path = folder / "run.txt"
    path.write_text("\n".join(lines))
    return path


def test_text_becomes_measurements(tmp_path: Path) -> None:
    """1 MiB in 100 us: 10.49 GB/s, times 6/4; the operation follows from that ratio."""
    imported = read_measurements(written(tmp_path, *HEAD, ROW))
    assert imported.rows == (MEASURED,)
    assert imported.rows[0].algorithm_bandwidth_bps / 8e9 == pytest.approx(10.49, abs=0.005)
    assert imported.rows[0].bus_bandwidth_bps / 8e9 == pytest.approx(15.73, abs=0.005)
    assert (imported.source, imported.num_hosts, imported.hosts) == ("nccl-tests, text", 2, ())


def test_hosts_are_named_only_on_request(tmp_path: Path) -> None:
    """Counted else."""
    path = written(tmp_path, *HEAD, ROW)
    assert read_measurements(path, ImportHints(keeps_hosts=True)).hosts == ("node-0", "node-1")


def test_what_the_file_does_not_say_must_be_told(tmp_path: Path) -> None:
    """Without its head: neither how many ranks, nor, therefore, which operation."""
    path = written(tmp_path, ROW)
    with pytest.raises(
        InputError, match=r"may be all_reduce or reduce_scatter or send_recv\n.*\n  next: say it with --op"
    ):
        read_measurements(path)
    with pytest.raises(InputError, match="does not list its ranks\n  next: say it with --num-ranks"):
        read_measurements(path, ImportHints(name="all_reduce"))
    assert read_measurements(path, ImportHints(name="all_reduce", num_ranks=4)).rows == (MEASURED,)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Imported once, and read again."""
    imported = read_measurements(written(tmp_path, *HEAD, ROW))
    again = read_measurements(imported.record(started=0.0).write(tmp_path / "record"))
    assert (again.rows, again.source, again.num_hosts) == (imported.rows, "coll import", 2)


def test_an_empty_size_is_no_measurement(tmp_path: Path) -> None:
    """nccl-tests runs sizes that round to nothing."""
    rows = ["  0  0  float  sum  -1  35.20  0.00  0.00  N/A  34.05  0.00  0.00  N/A", ROW]
    assert len(read_measurements(written(tmp_path, *HEAD, *rows)).rows) == 1
    with pytest.raises(InputError, match="no row with a size and a time"):
        read_measurements(written(tmp_path, *HEAD, rows[0]), ImportHints(name="all_reduce"))


def test_what_a_file_says_against_itself_is_in_its_record_and_in_what_is_read_of_it(tmp_path: Path) -> None:
    """Rank 2 of four is not listed, a row has 0 B, no average: one finding, and one check that did not run."""
    rows = ["  0  0  float  sum  -1  35.20  0.00  0.00  N/A  34.05  0.00  0.00  N/A", ROW]
    lines = [line for line in HEAD if "Rank  2" not in line]
    imported = read_measurements(written(tmp_path, *lines, *rows), ImportHints(name="all_reduce"))
    assert [row.num_ranks for row in imported.rows] == [4]
    record = imported.record(started=0.0)
    assert [finding.id for finding in record.findings] == ["coll.missing-ranks"]
    assert [check.result.value for check in record.checks or ()] == ["found", "passed", "not run"]
    assert record.run["notes"][0] == "rows of 0 B, which have no bandwidth, left out: 1 of 2"
    again = read_measurements(record.write(tmp_path / "record"))
    assert (again.report, again.notes) == (imported.report, imported.notes)


def test_rules_of_another_version_are_counted(tmp_path: Path) -> None:
    """What a rule means that this version does not have cannot be said; that it was there can."""
    directory = read_measurements(written(tmp_path, *HEAD, ROW)).record(started=0.0).write(tmp_path / "record")
    head = directory / "run.json"
    head.write_text(head.read_text().replace("coll.bandwidth-contradiction", "coll.bandwidth-average"))
    again = read_measurements(directory)
    assert "checks and findings of rules that this version does not have, left out: 1" in again.notes
    assert len(again.report.checks) == 2
    again.record(started=0.0).write(tmp_path / "again")


def test_ranks_that_are_given_are_checked_against_the_columns(tmp_path: Path) -> None:
    """1.5 is the ratio of 4 ranks; 8 would print 1.75."""
    imported = read_measurements(written(tmp_path, *HEAD, ROW), ImportHints(name="all_reduce", num_ranks=8))
    assert [finding.id for finding in imported.report.findings] == ["coll.bandwidth-contradiction"]


def test_records_of_another_kind_or_with_other_values_are_refused(tmp_path: Path) -> None:
    """A record of a storm, and one in which a time is negative."""
    other = RunRecord(kind="coll init storm", run={}).write(tmp_path / "storm")
    with pytest.raises(RecordError, match="a record of 'coll init storm' without operation"):
        read_measurements(other)
    row = Measurement(name="all_reduce", is_in_place=True, size_bytes=8, num_ranks=2, mean_ns=-1.0)
    bad = RunRecord(kind="coll import", run={}, tables={"measurements": to_table([row])}).write(tmp_path / "bad")
    with pytest.raises(RecordError, match="table measurements"):
        read_measurements(bad)
    assert row.num_wrong == UNCHECKED


@pytest.mark.parametrize("line", ['{"event": "launch", "nodes": 2}', "{ srun: job 17 started }"])
def test_text_may_begin_with_a_brace(line: str, tmp_path: Path) -> None:
    """A launcher's own first line made a text of nccl-tests broken JSON."""
    imported = read_measurements(written(tmp_path, line, *HEAD, ROW))
    assert (imported.rows, imported.source) == ((MEASURED,), "nccl-tests, text")


def test_broken_json_is_told_as_json(tmp_path: Path) -> None:
    """It has no row of text either."""
    with pytest.raises(InputError, match="no JSON"):
        read_measurements(written(tmp_path, '{"results": [', "  1"))
