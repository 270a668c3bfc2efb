"""SONiC configurations: both shapes of DEVICE_NEIGHBOR, both forms of tables, several switches joined."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import write_fabric
from fabrictune.topology.importers.sonic import load_sonic


def config(name: str, ports: dict[str, dict[str, str]], neighbours: dict[str, Any], **tables: Any) -> dict[str, Any]:
    """Return a configuration with these ports and neighbours."""
    metadata = {"localhost": {"hostname": name, "type": "ToRRouter"}}
    return {"DEVICE_METADATA": metadata, "PORT": ports, "DEVICE_NEIGHBOR": neighbours, **tables}


def saved(tmp_path: Path, *configs: dict[str, Any]) -> list[Path]:
    """Write configurations given as trees."""
    paths = [tmp_path / f"switch{row}.json" for row in range(len(configs))]
    for path, tree in zip(paths, configs, strict=True):
        path.write_text(json.dumps(tree, indent=1))
    return paths


def loaded(tmp_path: Path, *configs: dict[str, Any]) -> Fabric:
    """Read configurations given as trees."""
    return load_sonic(saved(tmp_path, *configs))


def test_golden_configurations_give_golden_fabric(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ToR keyed by local port and a flat leaf keyed by neighbour tell of the same link, one by its alias."""
    monkeypatch.chdir(golden)
    imported = load_sonic([Path("tor1.config_db.json"), Path("leaf1.config_db.json")])
    write_fabric(imported, tmp_path / "fabric.json")
    assert (tmp_path / "fabric.json").read_text() == (golden / "sonic.fabric.json").read_text()
    assert imported.notes == (
        "tor1.config_db.json:15: DEVICE_NEIGHBOR.Ethernet16: the link on Ethernet16, which is down, left out",
        "links without a cable length, taken as 10 m: 1",
    )


def test_every_mistake_is_told_with_its_line(golden: Path) -> None:
    """Five mistakes in four tables, one report."""
    with pytest.raises(InputError) as raised:
        load_sonic([golden / "broken.config_db.json"])
    assert str(raised.value).replace(f"{golden}/", "") + "\n" == (golden / "broken.config_db.txt").read_text()


def test_flat_and_nested_tables_are_the_same(tmp_path: Path) -> None:
    """`PORT|Ethernet0` is PORT's row Ethernet0."""
    nested = config("t", {"Ethernet0": {"speed": "100000"}}, {"Ethernet0": {"name": "servers1", "port": "eth0"}})
    flat = {f"{table}|{key}": row for table, rows in nested.items() for key, row in rows.items()}
    first, second = loaded(tmp_path, nested), loaded(tmp_path, flat)
    assert first.node_name_N == second.node_name_N
    assert [first.link_label(0), first.port_rate_bps_P[0]] == [second.link_label(0), second.port_rate_bps_P[0]]


def test_neighbours_keyed_by_name_are_read(tmp_path: Path) -> None:
    """The documented shape: the neighbour is the key, and says which local port it is on."""
    fabric = loaded(tmp_path, config("t", {"Ethernet4": {}}, {"spine": {"local_port": "Ethernet4", "port": "e7"}}))
    assert fabric.link_label(0) == "t:Ethernet4 -> spine:e7"


def test_a_neighbours_missing_port_gets_a_name(tmp_path: Path) -> None:
    """It is named after what it leads to, so that no two are alike."""
    fabric = loaded(tmp_path, config("t", {"Ethernet4": {}}, {"Ethernet4": {"name": "spine"}}))
    assert fabric.link_label(0) == "t:Ethernet4 -> spine:to-t-Ethernet4"


def test_metadata_decides_what_is_a_host(tmp_path: Path) -> None:
    """A type comes before a name: `serverfarm` is a ToR, `node1` a server; without type the name decides."""
    names = ("serverfarm", "node1", "Servers3", "other")
    fabric = loaded(
        tmp_path,
        config(
            "t",
            {f"Ethernet{row}": {} for row in range(4)},
            {f"Ethernet{row}": {"name": name, "port": "e0"} for row, name in enumerate(names)},
            DEVICE_NEIGHBOR_METADATA={"serverfarm": {"type": "ToRRouter"}, "node1": {"type": "Server"}},
        ),
    )
    hosts = {fabric.node_name_N[node] for node in fabric.nic_host_C}
    assert hosts == {"node1", "Servers3"}


def test_two_speeds_of_one_link_are_a_finding(tmp_path: Path) -> None:
    """Both ends are configured, and differently: the link is kept at the lower rate, and both lines are shown."""
    first = config("a", {"Ethernet0": {"speed": "100000"}}, {"Ethernet0": {"name": "b", "port": "Ethernet0"}})
    second = config("b", {"Ethernet0": {"speed": "40000"}}, {"Ethernet0": {"name": "a", "port": "Ethernet0"}})
    imported = load_sonic(saved(tmp_path, first, second))
    (finding,) = imported.findings
    assert (finding.id, finding.actual) == (
        "cabling.speed-mismatch",
        "100 Gbps at a:Ethernet0 and 40 Gbps at b:Ethernet0",
    )
    assert len(finding.evidence) == 2
    assert imported.port_rate_bps_P.tolist() == [40_000_000_000] * 2


def test_a_switch_that_does_not_tell_of_a_link_is_a_finding(tmp_path: Path) -> None:
    """b's own file is given and silent about a; of c there is no file, so its silence says nothing."""
    ports: dict[str, dict[str, str]] = {"Ethernet0": {}, "Ethernet4": {}}
    neighbours = {"Ethernet0": {"name": "b", "port": "Ethernet0"}, "Ethernet4": {"name": "c", "port": "Ethernet0"}}
    imported = load_sonic(saved(tmp_path, config("a", ports, neighbours), config("b", ports, {})))
    assert [(one.id, one.entity) for one in imported.findings] == [("cabling.one-sided", "a:Ethernet0 -> b:Ethernet0")]


def test_neighbours_that_contradict_each_other_are_a_mistake(tmp_path: Path) -> None:
    """a says that its port leads to b's, and b says that this port leads to c."""
    first = config("a", {"Ethernet0": {}}, {"Ethernet0": {"name": "b", "port": "Ethernet0"}})
    second = config("b", {"Ethernet0": {}}, {"Ethernet0": {"name": "c", "port": "Ethernet0"}})
    with pytest.raises(InputError, match="the interface b:Ethernet0 a second time"):
        loaded(tmp_path, first, second)


def test_the_same_switch_twice_is_a_mistake(tmp_path: Path) -> None:
    """Two files of one hostname."""
    tree = config("a", {}, {})
    with pytest.raises(InputError, match="the switch 'a' a second time"):
        loaded(tmp_path, tree, tree)


@pytest.mark.parametrize("tree", [[], {}, {"PORT": 7}, {"DEVICE_METADATA": {"localhost": ["hostname"]}}])
def test_what_is_no_configuration_is_refused(tree: Any, tmp_path: Path) -> None:
    """Without a hostname a file cannot be joined to others."""
    with pytest.raises(InputError, match="no hostname, so no switch configuration"):
        loaded(tmp_path, tree)


def test_a_redis_dump_of_the_configuration_is_read(tmp_path: Path) -> None:
    """redis-dump keeps each row with its type: {"PORT|Ethernet0": {"type": "hash", "value": {...}, "ttl": -1}}."""
    tree = config("t", {"Ethernet0": {"speed": "100000"}}, {"Ethernet0": {"name": "servers1", "port": "eth0"}})
    dump = {
        f"{table}|{key}": {"expireat": 1550863898.649604, "ttl": -0.001, "type": "hash", "value": row}
        for table, rows in tree.items()
        for key, row in rows.items()
    }
    assert loaded(tmp_path, dump).link_label(0) == "t:Ethernet0 -> servers1:eth0"


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("leaf1.json", "leaf1"),
        ("leaf1.config_db.json", "leaf1"),
        ("leaf-2_config_db.json", "leaf-2"),
        ("leaf3-running-config.json", "leaf3"),
        ("spine9/config_db.json", "spine9"),
        ("spine9/running_config.json", "spine9"),
        ("spine9/config_db0.json", "spine9"),
    ],
)
def test_a_switch_without_hostname_is_named_after_its_file(place: str, name: str, tmp_path: Path) -> None:
    """Or after its folder, where the file is named as on every switch; a note says so."""
    tree = config("t", {"Ethernet0": {"speed": "100000"}}, {"Ethernet0": {"name": "servers1", "port": "eth0"}})
    del tree["DEVICE_METADATA"]
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(tree))
    fabric = load_sonic([path])
    assert fabric.link_label(0) == f"{name}:Ethernet0 -> servers1:eth0"
    assert fabric.notes[0] == f"{path}: no hostname; the switch is named {name!r} after the file"


def asic(number: int, ports: dict[str, dict[str, str]], neighbours: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of an ASIC of the switch `box`, with a port to the other."""
    inside = {f"Ethernet-BP{number}": {"role": "Int", "description": f"ASIC{1 - number}:Eth0-ASIC{1 - number}"}}
    tree = config("box", {**ports, **inside}, neighbours)
    tree["DEVICE_METADATA"]["localhost"]["asic_name"] = f"asic{number}"
    return tree


def test_the_asics_of_a_switch_are_one_switch(tmp_path: Path) -> None:
    """Each has a file with the hostname of all; another switch names a port of the second by its alias."""
    inside = {"name": "ASIC1", "port": "Eth0-ASIC1"}
    first = asic(0, {"Ethernet0": {}}, {"Ethernet0": {"name": "servers1", "port": "e0"}, "Ethernet-BP0": inside})
    second = asic(1, {"Ethernet64": {"alias": "Eth2/1"}}, {"Ethernet64": {"name": "spine", "port": "Ethernet0"}})
    spine = config("spine", {"Ethernet0": {}}, {"Ethernet0": {"name": "box", "port": "Eth2/1"}})
    paths = saved(tmp_path, first, second, spine)
    fabric = load_sonic(paths)
    links = [fabric.link_label(2 * link) for link in range(2)]
    assert links == ["box:Ethernet0 -> servers1:e0", "box:Ethernet64 -> spine:Ethernet0"]
    assert sorted(fabric.node_name_N) == ["box", "servers1", "spine"]
    assert fabric.notes[:2] == (
        f"{paths[0]}: ports to other ASICs of box, left out: 1",
        f"{paths[1]}: ports to other ASICs of box, left out: 1",
    )


def test_the_asics_of_a_switch_may_share_a_file(tmp_path: Path) -> None:
    """`show runningconfiguration all` prints a namespace for the host and one for each ASIC; lines are the file's."""
    first = asic(0, {"Ethernet0": {}}, {"Ethernet0": {"name": "servers1", "port": "e0"}})
    second = asic(1, {"Ethernet64": {"speed": "fast"}}, {"Ethernet64": {"name": "spine", "port": "Ethernet0"}})
    host = config("box", {}, {})
    with pytest.raises(InputError, match=r"switch0\.json:4\d: asic1\.PORT\.Ethernet64\.speed: a speed of 'fast'"):
        loaded(tmp_path, {"localhost": host, "asic0": first, "asic1": second})
    second["PORT"]["Ethernet64"]["speed"] = "400000"
    fabric = loaded(tmp_path, {"localhost": host, "asic0": first, "asic1": second})
    assert fabric.name == "box"
    assert [fabric.link_label(port) for port in (0, 2)] == [
        "box:Ethernet0 -> servers1:e0",
        "box:Ethernet64 -> spine:Ethernet0",
    ]


def test_one_asic_twice_is_a_mistake(tmp_path: Path) -> None:
    """As two files of one switch are that say nothing of ASICs."""
    with pytest.raises(
        InputError, match=r"the switch 'box' a second time[^\n]*\n  allowed: one file for each switch, or"
    ):
        loaded(tmp_path, asic(0, {}, {}), asic(0, {}, {}))


def test_an_asic_may_name_a_neighbour_on_a_port_of_another(tmp_path: Path) -> None:
    """As in sonic-utilities' tests/mock_tables/asic1; named by both, it is one link."""
    neighbour = {"Ethernet0": {"name": "servers1", "port": "e0"}}
    first = asic(0, {"Ethernet0": {"speed": "40000"}}, neighbour)
    fabric = loaded(tmp_path, first, asic(1, {"Ethernet64": {}}, neighbour))
    assert fabric.link_label(0) == "box:Ethernet0 -> servers1:e0"
    assert fabric.port_rate_bps_P.tolist() == [40_000_000_000] * 2


def test_a_switch_without_neighbours_is_noted(tmp_path: Path) -> None:
    """Most configurations that no minigraph wrote have none: a switch without a link looked like a whole fabric."""
    (path,) = saved(tmp_path, config("t", {"Ethernet0": {"speed": "100000"}}, {}))
    (note,) = load_sonic([path]).notes
    assert note == f"{path}: no DEVICE_NEIGHBOR, so no link from it; `lldpctl -f json` on the switch has its neighbours"
