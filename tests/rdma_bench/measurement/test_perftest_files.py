"""What perftest's programs printed is read row by row, in every layout that they have had."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.rdma_bench.measurement.perftest_files import read_perftest
from fabrictune.rdma_bench.measurement.perftest_record import make_perftest_record

GOLDEN = Path(__file__).parents[2] / "golden" / "perftest"
MIB = 8 * 2**20


def test_latencies_behind_the_tags_of_a_launcher() -> None:
    """In nanoseconds; a row whose numbers run together is counted, not guessed."""
    file = read_perftest(GOLDEN / "read_lat.txt")
    (row,) = file.rows
    assert (row.test, row.device, row.num_queue_pairs, row.size_bytes) == ("RDMA_Read Latency", "mlx5_0", 1, 2)
    assert (row.min_ns, row.max_ns, row.median_ns, row.average_ns, row.p99_ns, row.p999_ns) == (
        *(1570.0, 9650.0, 1840.0, 2040.0, 5020.0, 9650.0),
    )
    assert row.bandwidth_bps == -1
    (note,) = file.notes
    assert note.endswith(f"...' at {GOLDEN}/read_lat.txt:11)")
    assert "rows that cannot be read, left out: 1 (first '[1,0]<stdout>: 4       1000 " in note


def test_runs_one_after_the_other_have_their_own_head_and_unit() -> None:
    """384 Gb/s of two directions; 2757.93 MiB/s of one, which no line but the heading says."""
    first, second, third = read_perftest(GOLDEN / "bidirectional.txt").rows
    assert (first.test, first.num_directions, first.num_queue_pairs) == ("Send Bidirectional BW", 2, 4)
    assert (first.bandwidth_bps, first.peak_bps) == (384e9, 388e9)
    assert (second.test, second.num_directions, second.num_queue_pairs) == ("RDMA_Write BW", 1, -1)
    assert second.bandwidth_bps == pytest.approx(2757.93 * MIB)
    assert third.messages_per_s == 11_000


def test_a_bandwidth_that_its_rate_contradicts_is_a_finding() -> None:
    """11,000 messages of 1 MiB are 92.27 Gb/s, not 191.4."""
    record = make_perftest_record([read_perftest(GOLDEN / "bidirectional.txt")], started=0.0)
    (finding,) = record.findings
    assert (finding.id, finding.entity) == ("rdma.message-rate-contradiction", "a device, 1048576 B")
    assert (finding.actual, finding.expected) == (
        "191.4 Gbps",
        "92.27 Gbps, its rate of messages times their size",
    )


def test_the_unit_of_json_is_the_one_that_fits_its_rate(tmp_path: Path) -> None:
    """35,668 messages of 64 KiB a second are 18.7 Gb/s: 2229.27 is MiB/s; with --report_gbits it would be 18.7."""
    (row,) = read_perftest(GOLDEN / "write_bw.json").rows
    assert (row.test, row.device, row.num_iterations) == ("RDMA_Write BW", "mlx5_11", 5000)
    assert row.bandwidth_bps == pytest.approx(2229.27 * MIB)
    text = (GOLDEN / "write_bw.json").read_text()
    path = tmp_path / "gbits.json"
    path.write_text(text.replace("2229.27", "18.70").replace('"', ""))  # and as versions before 6.10 write it
    (row,) = read_perftest(path).rows
    assert row.bandwidth_bps == pytest.approx(18.7e9)
    assert row.device == "mlx5_11"


def test_json_of_an_unknown_unit_is_left_out(tmp_path: Path) -> None:
    """Neither MiB/s nor Gb/s fits the rate."""
    path = tmp_path / "broken.json"
    path.write_text((GOLDEN / "write_bw.json").read_text().replace("2229.27", "400"))
    with pytest.raises(InputError) as caught:
        read_perftest(path)
    assert str(caught.value) == (
        f"{path}: no row of results, 1 that cannot be read\n"
        "  allowed: what ib_write_bw, ib_read_lat and the other programs of perftest print"
    )


@pytest.mark.parametrize(
    "text", ["hello\n", "65536 1000 1 2 3\n", "#bytes #iterations\n1 2\n", "#bytes3 #n BW[x]\n1 2 3\n"]
)
def test_a_file_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    """Numbers without a heading above them mean nothing."""
    path = tmp_path / "x.txt"
    path.write_text(text)
    with pytest.raises(InputError, match="no row of results"):
        read_perftest(path)
