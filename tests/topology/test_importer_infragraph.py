"""InfraGraph: devices and slices unfold into nodes and ports as its own service unfolds them."""

import json
from pathlib import Path
from typing import Any

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.files import write_fabric
from fabrictune.topology.importers import import_fabric
from fabrictune.topology.importers.infragraph import load_infragraph


def infrastructure(*edges: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return two servers of four NICs and one switch of eight ports, with these edges."""
    return {
        "name": "rack",
        "devices": [
            {"name": "server", "components": [{"name": "nic", "count": 4, "choice": "nic"}]},
            {"name": "box", "components": [{"name": "port", "count": 8, "choice": "port"}]},
        ],
        "links": [{"name": "wire"}],
        "instances": [
            {"name": "host", "device": "server", "count": 2},
            {"name": "leaf", "device": "box", "count": 1},
        ],
        "edges": list(edges),
        **more,
    }


def edge(host: str, nic: str, leaf: str, port: str, scheme: str = "one2one") -> dict[str, Any]:
    """Return an edge between what these slices name."""
    ends = {"ep1": {"instance": host, "component": nic}, "ep2": {"instance": leaf, "component": port}}
    return {**ends, "scheme": scheme, "link": "wire"}


@pytest.fixture
def load(tmp_path: Path):
    """Read an infrastructure given as a tree."""

    def load_tree(tree: Any) -> Fabric:
        path = tmp_path / "rack.json"
        path.write_text(json.dumps(tree, indent=1))
        return load_infragraph([path])

    return load_tree


def links(imported: Fabric) -> list[str]:
    """Return every link's label."""
    return [imported.link_label(port) for port in range(0, imported.num_ports, 2)]


def test_golden_infrastructure_gives_golden_fabric(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device inside a device, negative and stepped slices, gigabytes, and a link without latency."""
    monkeypatch.chdir(golden)
    imported = load_infragraph([Path("lab.infragraph.yaml")])
    write_fabric(imported, tmp_path / "fabric.json")
    assert (tmp_path / "fabric.json").read_text() == (golden / "infragraph.fabric.json").read_text()
    assert imported.notes == ("links without a latency, taken as 10 m: 2",)


@pytest.mark.parametrize(
    ("host", "nic", "port", "expected"),
    [
        ("host[1]", "nic[2]", "port[5]", ["host.1:nic.2 -> leaf.0:port.5"]),
        ("host", "nic[0]", "port", ["host.0:nic.0 -> leaf.0:port.0", "host.1:nic.0 -> leaf.0:port.1"]),
        ("host[0]", "nic[::2]", "port[6:]", ["host.0:nic.0 -> leaf.0:port.6", "host.0:nic.2 -> leaf.0:port.7"]),
        ("host[:1]", "nic[-1]", "port[7:0:-7]", ["host.0:nic.3 -> leaf.0:port.7"]),
        ("host[0]", "nic[4:]", "port", []),
    ],
)
def test_slices_are_those_of_python(load, host: str, nic: str, port: str, expected: list[str]) -> None:
    """The pairs go up to the shorter side's last."""
    assert links(load(infrastructure(edge(host, nic, "leaf[0]", port)))) == expected


def test_many_to_many_joins_each_with_each(load) -> None:
    """Two NICs that would both use one port: InfraGraph allows it, a cable does not."""
    with pytest.raises(InputError, match=r"the interface leaf\.0:port\.0 a second time"):
        load(infrastructure(edge("host[0]", "nic[0:2]", "leaf[0]", "port[0]", "many2many")))


def test_a_graph_response_holds_the_infrastructure(load) -> None:
    """What `get_graph` returns has annotations beside it."""
    tree = infrastructure(edge("host[0]", "nic[0]", "leaf[0]", "port[0]"))
    assert links(load({"infrastructure": tree, "annotations": {}})) == ["host.0:nic.0 -> leaf.0:port.0"]


def test_it_is_told_from_other_yaml_and_json(golden: Path) -> None:
    """Containerlab's files are YAML and SONiC's JSON, and they keep their own importers."""
    assert import_fabric([golden / "lab.infragraph.yaml"]).name == "two-racks"
    assert import_fabric([golden / "lab.clab.yml"]).name == "lab"


def test_every_mistake_is_told_with_its_line(load, tmp_path: Path) -> None:
    """An instance, a component, a slice, a scheme and a link that do not exist."""
    tree = infrastructure(
        edge("hst[0]", "nic[0]", "leaf[0]", "port[0]"),
        edge("host[0]", "nik[0]", "leaf[0]", "port[0]"),
        edge("host[7]", "nic[0]", "leaf[0]", "port[one]"),
        edge("host[0]", "nic[0]", "leaf[0]", "port[0]", "ring"),
    )
    with pytest.raises(InputError) as raised:
        load(tree)
    assert [
        (mistake.where.rpartition(": ")[2], mistake.found, mistake.nearest) for mistake in raised.value.mistakes
    ] == [
        ("edges[0].ep1.instance", "the instance 'hst', which does not exist", "host"),
        ("edges[1].ep1.component", "the component 'nik', which does not exist", "nic"),
        ("edges[2].ep1.instance", "'host[7]'", ""),
        ("edges[2].ep2.component", "'port[one]'", ""),
        ("edges[3].scheme", "'ring'", ""),
    ]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"instances": [{"name": "host", "device": "servr", "count": 1}]}, "the device 'servr', which does not exist"),
        ({"instances": [{"name": "host", "device": "server", "count": 10**9}]}, "'1000000000'"),
        (
            {"devices": [{"name": "server", "components": [{"name": "nic", "count": -1}]}], "instances": []},
            "no component",
        ),
        ({"devices": 7, "instances": []}, "not a list"),
        ({"links": [{"name": "a"}, {"name": "a"}]}, "the name 'a'"),
    ],
)
def test_what_cannot_unfold_is_refused(load, change: dict[str, Any], found: str) -> None:
    """Counts are bounded before anything is made of them."""
    with pytest.raises(InputError) as raised:
        load(infrastructure(**change))
    assert raised.value.mistakes[0].found == found


def test_a_bomb_of_edges_is_refused(load) -> None:
    """Three devices of 65,536 parts each, one inside the other, would be 2**48 ports."""
    devices = [
        {"name": name, "components": [{"name": inner, "count": 2**16, "choice": "device"}]}
        for name, inner in (("a", "b"), ("b", "c"), ("c", "d"))
    ]
    ends = {"instance": "x", "component": "b.c.d"}
    tree = infrastructure(
        {"ep1": ends, "ep2": ends, "scheme": "one2one", "link": "wire"},
        devices=devices,
        instances=[{"name": "x", "device": "a", "count": 1}],
    )
    with pytest.raises(InputError, match="more links than can be used"):
        load(tree)


def test_a_bandwidth_beyond_64_bits_is_named(load) -> None:
    """8 bits to the byte: 2 * 10^9 gigabytes a second pass the limit of a rate; it was an OverflowError."""
    tree = infrastructure(edge("host[0]", "nic[0]", "leaf[0]", "port[0]"))
    tree["links"] = [{"name": "wire", "physical": {"bandwidth": {"gigabytes_per_second": 2 * 10**9}}}]
    with pytest.raises(
        InputError, match=r"'2000000000' gigabytes_per_second: too large a rate\n  allowed: above 0, up to 100 Tbps$"
    ):
        load(tree)
