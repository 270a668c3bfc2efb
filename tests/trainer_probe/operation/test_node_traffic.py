"""What a node's interfaces have carried: read from the kernel's counters, and as rates."""

from pathlib import Path

from fabrictune.trainer_probe.operation.nic_counters import read_nic_bytes
from fabrictune.trainer_probe.operation.node_traffic import NUM_SAMPLES, NodeTraffic

DEVICES = """Inter-|   Receive                                        |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:  100       2    0    0    0     0          0         0   100       2    0    0    0     0       0          0
  eth0: 7000      60    0    0    0     0          0         0  3000      40    0    0    0     0       0          0
"""


def test_counters_are_of_the_interface_and_of_all_ports(tmp_path: Path) -> None:
    """An RDMA port counts words of four bytes; one that cannot be read is left out."""
    (tmp_path / "dev").write_text(DEVICES)
    for device, received in (("mlx5_0", "250"), ("mlx5_1", "no number")):
        counters = tmp_path / "rdma" / device / "ports" / "1" / "counters"
        counters.mkdir(parents=True)
        (counters / "port_rcv_data").write_text(f"{received}\n")
        (counters / "port_xmit_data").write_text("500\n")
    found = read_nic_bytes("eth0", tmp_path / "dev", tmp_path / "rdma")
    assert found == {"eth0": (7000, 3000), "mlx5_0/1": (1000, 2000)}


def test_this_machine_has_a_loopback_device() -> None:
    """Its counters never go back."""
    first, second = read_nic_bytes("lo")["lo"], read_nic_bytes("lo")["lo"]
    assert first <= second


def test_rates_are_of_a_second_whatever_the_heartbeats_are() -> None:
    """1,000 bytes in four heartbeats of 0.25 s are 8,000 bit/s; bursts within a second do not show."""
    traffic = NodeTraffic()
    for number, total in enumerate((0, 0, 1000, 1000, 1000, 1000, 1000, 3000, 3000)):
        traffic.take({"eth0": (total, 0)}, 0.25 * number)
    assert traffic.rates_bps() == (8000.0, 16000.0)


def test_counters_that_go_back_begin_anew() -> None:
    """A device that was reset has sent nothing negative."""
    traffic = NodeTraffic()
    for number, total in enumerate((5000, 100, 200)):
        traffic.take({"eth0": (0, total)}, 1.0 * number)
    assert traffic.rates_bps() == (800.0,)


def test_rates_are_bounded() -> None:
    """Two minutes of them, whatever the job's length."""
    traffic = NodeTraffic()
    for number in range(3 * NUM_SAMPLES):
        traffic.take({"eth0": (number, 0)}, 1.0 * number)
    assert len(traffic.rates_bps()) == NUM_SAMPLES
