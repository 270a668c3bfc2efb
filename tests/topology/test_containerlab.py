"""Containerlab files: both link forms, what is skipped, and every mistake at once."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.files import write_fabric
from fabrictune.topology.importers.containerlab import load_containerlab


def loaded(tmp_path: Path, text: str) -> Fabric:
    """Read a topology given as text."""
    path = tmp_path / "lab.clab.yml"
    path.write_text(text)
    return load_containerlab([path])


def test_golden_lab_gives_golden_fabric(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brief and extended links, groups, defaults, labels and a variable: the whole file, byte for byte."""
    monkeypatch.chdir(golden)
    write_fabric(load_containerlab([Path("lab.clab.yml")]), tmp_path / "fabric.json")
    assert (tmp_path / "fabric.json").read_text() == (golden / "lab.fabric.json").read_text()


def test_what_was_skipped_and_assumed_is_noted(golden: Path) -> None:
    """A variable's default, two links that leave the lab, and six links without a rate."""
    path = golden / "lab.clab.yml"
    assert load_containerlab([path]).notes == (
        f"{path}:39: topology.links[6].endpoints[1]: ${{PORT:=e1-2}} taken as 'e1-2'",
        f"{path}:41: topology.links[8]: a link to mgmt-net skipped",
        f"{path}:42: topology.links[9]: a link of type host skipped",
        "6 links have no speed; assuming 100 Gbps",
        "links without a cable length, taken as 10 m: 6",
    )


def test_every_mistake_is_told_with_its_line(golden: Path) -> None:
    """A file with thirteen mistakes is reported once."""
    with pytest.raises(InputError) as raised:
        load_containerlab([golden / "broken.clab.yml"])
    assert str(raised.value).replace(f"{golden}/", "") + "\n" == (golden / "broken.clab.txt").read_text()


def test_every_interface_of_a_host_is_a_nic(golden: Path) -> None:
    """server1 has two cables, so two NICs; the switch made of a linux node has none."""
    fabric = load_containerlab([golden / "lab.clab.yml"])
    assert [fabric.nic_label(nic) for nic in range(fabric.num_nics)] == [
        "server1:eth1",
        "server1:eth2",
        "server2:eth1",
        "server3:eth1",
    ]


def test_tiers_are_counted_from_the_hosts(tmp_path: Path) -> None:
    """A chain of host, leaf, spine and a spine's neighbour, none of them labelled: 0, 1, 2, 3."""
    fabric = loaded(
        tmp_path,
        "topology:\n  nodes:\n    h: {kind: linux}\n    a: {kind: srl}\n    b: {kind: srl}\n    c: {kind: srl}\n"
        '  links:\n    - endpoints: ["h:e", "a:1"]\n    - endpoints: ["a:2", "b:1"]\n'
        '    - endpoints: ["b:2", "c:1"]\n',
    )
    assert fabric.node_tier_N.tolist() == [0, 1, 2, 3]
    assert fabric.name == "lab"


def test_default_rate_can_be_chosen(golden: Path) -> None:
    """Only links without a label take it."""
    fabric = load_containerlab([golden / "lab.clab.yml"], default_rate_bps=25)
    assert np.unique(fabric.port_rate_bps_P).tolist() == [25, 400_000_000_000]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", ":1\n: not a mapping"),
        ("name: x\n", ":1: topology: nothing"),
        ("topology: {}\n", ":1: topology.nodes: nothing"),
        ("topology: {nodes: {}}\n", "no nodes"),
        ("topology: {nodes: {a: {kind: linux}}, links: 7}\n", ":1: topology.links: not a list of links"),
        ("topology: {nodes: {a: {kind: linux}, a: {kind: linux}}}\n", ":1: the key 'a' a second time"),
        ("topology: {nodes: {a: {kind: ['linux']}}}\n", ":1: topology.nodes.a.kind: a list"),
    ],
)
def test_a_file_of_another_shape_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """The message says where the shape departs from a topology's."""
    with pytest.raises(InputError) as raised:
        loaded(tmp_path, text)
    assert message.replace(":1\n", ":1") in str(raised.value)


def test_a_second_file_is_refused(golden: Path) -> None:
    """A containerlab file is a whole lab."""
    with pytest.raises(InputError, match="a second file\n  allowed: one file of this format"):
        load_containerlab([golden / "lab.clab.yml", golden / "broken.clab.yml"])


def test_mistakes_stop_at_a_hundred(tmp_path: Path) -> None:
    """Ten thousand wrong links are a hundred messages, in bounded time."""
    links = "".join(f'    - endpoints: ["x{row}:1", "y{row}:1"]\n' for row in range(10_000))
    with pytest.raises(InputError) as raised:
        loaded(tmp_path, f"topology:\n  nodes:\n    a: {{kind: linux}}\n  links:\n{links}")
    assert len(raised.value.mistakes) == 100


def test_the_defaults_may_name_the_group_of_nodes_without_one(tmp_path: Path) -> None:
    """containerlab asks node, group, the defaults' group and the defaults for a kind, in this order."""
    fabric = loaded(
        tmp_path,
        """name: lab
topology:
  defaults: {group: leaves}
  groups:
    leaves: {kind: nokia_srlinux}
    servers: {kind: linux}
    unnamed: {image: x}
  nodes:
    leaf1:
    leaf2: {group: unnamed}
    server1: {group: servers}
    server2: {kind: linux}
  links:
    - endpoints: ["leaf1:e1-1", "server1:eth1"]
    - endpoints: ["leaf2:e1-1", "server2:eth1"]
    - endpoints: ["leaf1:e1-2", "leaf2:e1-2"]
""",
    )
    assert sorted(fabric.node_name_N[node] for node in set(fabric.nic_host_C.tolist())) == ["server1", "server2"]


def test_a_stitched_link_is_a_link(tmp_path: Path) -> None:
    """containerlab, tests/13-srsim/12-srsim-veth-stitch.clab.yml: two nodes and their interfaces."""
    fabric = loaded(
        tmp_path,
        """name: lab
topology:
  nodes:
    sros1: {kind: nokia_srsim}
    sros2: {kind: nokia_srsim}
  links:
    - type: veth-stitch
      endpoints:
        - {node: sros1, interface: 1/1/c1/1}
        - {node: sros2, interface: 1/1/c1/1}
""",
    )
    assert fabric.link_label(0) == "sros1:1/1/c1/1 -> sros2:1/1/c1/1"


ROLES = """name: lab
topology:
  kinds:
    linux: {image: frrouting/frr:v8.4.1}
  nodes:
    leaf1: {kind: linux}
    r1: {kind: linux}
    spine1: {kind: linux, group: spine}
    bleaf1: {kind: linux, group: leaf}
    gw: {kind: linux, labels: {fabrictune-kind: host}}
    server1: {kind: linux}
    server2: {kind: linux, image: alpine:3}
    pc1: {kind: linux, image: alpine:3}
    ixia: {kind: keysight_ixia-c-one}
  links:
    - endpoints: ["leaf1:eth1", "server1:eth1"]
    - endpoints: ["r1:eth1", "server2:eth1"]
    - endpoints: ["r1:eth2", "pc1:eth1"]
    - endpoints: ["leaf1:eth2", "spine1:eth1"]
    - endpoints: ["r1:eth3", "spine1:eth2"]
    - endpoints: ["bleaf1:eth1", "spine1:eth3"]
    - endpoints: ["bleaf1:eth2", "gw:eth1"]
    - endpoints: ["leaf1:eth3", "ixia:eth1"]
"""


def test_groups_images_and_names_say_what_a_container_is(tmp_path: Path) -> None:
    """FRR in a linux container switches unless it is called a server; a tester is a host; guesses are noted."""
    fabric = loaded(tmp_path, ROLES)
    tiers = dict(zip(fabric.node_name_N, fabric.node_tier_N.tolist(), strict=True))
    assert {name for name, tier in tiers.items() if tier == 0} == {"server1", "server2", "pc1", "gw", "ixia"}
    assert {name: tier for name, tier in tiers.items() if tier} == {"leaf1": 1, "r1": 1, "spine1": 2, "bleaf1": 1}
    assert fabric.notes[-2:] == (
        "nodes of kind linux, taken as switches by their names: 1 (leaf1)",
        "nodes of kind linux with routing software, taken as switches: 1 (r1)",
    )


def test_a_border_leaf_is_no_core_switch(tmp_path: Path) -> None:
    """It has no hosts, and would be as far from them as a core switch is."""
    lines = ["name: lab", "topology:", "  nodes:"]
    lines += [f"    {name}: {{kind: nokia_srlinux}}" for name in ("leaf1", "spine1", "border-leaf1", "core1")]
    lines += ["    h1: {kind: linux}", "  links:"]
    pairs = (("h1", "leaf1"), ("leaf1", "spine1"), ("spine1", "border-leaf1"), ("spine1", "core1"))
    lines += [f'    - endpoints: ["{a}:e{i}", "{b}:e{i}"]' for i, (a, b) in enumerate(pairs)]
    fabric = loaded(tmp_path, "\n".join(lines) + "\n")
    assert dict(zip(fabric.node_name_N, fabric.node_tier_N.tolist(), strict=True)) == {
        "leaf1": 1, "spine1": 2, "border-leaf1": 1, "core1": 3, "h1": 0,
    }  # fmt: skip
    assert "switches without hosts, taken as leaves by their names: 1 (border-leaf1)" in fabric.notes


def test_labels_of_other_tools_say_what_a_container_is(tmp_path: Path) -> None:
    """A group that is a role counts more; one that is none does not hide the label."""
    fabric = loaded(
        tmp_path,
        """name: lab
topology:
  nodes:
    a: {kind: linux, labels: {role: spine}}
    b: {kind: linux, group: rack-3, labels: {topoViewer-role: leaf}}
    c: {kind: nokia_srlinux, group: server, labels: {graph-icon: spine}}
  links:
    - endpoints: ["a:eth1", "b:eth1"]
    - endpoints: ["b:eth2", "c:e1-1"]
""",
    )
    assert fabric.node_kind_N.tolist() == [NodeKind.SWITCH, NodeKind.SWITCH, NodeKind.HOST]
    assert fabric.node_tier_N.tolist() == [2, 1, 0]
