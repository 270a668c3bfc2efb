"""Fabrics go to networkx and GraphML and come back; other people's graphs come in."""

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from fabrictune.foundation.errors import FabricError, InputError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.graphs import from_networkx, layered_positions, read_graphml, to_networkx, write_graphml

NAMESPACE = 'xmlns="http://graphml.graphdrawing.org/xmlns"'


def assert_same(found: Fabric, expected: Fabric) -> None:
    """Compare every column."""
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(vars(found)[name], value, err_msg=name)


def with_odd_order(fabric: Fabric) -> Fabric:
    """Return the fabric with NICs of other addresses and its first host's cable slower on the way back."""
    delay_ps_P = fabric.port_delay_ps_P.copy()
    delay_ps_P[1] += 1
    return replace(fabric, port_delay_ps_P=delay_ps_P, nic_ipv4_C=fabric.nic_ipv4_C[::-1])


def test_graph_has_nodes_and_links_of_the_fabric(small_clos: Fabric) -> None:
    """50 nodes, 192 links, and an end's columns on the edge."""
    graph = to_networkx(small_clos)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (50, 192)
    edge = graph.edges["host5", "tor1-3", 0]
    assert (edge["from_port"], edge["to_port"], edge["rate_bps"]) == ("nic3", "down0/1", 200_000_000_000)
    assert graph.nodes["agg0-1"]["tier"] == 2


def test_networkx_round_trip_is_lossless(small_clos: Fabric) -> None:
    """Names, order, delays of both directions and addresses all come back."""
    fabric = with_odd_order(small_clos)
    assert_same(from_networkx(to_networkx(fabric)), fabric)


def test_graphml_round_trip_is_lossless(small_clos: Fabric, tmp_path: Path) -> None:
    """GraphML carries whole numbers and text, which is all a fabric is made of."""
    fabric = with_odd_order(small_clos)
    write_graphml(fabric, tmp_path / "fabric.graphml")
    assert_same(read_graphml(tmp_path / "fabric.graphml"), fabric)


def test_a_foreign_graph_needs_only_kinds() -> None:
    """Two hosts on a switch, drawn by hand: ports, NICs, rates and delays get their defaults."""
    graph: nx.Graph[str] = nx.Graph(name="by-hand")
    graph.add_node("h0", kind="host")
    graph.add_node("h1", kind="host")
    graph.add_node("s", kind="switch", tier=1)
    graph.add_edge("h0", "s", rate_bps=400)
    graph.add_edge("h1", "s")
    fabric = from_networkx(graph)
    assert (fabric.name, fabric.num_nics) == ("by-hand", 2)
    assert fabric.port_rate_bps_P.tolist() == [400, 400, 100_000_000_000, 100_000_000_000]
    assert [fabric.link_label(port) for port in (0, 2)] == ["h0:port0 -> s:port1", "h1:port2 -> s:port3"]


def test_nodes_without_kind_are_all_told() -> None:
    """What is a host cannot be guessed, and two guesses missing are two mistakes."""
    graph: nx.Graph[str] = nx.path_graph(["a", "b"])
    graph.nodes["b"]["kind"] = "router"
    with pytest.raises(FabricError) as raised:
        from_networkx(graph)
    assert str(raised.value) == (
        "node 'a': the kind None\n  allowed: host or switch\nnode 'b': the kind 'router'\n  allowed: host or switch"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate_bps": "fast"}, "link h - s: rate_bps 'fast'\n  allowed: a whole number of 62 bits"),
        ({"from_row": 1}, "link ends: row numbers with gaps or repeats\n  allowed: each from 0 once"),
        ({"from_nic": 3}, "NICs: nic numbers with gaps or repeats\n  allowed: each from 0 once"),
        ({"to_node": "t"}, "link h - s: to_node 't'\n  allowed: a node of the graph"),
    ],
)
def test_links_that_make_no_sense_are_refused(change: dict[str, object], message: str) -> None:
    """Numbers that are none, rows that repeat and nodes that do not exist."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("h", kind="host")
    graph.add_node("s", kind="switch")
    graph.add_edge("h", "s", **change)
    with pytest.raises(FabricError) as raised:
        from_networkx(graph)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "not XML",
        "<graphml/>",
        '<!DOCTYPE g [<!ENTITY a "aaaa">]><graphml>&a;</graphml>',
        f"<graphml {NAMESPACE}><graph><node id='a'><data key='k'/></node></graph></graphml>",
    ],
)
def test_bad_graphml_is_one_message(text: str, tmp_path: Path) -> None:
    """Whatever the reader meets, the user gets a sentence with the file's name."""
    path = tmp_path / "bad.graphml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_graphml(path)
    assert str(raised.value).startswith(f"{path}: no GraphML that can be read: ")
    assert "\n" not in str(raised.value)


def test_positions_stand_in_layers(small_clos: Fabric) -> None:
    """Height is the tier, and within a tier nobody shares a place."""
    position_N2 = layered_positions(small_clos)
    assert position_N2[:, 1].tolist() == small_clos.node_tier_N.tolist()
    assert len(np.unique(position_N2, axis=0)) == small_clos.num_nodes
    assert position_N2[:, 0].min() > 0
    assert position_N2[:, 0].max() < 1


def test_switches_of_unknown_tier_stand_on_top(small_clos: Fabric) -> None:
    """Unknown is drawn above what is known, never on the hosts' line."""
    unknown = replace(small_clos, node_tier_N=np.where(small_clos.node_tier_N == 2, -1, small_clos.node_tier_N))
    assert set(layered_positions(unknown)[48:, 1].tolist()) == {2.0}
