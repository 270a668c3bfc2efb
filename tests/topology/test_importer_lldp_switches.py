"""LLDP neighbours as switches print them are read, and joined with one another and with lldpctl's."""

import json
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers import import_fabric

GOLDEN = Path(__file__).parents[1] / "golden" / "topology"


def links(fabric: Fabric) -> list[str]:
    """Return each link once."""
    return [fabric.link_label(port) for port in range(0, fabric.num_ports, 2)]


def test_tables_of_two_switches_are_one_fabric() -> None:
    """A short port (Et49) is that which its neighbour knows in full; the prompts name the switches."""
    fabric = import_fabric([GOLDEN / "leaf1.eos.txt", GOLDEN / "spine1.eos.txt"])
    assert links(fabric) == [
        "leaf1:Ethernet1 -> server1:eth0",
        "leaf1:Ethernet2 -> server2:eth0",
        "leaf1:Ethernet49 -> spine1:Ethernet1",
        "leaf1:Ethernet50 -> spine1:Ethernet2",
    ]
    assert fabric.node_tier_N.tolist() == [1, 2, 0, 0]
    assert [(finding.id, finding.entity) for finding in fabric.findings] == [
        ("cabling.one-sided", "leaf1:Ethernet50 -> spine1:Ethernet2")
    ]
    assert fabric.notes[0] == "management interfaces, left out with their links: 1 (first leaf1:Management1)"


def test_a_session_of_switches_of_three_vendors() -> None:
    """A name that fills its line belongs to the row below; details and tables of one switch are one table."""
    fabric = import_fabric([GOLDEN / "pod.switches.txt"])
    far = "qfx1.example.com-with-a-long-name"
    assert links(fabric) == [
        f"n9k:Ethernet1/1 -> {far}:et-0/0/1",
        "n9k:Ethernet1/2 -> sonic1:Ethernet0",
        "n9k:Ethernet1/3 -> host9:0c42.a123.4567",
        "n9k:Ethernet1/4 -> gpu7:ens1f1np1",
    ]
    kinds = dict(zip(fabric.node_name_N, fabric.node_kind_N.tolist(), strict=True))
    assert kinds == {"n9k": 1, far: 1, "sonic1": 1, "host9": 0, "gpu7": 0}
    assert "neighbours without capabilities, taken as hosts by their names: 1 (host9)" in fabric.notes
    assert not fabric.findings


def test_keyvalue_of_lldpctl() -> None:
    """A description of several lines is no key; a port without a name goes by its description."""
    fabric = import_fabric([GOLDEN / "leaf1.keyvalue.txt"])
    assert links(fabric) == ["leaf1:swp1 -> spine1:swp7", "leaf1:swp2 -> server1:eth1"]
    assert fabric.node_kind_N.tolist() == [1, 1, 0]
    assert fabric.notes[0] == f"{GOLDEN}/leaf1.keyvalue.txt: does not name its device, taken as leaf1"


EOS = {"lldpNeighbors": [{"port": "Ethernet1", "neighborDevice": "spine1", "neighborPort": "Ethernet7", "ttl": 120}]}
EOS_DETAIL = {
    "lldpNeighbors": {
        "Ethernet1": {
            "lldpNeighborInfo": [
                {
                    "chassisIdType": "macAddress",
                    "chassisId": "001c.7300.1503",
                    "systemName": "spine1",
                    "neighborInterfaceInfo": {"interfaceIdType": "interfaceName", "interfaceId": '"Ethernet7"'},
                    "systemCapabilities": {"bridge": True, "router": True},
                }
            ]
        },
        "Ethernet2": {"lldpNeighborInfo": []},
    }
}
NXOS = {
    "TABLE_nbor": {
        "ROW_nbor": {
            "chassis_type": "7",
            "chassis_id": "spine1",
            "l_port_id": "Eth1",
            "capability": "BR",
            "port_id": "Eth7",
        }
    },
    "neigh_count": "1",
}
NXOS_DETAIL = {
    "ins_api": {
        "outputs": {
            "output": {
                "body": {
                    "TABLE_nbor_detail": {
                        "ROW_nbor_detail": [
                            {
                                "chassis_id": "547f.ee00.0001",
                                "port_id": "Ethernet7",
                                "l_port_id": "Eth1",
                                "sys_name": "spine1",
                                "enabled_capability": "B, R",
                            }
                        ]
                    }
                }
            }
        }
    }
}
JUNOS = {
    "lldp-neighbors-information": [
        {
            "lldp-neighbor-information": [
                {
                    "lldp-local-port-id": [{"data": "Ethernet1"}],
                    "lldp-remote-chassis-id": [{"data": "b0:c6:9a:63:80:40"}],
                    "lldp-remote-port-description": [{"data": "Ethernet7"}],
                    "lldp-remote-system-name": [{"data": "spine1"}],
                }
            ]
        }
    ]
}


@pytest.mark.parametrize("tree", [EOS, EOS_DETAIL, NXOS, NXOS_DETAIL, JUNOS])
def test_json_of_every_vendor_is_the_same_link(tree: object, tmp_path: Path) -> None:
    """Short and in detail, also inside what an API wraps it in."""
    path = tmp_path / "leaf1.json"
    path.write_text(json.dumps(tree))
    fabric = import_fabric([path])
    assert links(fabric) == ["leaf1:Ethernet1 -> spine1:Ethernet7"]
    assert fabric.node_kind_N.tolist() == [1, 1]


CUMULUS = """cumulus@leaf1:mgmt:~$ net show lldp

LocalPort  Speed  Mode        RemoteHost  RemotePort
---------  -----  ----------  ----------  ----------
eth0       1G     Mgmt        oob         swp3
swp1       100G   BondMember  spine1      swp7
swp3       25G    Default     server1     eth1
"""


def test_cumulus_has_other_columns(tmp_path: Path) -> None:
    """eth0 beside a switch's ports is for management."""
    path = tmp_path / "x.txt"
    path.write_text(CUMULUS)
    assert links(import_fabric([path])) == ["leaf1:swp1 -> spine1:swp7", "leaf1:swp3 -> server1:eth1"]


def test_a_line_that_is_no_row_is_counted(tmp_path: Path) -> None:
    """With the first of them."""
    path = tmp_path / "leaf1.txt"
    path.write_text(f"{CUMULUS}swp9       100G   Default\nswp10      100G   Default                 swp1\n")
    fabric = import_fabric([path])
    assert "leaf1:swp1 -> spine1:swp7" in links(fabric)
    assert fabric.notes[0] == (
        f"{path}:1: lines that are no neighbour, left out: 2 (first 'swp9       100G   Default' at {path}:8)"
    )


def test_a_table_without_a_row_is_refused(tmp_path: Path) -> None:
    """It would be a fabric without links."""
    path = tmp_path / "leaf1.txt"
    path.write_text("Port          Neighbor Device ID       Neighbor Port ID    TTL\n-------- ------ ----- ---\n")
    with pytest.raises(InputError) as caught:
        import_fabric([path])
    assert str(caught.value).startswith(f"{path}: a table of LLDP neighbours without a row\n")
