"""LLDP tables: three forms of one table, several devices joined, and who is who among them."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.files import write_fabric
from fabrictune.topology.importers import import_fabric
from fabrictune.topology.importers.lldp import load_lldp

JSON0 = {
    "lldp": [
        {
            "interface": [
                {
                    "name": "e1",
                    "chassis": [
                        {
                            "id": [{"type": "mac", "value": "02:00"}],
                            "name": [{"value": "b"}],
                            "capability": [{"type": "Router", "enabled": True}],
                        }
                    ],
                    "port": [{"id": [{"type": "ifname", "value": "e2"}], "descr": [{"value": "to a"}]}],
                }
            ]
        }
    ]
}
JSON = {
    "lldp": {
        "interface": {
            "e1": {
                "chassis": {
                    "b": {"id": {"type": "mac", "value": "02:00"}, "capability": {"type": "Router", "enabled": True}}
                },
                "port": {"id": {"type": "ifname", "value": "e2"}, "descr": "to a"},
            }
        }
    }
}
TEXT = """\
-------------------------------------------------------------------------------
LLDP neighbors:
-------------------------------------------------------------------------------
Interface:    e1, via: LLDP, RID: 1, Time: 0 day, 00:00:55
  Chassis:
    ChassisID:    mac 02:00
    SysName:      b
    Capability:   Router, on
  Port:
    PortID:       ifname e2
    PortDescr:    to a
-------------------------------------------------------------------------------
"""


def heard(port: str, name: str, peer_port: str, **more: Any) -> dict[str, Any]:
    """Return an interface of `-f json` that hears a chassis; `more` are the fields of the chassis or the port."""
    chassis = {"id": {"type": "mac", "value": f"id of {name}"}}
    chassis |= {key: value for key, value in more.items() if key in ("id", "capability")}
    peer = {"id": {"type": more.get("type", "ifname"), "value": peer_port}, "descr": more.get("descr", "")}
    return {port: {"chassis": {name: chassis} if name else chassis, "port": peer}}


def loaded(tmp_path: Path, **interfaces_of: list[dict[str, Any]]) -> Fabric:
    """Read one `-f json` file a device, named after the device."""
    paths = [tmp_path / f"{name.replace('_', '.')}.json" for name in interfaces_of]
    for path, interfaces in zip(paths, interfaces_of.values(), strict=True):
        path.write_text(json.dumps({"lldp": {"interface": interfaces}}))
    return load_lldp(paths)


def links(fabric: Fabric) -> list[str]:
    """Return the links as text, one direction of each."""
    return [fabric.link_label(port) for port in range(0, fabric.num_ports, 2)]


def hosts(fabric: Fabric) -> set[str]:
    """Return the names of the hosts."""
    return {name for name, kind in zip(fabric.node_name_N, fabric.node_kind_N, strict=True) if kind == NodeKind.HOST}


def test_golden_tables_give_golden_fabric(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture of json0 and text, a switch with its own chassis, and a host with a single neighbour."""
    monkeypatch.chdir(golden)
    node1 = Path("node1.lldp.json")
    imported = load_lldp([Path("pod.lldp.output"), Path("leaf1.lldp.json"), node1])
    write_fabric(imported, tmp_path / "fabric.json")
    assert (tmp_path / "fabric.json").read_text() == (golden / "pod.fabric.json").read_text()
    loop = "pod.lldp.output:7: [0].data:96: lldp[0].interface[2]: the link spine1:swp7 -> spine1:swp8"
    assert imported.notes == (
        f"{node1}: does not name its device, taken as node1",
        "further neighbours on one port, left out: 1",
        "management interfaces, left out with their links: 1 (first leaf1:eth0)",
        "neighbours without a name, known by chassis id: 1 (first on node2:ens2f0np0, taken as leaf2)",
        "devices without a link to a neighbour, left out: 1 (first node3)",
        f"{loop}, from a node to itself, left out",
        "5 links have no speed; assuming 100 Gbps",
        "links without a cable length, taken as 10 m: 5",
    )
    assert imported.findings == ()


def test_every_mistake_is_told_with_its_line(golden: Path) -> None:
    """Lines of the capture, and within a record lines of its text: eight mistakes in five records."""
    with pytest.raises(InputError) as raised:
        load_lldp([golden / "broken.lldp.output"])
    assert str(raised.value).replace(f"{golden}/", "") + "\n" == (golden / "broken.lldp.txt").read_text()


@pytest.mark.parametrize("text", [json.dumps(JSON0), json.dumps(JSON), TEXT, TEXT.replace("\n", "\r\n")])
def test_three_forms_are_one_table(text: str, tmp_path: Path) -> None:
    """json0, json and text say the same, and are recognised by how they begin."""
    path = tmp_path / "a.anything"
    path.write_bytes(text.encode())
    fabric = import_fabric([path])
    assert (fabric.name, links(fabric), hosts(fabric)) == ("a", ["a:e1 -> b:e2"], set())


def test_lists_of_interfaces_and_of_their_neighbours_are_read(tmp_path: Path) -> None:
    """Interfaces as single keys of a list, as keys of one object, and two neighbours as a list under one key."""
    first, second = heard("e1", "b", "p1"), heard("e2", "c", "p2")
    both = {"e3": [*heard("e3", "d", "p3").values(), *heard("e3", "e", "p4").values()]}
    expected = ["a:e1 -> b:p1", "a:e2 -> c:p2", "a:e3 -> d:p3"]
    assert links(loaded(tmp_path, a=[first, second, both])) == expected
    assert links(loaded(tmp_path, a=[first | second | both])) == expected


def test_a_port_known_by_description_is_joined_by_the_other_end(tmp_path: Path) -> None:
    """The switch knows the host's port as `rail 0`; the host hears the switch on eth5, so eth5 it is."""
    imported = loaded(
        tmp_path,
        switch=[heard("Ethernet0", "node", "02:11", type="mac", descr="rail 0")],
        node=[heard("eth5", "switch", "Ethernet0")],
    )
    assert links(imported) == ["switch:Ethernet0 -> node:eth5"]
    assert imported.findings == ()


def test_a_port_that_is_not_told_is_named_after_its_link(tmp_path: Path) -> None:
    """No id and no description."""
    assert links(loaded(tmp_path, a=[heard("e1", "b", "")])) == ["a:e1 -> b:to-a-e1"]


def test_names_are_the_same_with_and_without_domain(tmp_path: Path) -> None:
    """The file is leaf's, its neighbour calls it leaf.pod1; but two names with different domains are two devices."""
    imported = loaded(
        tmp_path,
        leaf=[heard("e1", "spine.pod1", "e9"), heard("e2", "spine.pod2", "e9")],
        other=[heard("e1", "leaf.pod1", "e3")],
    )
    assert imported.node_name_N == ("leaf", "other", "spine.pod1", "spine.pod2")


def test_a_chassis_id_of_two_names_is_nobodys(tmp_path: Path) -> None:
    """A neighbour without a name whose id two others have is a node of its own."""
    interfaces = [heard(f"e{row}", name, "p", id={"value": "02:22"}) for row, name in enumerate(("b", "c", ""))]
    assert loaded(tmp_path, a=interfaces).node_name_N == ("a", "b", "c", "02:22")


def test_management_interfaces_are_left_out_at_both_ends(tmp_path: Path) -> None:
    """eth0 beside Ethernet4 is a switch's, Management1 anybody's; eth0 beside eth1 is a NIC like the other."""
    imported = loaded(
        tmp_path,
        switch=[heard("Ethernet4", "node", "eth0"), heard("Ethernet8", "node", "eth1")],
        oob=[heard("swp1", "switch", "eth0"), heard("swp2", "leaf", "Management1"), heard("mgmt0", "x", "e")],
    )
    assert links(imported) == ["switch:Ethernet4 -> node:eth0", "switch:Ethernet8 -> node:eth1"]
    assert "devices without a link to a neighbour, left out: 1 (first oob)" in imported.notes


def test_a_host_is_told_by_capability_or_by_the_names_of_its_ports(tmp_path: Path) -> None:
    """A station, one that neither bridges nor routes, and one that bridges for its containers on ens1f0 are hosts."""
    router = [{"type": "Router", "enabled": True}, {"type": "Bridge", "enabled": True}]
    imported = loaded(
        tmp_path,
        leaf=[
            heard("e1", "station", "p", capability=[*router, {"type": "Station", "enabled": True}]),
            heard("e2", "quiet", "p", capability={"type": "Router", "enabled": False}),
            heard("e3", "containers", "ens1f0", capability=router),
            heard("e4", "spine", "p", capability=router),
            heard("e5", "unknown", "p"),
        ],
    )
    assert hosts(imported) == {"station", "quiet", "containers"}


def test_silence_of_a_device_that_was_read_is_a_finding(tmp_path: Path) -> None:
    """a hears b, and b, which hears c, does not hear a."""
    imported = loaded(tmp_path, a=[heard("e1", "b", "e1")], b=[heard("e2", "c", "e1")])
    assert [finding.entity for finding in imported.findings] == ["a:e1 -> b:e1"]


def test_neighbours_that_contradict_each_other_are_a_mistake(tmp_path: Path) -> None:
    """Both a and c say that they are on b's e1."""
    with pytest.raises(InputError, match="the interface b:e1 a second time"):
        loaded(tmp_path, a=[heard("e1", "b", "e1")], c=[heard("e1", "b", "e1")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}', "a.json:1: lldp: nothing"),
        ('{"lldp": 7}', "a.json:1: lldp: not an object"),
        ('{"lldp": {}}', "no nodes"),
        ("[7]", r"a.json:1: \[0\]: not a record of a capture"),
        ("7", "a.json: the text '7'"),
    ],
)
def test_what_is_no_table_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """Each with its place."""
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_lldp([path])


BRIDGE = [{"type": "Bridge", "enabled": True}]


def mac(last: str) -> dict[str, str]:
    """Return the chassis id of a switch."""
    return {"type": "mac", "value": f"02:00:00:00:{last}"}


def test_two_switches_of_one_name_are_kept_apart_and_said(tmp_path: Path) -> None:
    """Joined they would be one spine with both links, and no finding."""
    fabric = loaded(
        tmp_path,
        leaf1=[heard("swp1", "spine1", "swp1", id=mac("0a:01"), capability=BRIDGE)],
        leaf2=[heard("swp1", "spine1", "swp2", id=mac("0b:01"), capability=BRIDGE)],
    )
    assert set(links(fabric)) == {
        "leaf1:swp1 -> spine1 (02:00:00:00:0a:01):swp1",
        "leaf2:swp1 -> spine1 (02:00:00:00:0b:01):swp2",
    }
    (finding,) = (finding for finding in fabric.findings if finding.id == "cabling.one-name")
    assert (finding.entity, finding.actual) == (
        "spine1",
        "2 chassis ids (02:00:00:00:0a:01, 02:00:00:00:0b:01), each kept as a device of its own",
    )


def test_a_table_of_one_of_two_devices_of_its_name_is_refused(tmp_path: Path) -> None:
    """Whose table it is, nobody knows."""
    with pytest.raises(InputError, match="the table of 'spine1', where neighbours hear 2 devices of that name"):
        loaded(
            tmp_path,
            spine1=[heard("swp1", "leaf1", "swp1", capability=BRIDGE)],
            leaf1=[heard("swp1", "spine1", "swp1", id=mac("0a:01"), capability=BRIDGE)],
            leaf2=[heard("swp1", "spine1", "swp2", id=mac("0b:01"), capability=BRIDGE)],
        )


def test_a_host_with_a_chassis_id_for_each_nic_is_one_and_noted(tmp_path: Path) -> None:
    """So is a switch whose ports have ids side by side."""
    station = [{"type": "Station", "enabled": True}]
    fabric = loaded(
        tmp_path,
        leaf1=[
            heard("swp1", "h1", "eth0", id=mac("0a:01"), capability=station),
            heard("swp2", "h1", "eth1", id=mac("0b:01"), capability=station),
            *(heard(f"swp{n}", "nx1", f"Eth1/{n}", id=mac(f"0c:0{n}"), capability=BRIDGE) for n in (3, 4, 5)),
        ],
    )
    assert set(fabric.node_name_N) == {"leaf1", "h1", "nx1"}
    assert "devices with a chassis id for each port, taken as one each: 2 (h1, nx1)" in fabric.notes
    assert [finding.id for finding in fabric.findings] == []


def test_a_device_heard_by_another_name_is_known_by_its_chassis_id(tmp_path: Path) -> None:
    """spine1 still announces the name it had; both ends tell of one link."""

    def table(own: str, own_id: str, far: str, far_id: str) -> str:
        chassis = {"local-chassis": {"chassis": {own: {"id": {"type": "mac", "value": own_id}}}}}
        neighbour = {"chassis": {far: {"id": {"type": "mac", "value": far_id}}}}
        port = {"id": {"type": "ifname", "value": "Ethernet0"}}
        lldp = {"interface": {"Ethernet0": {**neighbour, "port": port}}}
        return json.dumps({"lldp": lldp, "lldp_loc_chassis": chassis})

    (tmp_path / "a.json").write_text(table("leaf1", "aa:00:00:00:00:01", "sonic", "AA:00:00:00:00:02"))
    (tmp_path / "b.json").write_text(table("spine1", "aa:00:00:00:00:02", "leaf1", "aa:00:00:00:00:01"))
    fabric = import_fabric([tmp_path])
    assert fabric.node_name_N == ("leaf1", "spine1")
    assert fabric.link_label(0) == "leaf1:Ethernet0 -> spine1:Ethernet0"
    assert not fabric.findings
    assert fabric.notes[0] == ("neighbours heard by another name, known by chassis id: 1 (sonic, which is spine1)")
