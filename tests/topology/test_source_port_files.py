"""Source ports from a file: each queue pair is known by both NICs and both numbers."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.source_port_files import apply_source_ports

HEAD = "queue_pair,source,destination,source_qpn,destination_qpn,source_port\n"
PAIRS = make_queue_pairs([0, 0, 2], [1, 1, 3])  # numbers 256 and 257 on host0


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """Return four hosts of one NIC."""
    return build_clos(ClosSpec(num_hosts=4, hosts_per_tor_set=4, nics_per_host=1, tiers=2))


def test_rows_in_any_order_set_the_ports(fabric: Fabric, tmp_path: Path) -> None:
    """The number of the row in the file does not count; 0x101 is 257."""
    path = tmp_path / "ports.csv"
    rows = "9,host0:nic0,host1:nic0,0x101,257,50001\n0,host0:nic0,host1:nic0,256,256,50000\n"
    path.write_text(f"{HEAD}{rows}5,host2:nic0,host3:nic0,256,256,50002\n")
    queue_pairs, notes = apply_source_ports(path, fabric, PAIRS)
    assert queue_pairs.source_port_Q.tolist() == [50000, 50001, 50002]
    assert notes == ()


def test_queue_pairs_without_a_row_are_counted(fabric: Fabric, tmp_path: Path) -> None:
    """They keep the port that follows from their numbers."""
    path = tmp_path / "ports.csv"
    path.write_text(f"{HEAD}0,host0:nic0,host1:nic0,256,256,50000\n")
    queue_pairs, notes = apply_source_ports(path, fabric, PAIRS)
    assert queue_pairs.source_port_Q.tolist() == [50000, *PAIRS.source_port_Q[1:].tolist()]
    assert notes == (f"{path}: queue pairs without a row, which keep their source port: 2 of 3",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD}0,host0:nic0,host1:nic0,256,999,50000\n", "ports.csv:2: no queue pair 256 to 999 from host0:nic0"),
        (f"{HEAD}0,host0:nic0,host1:nic0,256,256,1\n0,host0:nic0,host1:nic0,256,256,2\n",
         "ports.csv:3: a second port of queue pair 0; line 2 has its first"),
        (f"{HEAD}0,host0:nik0,host1:nic0,256,256,50000\n", r"unknown NIC 'host0:nik0'\n  did you mean 'host0:nic0'"),
        (f"{HEAD}0,host0:nic0,host1:nic0,256,256,65536\n", r"source_port '65536'\n  allowed: 0 to 65535"),
        (f"{HEAD}0,host0:nic0,host1:nic0,256,256,x\n", "source_port 'x'"),
        (f"{HEAD}0,host0:nic0\n", r"ports.csv:2: 2 columns\n  allowed: 6"),
        ("rank,host\n0,host0\n", "ports.csv:1: no column source, destination, source_qpn, destination_qpn"),
    ],
)  # fmt: skip
def test_what_fits_no_queue_pair_is_refused_with_its_line(
    fabric: Fabric, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "ports.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        apply_source_ports(path, fabric, PAIRS)
