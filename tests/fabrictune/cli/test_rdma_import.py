"""`rdma import`, as a user and a script meet it."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run

GOLDEN = Path(__file__).parents[2] / "golden" / "perftest"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records go to a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


def test_rows_of_several_files_are_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Bandwidths in bits a second, latencies in their own columns, a contradiction as a warning."""
    assert run(["rdma", "import", str(GOLDEN / "read_lat.txt"), str(GOLDEN / "bidirectional.txt")]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[:6] == [
        "4 measurements",
        "test device QPs size (B) iterations bandwidth peak median average p99 max",
        "RDMA_Read Latency mlx5_0 1 2 1000 1.84 us 2.04 us 5.02 us 9.65 us",
        "Send Bidirectional BW mlx5_bond_1 4 65536 5000 384 Gbps 388 Gbps",
        "RDMA_Write BW 65536 1000 23.14 Gbps 23.14 Gbps",
        "RDMA_Write BW 1048576 1000 191.4 Gbps 191.4 Gbps",
    ]
    assert (
        "warning: a device, 1048576 B: 191.4 Gbps; expected 92.27 Gbps, its rate of messages times their size "
        "[rdma.message-rate-contradiction]"
    ) in lines


def test_a_record_says_minus_one_for_what_was_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """0 would be a measurement."""
    assert run(["rdma", "import", str(GOLDEN / "write_bw.json"), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["measurements"]
    assert (row["size_bytes"], row["median_ns"], row["source"]) == (65536, -1, "write_bw.json")
