"""Counters are read from what tools print, with their device, and what is no counter is counted."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.rdma_bench.counters.snapshots import Snapshot, read_snapshot

GOLDEN = Path(__file__).parents[2] / "golden" / "counters"


def values(snapshot: Snapshot) -> dict[str, int]:
    """Return values by `device name`."""
    return {" ".join(key): counter.value for key, counter in snapshot.counters.items()}


def read(tmp_path: Path, text: str) -> Snapshot:
    """Return what a file with this text holds."""
    path = tmp_path / "host1.txt"
    path.write_text(text)
    return read_snapshot(path)


def test_a_session_of_several_commands() -> None:
    """The command or head before them says whose counters follow; those of single queues are left out."""
    snapshot = read_snapshot(GOLDEN / "before.txt")
    assert values(snapshot) == {
        "eth2 rx_packets": 1000,
        "eth2 tx_bytes_phy": 10**9,
        "eth2 rx_prio3_pause": 10,
        "eth2 rx_prio3_pause_duration": 1000,
        "eth2 tx_prio3_pause": 0,
        "eth2 tx_prio3_pause_duration": 0,
        "eth2 rx_prio3_discards": 4,
        "eth2 rx_prio3_marked": 100,
        "eth2 link_down_events_phy": 1,
        "eth2 rx_new_counter": 3,
        "lid134/1 SymbolErrorCounter": 65535,
        "lid134/1 LinkDownedCounter": 0,
        "lid134/1 PortXmitData": 4294967290,
        "lid134/1 PortRcvData": 10,
        "mlx5_0/1 rx_write_requests": 0,
        "mlx5_0/1 out_of_buffer": 4294967290,
        "mlx5_0/1 local_ack_timeout_err": 131,
        "mlx5_0/1 np_ecn_marked_roce_packets": 9,
        "mlx5_0/1 np_cnp_sent": 9,
        "mlx5_1/1 rx_write_requests": 5,
        "mlx5_1/1 out_of_buffer": 7,
        "mlx5_1/1 local_ack_timeout_err": 3,
        "mlx5_1/1 np_ecn_marked_roce_packets": 0,
        "mlx5_1/1 np_cnp_sent": 0,
    }
    assert [note.removeprefix(f"{GOLDEN}/") for note in snapshot.notes] == [
        "before.txt: counters of single queues, left out: 2",
        "counters of unknown meaning, not judged: 1 (rx_new_counter)",
    ]


def test_json_of_rdma_statistic() -> None:
    """One object a port; that of a queue pair is left out."""
    snapshot = read_snapshot(GOLDEN / "statistic.json")
    assert values(snapshot)["mlx5_0/1 local_ack_timeout_err"] == 131
    assert len(snapshot.counters) == 6
    assert snapshot.notes == (
        f"{GOLDEN}/statistic.json: no counters, left out: 1 (first 'counters of a queue pair' at "
        f"{GOLDEN}/statistic.json: row 2)",
    )


def test_paths_of_sysfs_name_device_and_port(tmp_path: Path) -> None:
    """As grep and as people write them; what is no counter is a setting."""
    text = (
        "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_buffer:5\n"
        "mlx5_0/ports/2/counters/port_xmit_data: 6\n"
        "/sys/class/net/eth0/statistics/rx_bytes:7\n"
        "/sys/class/infiniband/mlx5_0/fw_ver: 14.28.2006\n"
        "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/lifespan:10\n"
    )
    snapshot = read(tmp_path, text)
    assert values(snapshot) == {
        "mlx5_0/1 out_of_buffer": 5,
        "mlx5_0/2 port_xmit_data": 6,
        "eth0 rx_bytes": 7,
    }
    assert snapshot.settings == {("mlx5_0", "fw_ver"): "14.28.2006", ("mlx5_0/1", "hw_counters/lifespan"): "10"}


def test_a_live_folder_is_read_as_its_kernel_shows_it(tmp_path: Path) -> None:
    """/sys/class/infiniband, or one device of it."""
    counters = tmp_path / "mlx5_0" / "ports" / "1" / "hw_counters"
    counters.mkdir(parents=True)
    (counters / "out_of_buffer").write_text("5\n")
    assert values(read_snapshot(tmp_path)) == {"mlx5_0/1 out_of_buffer": 5}
    assert values(read_snapshot(tmp_path / "mlx5_0")) == {"mlx5_0/1 out_of_buffer": 5}


def test_a_folder_of_files_is_one_host_each(tmp_path: Path) -> None:
    """Each named after its file."""
    for host in ("node1", "node2"):
        (tmp_path / f"{host}.txt").write_text("# ethtool -S eth0\n     rx_packets: 1\n")
    assert list(values(read_snapshot(tmp_path))) == ["node1/eth0 rx_packets", "node2/eth0 rx_packets"]


def test_mlnx_qos_gives_settings(tmp_path: Path) -> None:
    """The last report of an interface counts."""
    report = (
        "Priority trust state: dscp\ndscp2prio mapping:\n\tprio:3 dscp:%s,\n\tprio:3 dscp:30,\n"
        "PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   1   0   0   0   0\n"
        "tc: 0 ratelimit: unlimited, tsa: vendor\n\t priority:  1\n"
    )
    snapshot = read(tmp_path, "# mlnx_qos -i eth4\n" + report % "24" + report % "26")
    assert snapshot.settings == {
        ("eth4", "Priority trust state"): "dscp",
        ("eth4", "PFC of priorities 0 to 7"): "0 0 0 1 0 0 0 0",
        ("eth4", "traffic class 0"): "ratelimit: unlimited, tsa: vendor",
        ("eth4", "priorities of traffic class 0"): "1",
        ("eth4", "DSCP of priority 3"): "26,30",
    }


@pytest.mark.parametrize("text", ["hello world\n", "[]", '{"a": "b"}', "a: -1\nb: 1e9\nc: 99999999999999999999\n"])
def test_a_file_without_counters_is_refused(tmp_path: Path, text: str) -> None:
    """With the forms there are; a number is whole and has at most 64 bits."""
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert str(caught.value) == (
        f"{tmp_path}/host1.txt: no counter\n  allowed: ethtool -S, perfquery, rdma statistic (text or -j), counters of "
        "/sys as `grep . *` prints them, mlnx_qos"
    )
