"""Files for schedulers and labs: every host once, joined as the fabric joins them, in forms that others read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from fabrictune.foundation.errors import InputError
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.exporters import EXPORTERS
from fabrictune.topology.exporters.locality import Locality, locality_of
from fabrictune.topology.exporters.slurm import compress_hosts
from fabrictune.topology.fabric import NodeKind
from fabrictune.topology.host_lists import expand_hosts
from fabrictune.topology.importers.containerlab import load_containerlab

PODS = build_clos(ClosSpec(num_hosts=8, hosts_per_tor_set=2, tor_sets_per_pod=2, tiers=3, nics_per_host=2))
LEAF_SPINE = build_clos(ClosSpec(num_hosts=4, hosts_per_tor_set=2, nics_per_host=1, tiers=2))
TREE = build_fat_tree(FatTreeSpec(radix=4))
HOSTS = tuple(f"host{number}" for number in range(8))


def hosts_of(locality: Locality, level: int) -> list[tuple[str, ...]]:
    return [domain.hosts for domain in locality.domains() if domain.level == level]


def test_a_domain_is_what_switches_of_its_tiers_join() -> None:
    """Two hosts a ToR set, two ToR sets a pod, two pods below the core."""
    locality = locality_of(PODS)
    assert locality.num_levels == 3
    assert hosts_of(locality, 1) == [HOSTS[first : first + 2] for first in (0, 2, 4, 6)]
    assert hosts_of(locality, 2) == [HOSTS[:4], HOSTS[4:]]
    assert hosts_of(locality, 3) == [HOSTS]


def test_tiers_that_are_unknown_are_distances() -> None:
    """The same tree without tiers: radix 4 has two hosts an edge switch, four a pod."""
    bare = replace(TREE, node_tier_N=np.where(TREE.node_kind_N == NodeKind.HOST, TREE.node_tier_N, -1))
    for level in (1, 2, 3):
        assert hosts_of(locality_of(bare), level) == hosts_of(locality_of(TREE), level)


def test_a_single_tor_gives_its_name() -> None:
    names = [domain.name for domain in locality_of(LEAF_SPINE).domains()]
    assert names == ["level2-0", "tor0", "tor1"]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["node0", "node1", "node2", "node7"], "node[0-2,7]"),
        (["a1"], "a1"),
        (["n01", "n02"], "n0[1-2]"),
        (["login", "gpu3", "gpu4"], "login,gpu[3-4]"),
        (["x9", "x10", "x9"], "x[9-10]"),
    ],
)
def test_names_become_a_list_that_says_the_same(names: list[str], text: str) -> None:
    assert compress_hosts(names) == text
    assert sorted(expand_hosts(text, where="list")) == sorted(set(names))


def test_slurm_has_every_host_below_one_switch() -> None:
    rows = [dict(word.split("=", 1) for word in line.split()) for line in slurm_lines()]
    nodes = [host for row in rows if "Nodes" in row for host in expand_hosts(row["Nodes"], where="Nodes")]
    assert sorted(nodes) == sorted(HOSTS)
    children = [name for row in rows if "Switches" in row for name in expand_hosts(row["Switches"], where="Switches")]
    assert sorted(children) == sorted(row["SwitchName"] for row in rows if row["SwitchName"] != "level3-0")


def slurm_lines() -> list[str]:
    first, *lines = EXPORTERS["slurm"](PODS).splitlines()
    assert first.startswith("#")
    return lines


def test_slurms_yaml_says_the_same() -> None:
    (topology,) = yaml.safe_load(EXPORTERS["slurm-yaml"](PODS))
    lines = [
        f"SwitchName={row['switch']} " + (f"Nodes={row['nodes']}" if "nodes" in row else f"Switches={row['children']}")
        for row in topology["tree"]["switches"]
    ]
    assert lines == slurm_lines()


def test_hyper_nodes_have_the_tier_of_their_domain() -> None:
    nodes = list(yaml.safe_load_all(EXPORTERS["volcano"](PODS)))
    assert [node["spec"]["tier"] for node in nodes] == [3, 2, 2, 1, 1, 1, 1]
    members = [member for node in nodes for member in node["spec"]["members"] if member["type"] == "Node"]
    assert sorted(member["selector"]["exactMatch"]["name"] for member in members) == sorted(HOSTS)


def test_labels_give_a_node_its_domains() -> None:
    topology, *nodes = yaml.safe_load_all(EXPORTERS["kueue"](PODS))
    levels = [level["nodeLabel"].rpartition("/")[2] for level in topology["spec"]["levels"]]
    assert levels == ["core", "spine", "leaf", "hostname"]
    labels = {node["metadata"]["name"]: list(node["metadata"]["labels"].values()) for node in nodes}
    assert labels["host5"] == ["level1-2", "level2-1", "level3-0"]
    assert sorted(labels) == sorted(HOSTS)


def test_a_lab_is_read_back_as_the_fabric_that_it_was(tmp_path: Path) -> None:
    path = tmp_path / "lab.clab.yml"
    path.write_text(EXPORTERS["containerlab"](PODS))
    fabric = load_containerlab([path])
    assert fabric.notes == ()
    tier_of = dict(zip(PODS.node_name_N, PODS.node_tier_N.tolist(), strict=True))
    assert dict(zip(fabric.node_name_N, fabric.node_tier_N.tolist(), strict=True)) == tier_of
    links = {
        frozenset((PODS.port_label(port), PODS.port_label(int(peer)))): (rate, delay)
        for port, (peer, rate, delay) in enumerate(
            zip(PODS.port_peer_P, PODS.port_rate_bps_P.tolist(), PODS.port_delay_ps_P.tolist(), strict=True)
        )
    }
    for port in range(fabric.num_ports):
        ends = frozenset((fabric.port_label(port), fabric.port_label(int(fabric.port_peer_P[port]))))
        assert links[ends] == (fabric.port_rate_bps_P[port], fabric.port_delay_ps_P[port])
    assert fabric.num_ports == PODS.num_ports


def test_a_fabric_without_hosts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "two.clab.yml"
    path.write_text(
        "name: two\ntopology:\n  nodes: {a: {kind: srl}, b: {kind: srl}}\n  links: [{endpoints: ['a:e1', 'b:e1']}]\n"
    )
    with pytest.raises(InputError, match="no hosts"):
        locality_of(load_containerlab([path]))
