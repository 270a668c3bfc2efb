"""Lists of InfiniBand ports and nets of ibsim are the same fabrics as ibnetdiscover's records."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import FabricError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers import import_fabric

GOLDEN = Path(__file__).parents[1] / "golden" / "topology"
GBPS = 10**9


def links(fabric: Fabric) -> dict[str, int]:
    """Return the rate of each link, in Gbps."""
    return {
        fabric.link_label(port): int(fabric.port_rate_bps_P[port]) // GBPS for port in range(0, fabric.num_ports, 2)
    }


def test_a_report_of_ports() -> None:
    """Two port GUIDs of one description and different numbers are an adapter, two of the same number are two hosts."""
    fabric = import_fabric([GOLDEN / "subnet.ports.txt"])
    unnamed = "MT4123 ConnectX6   Mellanox Technologies"
    assert links(fabric) == {
        "node1:mlx5_0/2 -> leaf2:5": 100,
        "node1:mlx5_0/1 -> leaf1:10": 200,
        f"{unnamed} H-0002c90000000031:1 -> leaf1:11": 100,
        f"{unnamed} H-0002c90000000041:1 -> leaf2:11": 100,
        "leaf1:20 -> leaf2:20": 400,
    }
    assert [(finding.id, finding.entity) for finding in fabric.findings] == [
        ("cabling.speed-mismatch", "node1:mlx5_0/2 -> leaf2:5")
    ]
    assert fabric.notes[0].endswith("subnet.ports.txt: ports that are down or without a neighbour, left out: 1")


def test_link_info_finds_neighbours_by_their_lid() -> None:
    """4 lanes of 53.125 Gbps are HDR, 200 Gbps; 25.78 is 25.78125 with fewer digits."""
    fabric = import_fabric([GOLDEN / "subnet.iblinkinfo.txt"])
    assert links(fabric) == {
        "node1:mlx5_0/1 -> leaf1:10": 200,
        "node1:mlx5_0/2 -> leaf2:5": 100,
        "node2:mlx5_0/1 -> leaf1:11": 100,
        "leaf1:20 -> leaf2:20": 400,
    }
    assert [finding.id for finding in fabric.findings] == ["cabling.speed-mismatch"]


def test_link_info_by_lines_tells_switches_by_their_ports() -> None:
    """A GUID with several ports is a switch."""
    fabric = import_fabric([GOLDEN / "subnet.iblinkinfo-l.txt"])
    assert dict(zip(fabric.node_name_N, fabric.node_kind_N.tolist(), strict=True)) == {
        "node1": 0,
        "leaf1": 1,
        "node2": 0,
    }
    assert links(fabric) == {"node1:mlx5_0/1 -> leaf1:10": 200, "node2:mlx5_0/1 -> leaf1:11": 100}
    assert not fabric.findings


def test_a_part_of_link_info_knows_neighbours_by_description(tmp_path: Path) -> None:
    """As `iblinkinfo | grep` leaves it: the switch has no GUID, and the adapter no head."""
    path = tmp_path / "up.txt"
    state = "==( 4X      25.78125 Gbps Active/  LinkUp)==>"
    path.write_text(
        f'      0x0002c90000000021      4    1[  ] {state}       2   17[  ] "SB7700" ( )\n'
        f'           2   36[  ] {state}       3    1[  ] "n02 HCA-1" ( )\n'
    )
    fabric = import_fabric([path])
    assert sum(fabric.node_kind_N.tolist()) == 2  # both ends without a name, and the switch that one of them names
    assert {"SB7700", "n02"} <= set(fabric.node_name_N)


def test_a_net_of_ibsim() -> None:
    """A link that one of its ends lists is no finding: nets are written so."""
    fabric = import_fabric([GOLDEN / "lab.ibsim.txt"])
    assert links(fabric) == {
        "leaf1:1 -> node1:1": 200,
        "leaf1:2 -> node2:1": 100,
        "leaf1:36 -> spine:1": 100,
        "spine:2 -> leaf2:36": 100,
        "leaf2:1 -> node1:2": 100,
    }
    assert dict(zip(fabric.node_name_N, fabric.node_tier_N.tolist(), strict=True)) == {
        "leaf1": 1,
        "leaf2": 1,
        "spine": 2,
        "node1": 0,
        "node2": 0,
    }
    assert not fabric.findings


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        (
            "subnet.ports.txt",
            "what is this",
            "'what is this'\n  allowed: lines of ports, as ibnetdiscover -p or iblinkinfo prints them",
        ),
        (
            "subnet.ports.txt",
            "SW 1 2 0x0002c90000000010 4x FAST - SW 2 3 0x0002c90000000011 ( 'a' - 'b' )",
            "the width and speed '4xFAST'\n"
            "  allowed: 1, 2, 4, 8, 12 lanes of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR",
        ),
        ("lab.ibsim.txt", "Router here", "the line 'Router here'\n  allowed: nodes and lines of their ports"),
    ],
)
def test_a_line_of_another_kind_is_a_mistake(file: str, line: str, message: str, tmp_path: Path) -> None:
    """With its number."""
    text = (GOLDEN / file).read_text()
    path = tmp_path / file
    path.write_text(f"{text}{line}\n")
    with pytest.raises(FabricError) as caught:
        import_fabric([path])
    where, _, found = str(caught.value).partition(": ")
    assert where == f"{path}:{text.count(chr(10)) + 1}"
    assert found.removeprefix("the line ") == message.removeprefix("the line ")
