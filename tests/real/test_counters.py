"""Counters of NICs in public repositories are read whole."""

from pathlib import Path

import pytest

from fabrictune.rdma_bench.counters.snapshots import read_snapshot

pytestmark = pytest.mark.real


def test_paths_of_sysfs(real_data: Path) -> None:
    """89 lines: 45 counters of a port, of which every name is known, and 44 settings."""
    snapshot = read_snapshot(real_data / "counters" / "procfs_mlx5_0_and_ecn.txt")
    values = {name: counter.value for (device, name), counter in snapshot.counters.items() if device == "mlx5_0/1"}
    assert len(values) == len(snapshot.counters) == 45
    assert (values["local_ack_timeout_err"], values["roce_adp_retrans"], values["duplicate_request"]) == (131, 99, 41)
    assert len(snapshot.settings) == 44
    assert snapshot.settings["eth0", "ecn/roce_np/cnp_dscp"] == "48"
    assert all(counter.meaning.counter_class for counter in snapshot.counters.values())
    assert snapshot.notes == ()


def test_a_session_with_mlnx_qos(real_data: Path) -> None:
    """Two reports of one interface; the lines of other commands are counted."""
    snapshot = read_snapshot(real_data / "counters" / "mlnx_qos_lossless.txt")
    assert snapshot.settings["eth4", "PFC of priorities 0 to 7"] == "0 0 0 1 0 0 0 0"
    assert snapshot.settings["eth4", "DSCP of priority 3"] == "31,30,29,28,27,26,25,24"
    assert snapshot.settings["eth4", "priorities of traffic class 0"] == "1"
    assert len(snapshot.settings) == 4 + 8 + 16
