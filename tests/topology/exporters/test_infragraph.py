"""InfraGraph files: what `topo import` reads back, and slices that hold every link once."""

import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.exporters import EXPORTERS
from fabrictune.topology.exporters.places import Place, numbered
from fabrictune.topology.exporters.slices import Joint, joined_slices
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.importers.infragraph import load_infragraph

LEAF_SPINE = build_clos(ClosSpec(num_hosts=4, hosts_per_tor_set=2, nics_per_host=1, tiers=2))
PODS = build_clos(ClosSpec(num_hosts=8, hosts_per_tor_set=2, tor_sets_per_pod=2, tiers=3, nics_per_host=2))
TREE = build_fat_tree(FatTreeSpec(radix=4))


def read_back(fabric: Fabric, folder: Path) -> Fabric:
    path = folder / "fabric.yaml"
    path.write_text(EXPORTERS["infragraph"](fabric))
    return load_infragraph([path])


def links_of(fabric: Fabric) -> dict[frozenset[str], tuple[int, int]]:
    """Return rate and delay of each link by its ends, in the names that InfraGraph gives them: `host.3:nic.0`."""

    def label(port: int) -> str:
        parts = fabric.port_label(port).split(":")
        return ":".join(re.sub(r"[-/.]?(\d+)$", r".\1", part) for part in parts)

    return {
        frozenset((label(port), label(int(fabric.port_peer_P[port])))): (
            int(fabric.port_rate_bps_P[port]),
            int(fabric.port_delay_ps_P[port]),
        )
        for port in range(fabric.num_ports)
    }


@pytest.mark.parametrize("fabric", [LEAF_SPINE, PODS, TREE], ids=["leaf-spine", "pods", "fat tree"])
def test_a_fabric_is_read_back_with_every_link(fabric: Fabric, tmp_path: Path) -> None:
    """Names of these builders have numbers from 0 without gaps, so that only their spelling changes."""
    imported = read_back(fabric, tmp_path)
    assert imported.notes == ()
    assert links_of(imported) == links_of(fabric)
    assert np.bincount(imported.node_kind_N).tolist() == np.bincount(fabric.node_kind_N).tolist()


def test_what_was_read_is_written_as_it_was(tmp_path: Path) -> None:
    """`host.0` is `host` number 0 again: the links of the second copy are those of the first, name by name."""
    first = read_back(PODS, tmp_path)
    second = read_back(first, tmp_path)
    assert links_of(second) == links_of(first)
    assert second.node_name_N == first.node_name_N


def test_the_golden_fabric_is_the_golden_infrastructure(golden: Path) -> None:
    """Four hosts below two ToRs: two devices for switches, and edges between slices."""
    text = EXPORTERS["infragraph"](LEAF_SPINE)
    path = golden / "leaf-spine.infragraph.yaml"
    assert text == path.read_text(), "see what changed, and keep it if it was meant"
    assert len(yaml.safe_load(text)["edges"]) == 3


def test_names_are_those_that_the_schema_allows() -> None:
    """Letters, digits and a few signs; a bracket would begin a slice, and a dot separates names."""
    names = [re.sub(r"^host", "rack/3 [a].gpu-node", name) for name in LEAF_SPINE.node_name_N]
    ports = tuple(re.sub(r"^nic", "Ethernet1/", name) for name in LEAF_SPINE.port_name_P)
    tree = yaml.safe_load(EXPORTERS["infragraph"](replace(LEAF_SPINE, node_name_N=tuple(names), port_name_P=ports)))
    named = [entry["name"] for key in ("devices", "links", "instances") for entry in tree[key]]
    named += [component["name"] for device in tree["devices"] for component in device["components"]]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in named)
    assert "rack-3-a-gpu-node" in named
    assert "Ethernet1" in named


def test_ports_named_as_the_centre_of_a_device_are_kept_apart(tmp_path: Path) -> None:
    """NICs that are called `cpu` are still NICs."""
    ports = tuple(re.sub(r"^nic", "cpu", name) for name in LEAF_SPINE.port_name_P)
    imported = read_back(replace(LEAF_SPINE, port_name_P=ports), tmp_path)
    assert imported.num_nics == LEAF_SPINE.num_nics


def test_hosts_of_two_kinds_are_two_instances() -> None:
    """The last host has no NIC of the name of the others."""
    last = LEAF_SPINE.node_name_N.index("host3")
    ports = tuple(
        "ib0" if node == last else name
        for node, name in zip(LEAF_SPINE.port_node_P.tolist(), LEAF_SPINE.port_name_P, strict=True)
    )
    tree = yaml.safe_load(EXPORTERS["infragraph"](replace(LEAF_SPINE, port_name_P=ports)))
    instances = {entry["name"]: (entry["device"], entry["count"], entry["description"]) for entry in tree["instances"]}
    assert instances["host"] == ("host", 3, "host0 to host2")
    assert instances["host-2"] == ("host-2", 1, "host3")


def test_numbers_have_no_gaps_and_follow_those_of_the_names() -> None:
    """swp2 comes before swp10; a name without a number is the first of its own; other kinds share no name."""
    places, groups = numbered(["swp10", "swp2", "mgmt", "swp-1", "swp3"], ["a", "a", "a", "a", "b"])
    assert places == (Place("swp", 2), Place("swp", 1), Place("mgmt", 0), Place("swp", 0), Place("swp-2", 0))
    assert [(group.name, group.count, group.description) for group in groups] == [
        ("swp", 3, "swp-1 to swp10"),
        ("mgmt", 1, "mgmt"),
        ("swp-2", 1, "swp3"),
    ]


def test_a_name_of_digits_alone_and_a_very_long_one_have_a_place() -> None:
    """A number longer than Python converts is cut."""
    places, _ = numbered(["7", "x" + "9" * 10_000])
    assert [place.number for place in places] == [0, 0]
    assert places[0].name == "x"


def test_slices_hold_every_joint_once() -> None:
    """Of 200 random cablings: unfolded, the slices are the joints."""
    chance = random.Random(5)
    for _ in range(200):
        joints = list(
            dict.fromkeys(
                Joint(
                    tuple(Place(name, chance.randrange(3)) for name in ("host", "nic", "tor", "down")),
                    chance.choice(("slow", "fast")),
                )
                for _ in range(chance.randrange(20))
            )
        )
        unfolded = [
            Joint(
                tuple(place.moved(step * move) for place, move in zip(found.first.places, found.moves, strict=True)),
                found.first.kind,
            )
            for found in joined_slices(joints)
            for step in range(found.count)
        ]
        assert sorted(map(repr, unfolded)) == sorted(map(repr, joints))


def test_eight_hosts_below_a_tor_are_one_edge() -> None:
    """The host moves on one side and the port on the other."""
    joints = [
        Joint((Place("host", number), Place("nic", 0), Place("tor", 0), Place("down", number)), "link")
        for number in range(8)
    ]
    (found,) = joined_slices(joints)
    assert found.texts() == ("host[0:8]", "nic[0]", "tor[0]", "down[0:8]")
