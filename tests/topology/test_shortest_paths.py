"""Distances, equal-cost ports, and the ends of paths, on fabrics small enough to draw."""

import numpy as np
import pytest

from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.network import NO_PORT
from fabrictune.topology.shortest_paths import UNREACHED, SwitchGraph, by_attachment


@pytest.fixture(scope="module")
def diamond() -> Fabric:
    """Return a - {b, c} - d, two links between a and b; host 0 on a, host 1 on d, host 2 on b and d; e alone.

    NICs 0, 1 have one port, NIC 2 has two.
    """
    draft = FabricDraft("diamond")
    switches = {name: draft.add_switch(name) for name in "abcde"}
    hosts = [draft.add_host(f"h{number}") for number in range(3)]
    for number, (one, other) in enumerate((("a", "b"), ("a", "c"), ("a", "b"), ("b", "d"), ("c", "d"))):
        draft.add_link((switches[one], f"p{number}"), (switches[other], f"p{number}"), rate_bps=100, delay_ps=5)
    for host, switch, nic in ((0, "a", None), (1, "d", None), (2, "b", None), (2, "d", 2)):
        draft.add_link((hosts[host], f"to-{switch}"), (switches[switch], f"h{host}"), rate_bps=100, delay_ps=5, nic=nic)
    return draft.finish()


def failed(fabric: Fabric, *labels: str) -> np.ndarray:
    """Return the mask of these ports."""
    return np.array([fabric.port_label(port) in labels for port in range(fabric.num_ports)])


def labels(fabric: Fabric, ports: np.ndarray) -> list[str]:
    """Return the labels of all that are ports."""
    return [fabric.port_label(int(port)) for port in np.ravel(ports) if port != NO_PORT]


def test_distances_count_links_between_switches(diamond: Fabric) -> None:
    """Towards NIC 1 on d: a is two links away, b and c one, e cannot reach it; towards NIC 2, on b and d, all but e."""
    graph = SwitchGraph(diamond)
    assert graph.distances(1).tolist() == [2, 1, 1, 0, UNREACHED]
    assert graph.distances(2).tolist() == [1, 0, 1, 0, UNREACHED]


def test_parallel_links_count_one_by_one(diamond: Fabric) -> None:
    """Towards d, a has two ports to b and one to c, in port order; d itself has none."""
    graph = SwitchGraph(diamond)
    choices = graph.equal_cost(graph.distances(1))
    assert [diamond.port_label(port) for port in choices.of(0)] == ["a:p0", "a:p1", "a:p2"]
    assert choices.num_choices_S.tolist() == [3, 1, 1, 0, 0]


def test_a_failed_port_takes_its_link_with_it(diamond: Fabric) -> None:
    """Either end does: b is then three links from d, by way of a and c."""
    for label in ("b:p3", "d:p3"):
        graph = SwitchGraph(diamond, failed(diamond, label))
        assert graph.distances(1).tolist() == [2, 3, 1, 0, UNREACHED]
        choices = graph.equal_cost(graph.distances(1))
        assert [diamond.port_label(port) for port in choices.of(0)] == ["a:p1"]
        assert [diamond.port_label(port) for port in choices.of(1)] == ["b:p0", "b:p2"]


def test_flows_leave_through_the_nearer_port_of_a_nic(diamond: Fabric) -> None:
    """NIC 2 stands on d as NIC 1 does; towards NIC 0 on a, b is the nearer of its two switches."""
    graph = SwitchGraph(diamond)
    assert labels(diamond, graph.departures(np.array([2]), np.array([1]), graph.distances(1))) == ["h2:to-d"]
    assert labels(diamond, graph.departures(np.array([2]), np.array([0]), graph.distances(0))) == ["h2:to-b"]


def test_nothing_leaves_a_nic_without_a_way(diamond: Fabric) -> None:
    """Its only link is down."""
    graph = SwitchGraph(diamond, failed(diamond, "h0:to-a"))
    assert (graph.departures(np.array([0]), np.array([1]), graph.distances(1)) == NO_PORT).all()


def test_exits_lead_to_the_nic_and_are_told_from_other_switches(diamond: Fabric) -> None:
    """NIC 2 is left to from b and from d, never from a."""
    graph = SwitchGraph(diamond)
    exits = graph.exits(np.array([2, 2, 2]), np.array([0, 1, 3]))
    assert [labels(diamond, row) for row in exits] == [[], ["b:h2"], ["d:h2"]]


def test_flows_are_dealt_by_where_their_destinations_hang(diamond: Fabric) -> None:
    """Every row once; one attachment each, and after a failure what was one may be two."""
    graph = SwitchGraph(diamond)
    rows = [row.tolist() for row in by_attachment((graph,), np.array([1, 0, 2, 1]))]
    assert sorted(rows) == [[0, 3], [1], [2]]
    broken = SwitchGraph(diamond, failed(diamond, "h2:to-b"))
    assert sorted(row.tolist() for row in by_attachment((broken,), np.array([1, 2]))) == [[0, 1]]
    assert sorted(row.tolist() for row in by_attachment((broken, graph), np.array([1, 2]))) == [[0], [1]]
    assert list(by_attachment((graph,), np.array([], np.int64))) == []
