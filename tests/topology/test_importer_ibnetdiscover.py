"""InfiniBand subnets: chassis, cut files, aggregation nodes, and rates that differ at the two ends."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import Confidence
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import write_fabric
from fabrictune.topology.importers import import_fabric
from fabrictune.topology.importers.ibnetdiscover import load_ibnetdiscover

SWITCH = 'Switch 64 "S-0000000000000001" # "leaf" base port 0 lid 1 lmc 0'
SECOND = 'Switch 64 "S-0000000000000002" # "spine" base port 0 lid 1 lmc 0'


def loaded(tmp_path: Path, *lines: str) -> Fabric:
    """Read lines as the output of one discovery."""
    path = tmp_path / "subnet.txt"
    path.write_text("\n".join(lines))
    return load_ibnetdiscover([path])


def test_golden_subnet_gives_golden_fabric(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chassis that lists its spine twice, a host with two adapters, a loop, and an adapter whose record was cut."""
    monkeypatch.chdir(golden)
    path = Path("subnet.ibnetdiscover")
    imported = load_ibnetdiscover([path])
    write_fabric(imported, tmp_path / "fabric.json")
    assert (tmp_path / "fabric.json").read_text() == (golden / "subnet.fabric.json").read_text()
    assert imported.notes == (
        "SHARP aggregation nodes, left out with their links: 1",
        f"nodes that only their neighbours list: 1 (first H-000000000000002b at {path}:38)",
        f"{path}:31: the link leaf1:7 -> leaf1:8, from a node to itself, left out",
        "1 links have no speed; assuming 100 Gbps",
        "links without a cable length, taken as 10 m: 6",
    )


def test_ends_that_disagree_are_findings(golden: Path) -> None:
    """One link is 4xHDR at the spine and 1xHDR at the leaf; one adapter's record does not tell of its link."""
    findings = load_ibnetdiscover([golden / "subnet.ibnetdiscover"]).findings
    assert [(finding.id, finding.actual) for finding in findings] == [
        ("cabling.speed-mismatch", "200 Gbps at spine1:2 and 50 Gbps at leaf2:33"),
        ("cabling.one-sided", "one-sided: seen by leaf2 only"),
    ]
    assert {finding.confidence for finding in findings} == {Confidence.MEASURED}


def test_every_mistake_is_told_with_its_line(golden: Path) -> None:
    """A port before any node, two rates that do not exist, a line of no known form, and a port used twice."""
    with pytest.raises(InputError) as raised:
        load_ibnetdiscover([golden / "broken.ibnetdiscover"])
    assert str(raised.value).replace(f"{golden}/", "") + "\n" == (golden / "broken.ibnetdiscover.txt").read_text()


def test_a_subnet_is_told_from_other_text(golden: Path) -> None:
    """By a record of a node near its beginning, without a suffix of its own."""
    assert import_fabric([golden / "subnet.ibnetdiscover"]).num_nics == 4


@pytest.mark.parametrize(
    ("rate", "gbps"),
    [("1xSDR", 2.5), ("4xQDR", 40), ("4xFDR10", 40), ("4xFDR", 56), ("4xEDR", 100), ("2xNDR", 200), ("4xXDR", 800)],
)
def test_width_times_speed_is_the_rate_that_ibstat_prints(rate: str, gbps: float, tmp_path: Path) -> None:
    """Four lanes of FDR at 14 Gbps are 56 Gbps."""
    fabric = loaded(tmp_path, SWITCH, f'[1] "S-0000000000000002"[7] # "spine" lid 4 {rate} s=4 w=2 v=4 e=4')
    assert fabric.port_rate_bps_P.tolist() == [gbps * 10**9] * 2


def test_adapters_of_one_host_are_its_nics(tmp_path: Path) -> None:
    """`node1 mlx5_0` and `node1 mlx5_1` are two NICs of node1; `MT23108 InfiniHost` names no adapter of a host."""
    lines = [
        f'[{row}] "H-000000000000001{row}"[1] # "{description}" lid 4 4xNDR'
        for row, description in enumerate(("node1 mlx5_0", "node1 mlx5_1", "MT23108 InfiniHost"))
    ]
    fabric = loaded(tmp_path, SWITCH, *lines)
    assert [fabric.nic_label(nic) for nic in range(3)] == ["node1:mlx5_0/1", "node1:mlx5_1/1", "MT23108 InfiniHost:1"]


def test_a_host_never_takes_the_name_of_a_switch(tmp_path: Path) -> None:
    """An adapter described as `leaf mlx5_0` does not become a part of the switch `leaf`."""
    fabric = loaded(tmp_path, SWITCH, '[1] "H-0000000000000011"[1] # "leaf mlx5_0" lid 4 4xNDR')
    assert fabric.node_name_N == ("leaf", "leaf mlx5_0")


def test_equal_descriptions_are_told_apart_by_guid(tmp_path: Path) -> None:
    """Two switches nobody has named; GUIDs are compared without case."""
    first, second = SWITCH.replace("0001", "00AB"), SECOND.replace("spine", "leaf")
    fabric = loaded(tmp_path, first, '[1] "S-0000000000000002"[1] # "leaf" lid 4 4xNDR', second)
    assert fabric.node_name_N == ("leaf S-00000000000000ab", "leaf S-0000000000000002")


def test_routers_are_switches(tmp_path: Path) -> None:
    """A router forwards, and ends no traffic."""
    fabric = loaded(tmp_path, 'Rt 2 "R-0000000000000005" # "router"', '[1](5) "S-0000000000000001"[1]')
    assert (fabric.num_nodes, fabric.num_nics) == (2, 0)


def test_text_without_a_node_is_refused(tmp_path: Path) -> None:
    """Comments and keys alone are no subnet."""
    with pytest.raises(InputError, match="no nodes"):
        loaded(tmp_path, "# nothing", "vendid=0x2c9")


def test_the_number_of_records_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of nothing but short port lines ends at the line that is one too many."""
    monkeypatch.setattr("fabrictune.topology.importers.ib_subnet.MAX_RECORDS", 2)
    with pytest.raises(
        InputError, match="txt:3: more nodes and ports than can be used\n  allowed: 2 of both\n  next: give a part"
    ):
        loaded(tmp_path, SWITCH, *(f'[{row}] "S-0000000000000002"[{row}]' for row in range(5)))
