"""perftest's output in public repositories is read whole."""

from pathlib import Path

import pytest

from fabrictune.rdma_bench.measurement.perftest_files import rate_contradictions, read_perftest

pytestmark = pytest.mark.real


def test_server_and_client_mixed_line_by_line(real_data: Path) -> None:
    """24 rows, of which the last is printed by both; no bandwidth contradicts its rate of messages."""
    file = read_perftest(real_data / "nccl" / "ib_loopback_all_sizes.log")
    assert [row.size_bytes for row in file.rows] == [*(2**power for power in range(1, 24)), 2**23]
    assert {(row.test, row.device, row.num_queue_pairs) for row in file.rows} == {("RDMA_Write BW", "ib0", 1)}
    assert file.rows[-1].bandwidth_bps == 23240.68 * 8 * 2**20
    assert not list(rate_contradictions(file.rows))
    assert [note.split(": ", 1)[1] for note in file.notes] == [
        "rows that stand there twice, as server and client print them: 1"
    ]
