"""`rdma counters`, as a user and a script meet it."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run

GOLDEN = Path(__file__).parents[2] / "golden" / "counters"
BEFORE, AFTER = str(GOLDEN / "before.txt"), str(GOLDEN / "after.txt")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records go to a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


def test_two_snapshots_are_a_table_of_what_rose(capsys: pytest.CaptureFixture[str]) -> None:
    """With rates where the interval is known; a link that went down ends with exit code 1."""
    assert run(["rdma", "counters", BEFORE, AFTER, "--interval", "10s"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in lines[:11]] == [
        "24 counters of 4 devices",
        "device counter what it counts rise per second",
        "eth2 rx_packets packets received 1,000 100",
        "eth2 tx_bytes_phy bytes sent 2 GB 200 MB",
        "eth2 rx_prio3_pause pauses received 30 3",
        "eth2 rx_prio3_pause_duration time paused by the network 200 ms 20 ms",
        "eth2 link_down_events_phy link downs 1 0.1",
        "lid134/1 PortXmitData bytes sent 20 B 2 B at its largest value",
        "lid134/1 PortRcvData bytes received 80 B 8 B",
        "mlx5_0/1 out_of_buffer packets without a receive buffer 10 1 wrapped",
        "mlx5_0/1 local_ack_timeout_err retransmissions after a timeout 4 0.4",
    ]
    assert "error: eth2: link downs: 1; expected no rise [counters.link-downs]" in lines


def test_a_record_has_every_counter(capsys: pytest.CaptureFixture[str]) -> None:
    """Also what did not rise; -1 for what is unknown."""
    assert run(["rdma", "counters", BEFORE, AFTER, "--json", "--fail-on", "never"]) == 0
    printed = json.loads(capsys.readouterr().out)
    rows = {(row["device"], row["counter"]): row for row in printed["counters"]}
    assert len(rows) == 24
    assert rows["mlx5_1/1", "out_of_buffer"]["rise"] == -1
    assert rows["mlx5_0/1", "out_of_buffer"]["has_wrapped"] == 1
    assert Path(printed["record"], "run.json").exists()


def test_one_snapshot_is_shown_and_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    """Its totals count since the driver was loaded, or somebody cleared them."""
    assert run(["rdma", "counters", BEFORE]) == 0
    out = capsys.readouterr().out
    assert "lid134/1 PortXmitData bytes sent 17.18 GB" in " ".join(out.split())
    assert "note: one snapshot: its totals count since an unknown time, and nothing is judged" in out
    assert "no checks" in out
