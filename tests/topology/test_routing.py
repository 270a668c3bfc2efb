"""All paths at once against one path at a time, and what routing must never do."""

from collections.abc import Callable
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import RouteError
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import Fabric, NodeKind
from fabrictune.topology.hashing import HASHES, HashSpec
from fabrictune.topology.hashing.five_tuples import FiveTuples
from fabrictune.topology.network import NO_PORT
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network, route

Node = int | str


def slow_path(fabric: Fabric, source: int, destination: int, source_port: int, spec: HashSpec) -> list[int] | None:
    """Return one flow's path by searching a graph of the switches and the destination NIC; None without one."""
    graph: nx.Graph[Node] = nx.Graph()
    graph.add_node("end")

    def node_behind(port: int) -> Node | None:
        """Return the switch a port leads to, "end" for the destination NIC, None for any other host."""
        peer = int(fabric.port_peer_P[port])
        if fabric.port_nic_P[peer] == destination:
            return "end"
        node = int(fabric.port_node_P[peer])
        return node if fabric.node_kind_N[node] == NodeKind.SWITCH else None

    for port, owner in enumerate(fabric.port_node_P.tolist()):
        behind = node_behind(port)
        if fabric.node_kind_N[owner] == NodeKind.SWITCH and behind is not None:
            graph.add_edge(owner, behind)
    distance = nx.single_source_shortest_path_length(graph, "end")
    header = FiveTuples(
        source_ipv4_F=fabric.nic_ipv4_C[[source]],
        destination_ipv4_F=fabric.nic_ipv4_C[[destination]],
        source_port_F=np.array([source_port]),
    )
    path: list[int] = []
    node: Node = int(fabric.nic_host_C[source])
    ports = np.nonzero(fabric.port_nic_P == source)[0].tolist()
    while node != "end":
        leading = {port: distance[behind] for port in ports if (behind := node_behind(port)) in distance}
        if not leading:
            return None
        nearest = [port for port in sorted(leading) if leading[port] == min(leading.values())]
        assert isinstance(node, int)
        seed = spec.node_seeds(fabric.num_nodes)[[node]]
        path.append(nearest[int(spec.choose_among(header, seed, np.array([len(nearest)]))[0])])
        following = node_behind(path[-1])
        assert following is not None
        node = following
        ports = np.nonzero(fabric.port_node_P == node)[0].tolist() if node != "end" else []
    return path


def with_dual_port_nics(fabric: Fabric, hosts: list[int]) -> Fabric:
    """Return the fabric with the two NICs of each of these hosts made one NIC with two ports."""
    second = [int(np.nonzero(fabric.nic_host_C == host)[0][1]) for host in hosts]
    kept = np.setdiff1d(np.arange(fabric.num_nics), second)
    new_nic_C = np.searchsorted(kept, np.arange(fabric.num_nics))
    new_nic_C[second] = new_nic_C[np.array(second, np.int64) - 1]
    nic_P = np.where(fabric.port_nic_P < 0, -1, new_nic_C[fabric.port_nic_P])
    return replace(
        fabric,
        port_nic_P=nic_P,
        nic_host_C=fabric.nic_host_C[kept],
        nic_rail_C=fabric.nic_rail_C[kept],
        nic_ipv4_C=fabric.nic_ipv4_C[kept],
    )


@st.composite
def fabrics(draw: Callable[..., object]) -> Fabric:
    """Return a fabric of a few switches with parallel links, and hosts of one NIC, two NICs, or one with two ports."""
    draft = FabricDraft("random")
    num_switches = draw(st.integers(1, 6))
    assert isinstance(num_switches, int)
    switch = st.integers(0, num_switches - 1)
    switches = [draft.add_switch(f"s{number}") for number in range(num_switches)]
    trunks = draw(st.lists(st.tuples(switch, switch), max_size=14))
    attachments = draw(st.lists(st.tuples(switch, st.none() | switch, st.booleans()), min_size=2, max_size=6))
    has_direct_cable = draw(st.booleans())
    assert isinstance(trunks, list)
    assert isinstance(attachments, list)
    number_of_port = iter(range(1000))

    def join(first: int, second: int) -> None:
        ends = ((first, f"p{next(number_of_port)}"), (second, f"p{next(number_of_port)}"))
        draft.add_link(*ends, rate_bps=100, delay_ps=5)

    hosts = [draft.add_host(f"h{number}") for number in range(len(attachments))]
    for first, second in trunks:
        if first != second:
            join(switches[first], switches[second])
    for host, (first, second, _) in zip(hosts, attachments, strict=True):
        join(host, switches[first])
        if second is not None:
            join(switches[second], host)
    if has_direct_cable:
        join(hosts[0], hosts[1])
    fabric = draft.finish()
    dual = [
        host
        for host, (_, second, is_dual) in zip(hosts, attachments, strict=True)
        if is_dual and second is not None and not (has_direct_cable and host in hosts[:2])
    ]
    return with_dual_port_nics(fabric, dual) if dual else fabric


@given(fabrics(), st.sampled_from(sorted(HASHES)), st.booleans(), st.integers(0, 5))
def test_bulk_paths_equal_slow_paths(fabric: Fabric, function: str, seed_per_switch: bool, seed: int) -> None:
    """Every pair of NICs of a random fabric takes the path, in both directions, that the slow search finds."""
    spec = HashSpec(function=function, seed_per_switch=seed_per_switch, seed=seed)
    source, destination = (
        column.ravel() for column in np.meshgrid(np.arange(fabric.num_nics), np.arange(fabric.num_nics))
    )
    queue_pairs = make_queue_pairs(source[source != destination], destination[source != destination])
    expected = [
        (
            slow_path(fabric, int(source), int(destination), int(port), spec),
            slow_path(fabric, int(destination), int(source), int(port), spec),
        )
        for source, destination, port in zip(
            queue_pairs.source_nic_Q, queue_pairs.destination_nic_Q, queue_pairs.source_port_Q, strict=True
        )
    ]
    unreached = [row for row, (there, back) in enumerate(expected) if there is None or back is None]
    if unreached:
        with pytest.raises(RouteError) as raised:
            route(fabric, queue_pairs, spec)
        assert raised.value.mistakes[0].where == f"queue pair {unreached[0]}"
        assert f"({len(unreached)} queue pairs" in raised.value.mistakes[0].next_step
        return
    port_QDH = route(fabric, queue_pairs, spec).port_QDH
    found = [tuple([int(port) for port in path if port != NO_PORT] for path in paths) for paths in port_QDH]
    assert found == expected


def random_pairs(num_nics: int, num_pairs: int) -> tuple[IntArray, IntArray]:
    """Return distinct ends."""
    generator = np.random.Generator(np.random.Philox(7))
    source = generator.integers(0, num_nics, num_pairs)
    return source, (source + generator.integers(1, num_nics, num_pairs)) % num_nics


def test_paths_hang_together(small_clos: Fabric) -> None:
    """A path begins at the source NIC, each peer is on the next port's node, and the last peer is the other NIC."""
    source, destination = random_pairs(small_clos.num_nics, 500)
    queue_pairs = make_queue_pairs(source, destination)
    port_QDH = route(small_clos, queue_pairs, HashSpec()).port_QDH
    ends = ((source, destination), (destination, source))
    for direction, (first_nic_Q, last_nic_Q) in enumerate(ends):
        for path, first_nic, last_nic in zip(port_QDH[:, direction], first_nic_Q, last_nic_Q, strict=True):
            ports = path[path != NO_PORT]
            peers = small_clos.port_peer_P[ports]
            assert small_clos.port_nic_P[ports[0]] == first_nic
            assert small_clos.port_nic_P[peers[-1]] == last_nic
            np.testing.assert_array_equal(small_clos.port_node_P[peers[:-1]], small_clos.port_node_P[ports[1:]])


def test_hops_are_those_of_the_shape(small_clos: Fabric) -> None:
    """Same ToR 2 links, other ToR 4: NICs 0 and 8 are rail 0 of one set, NIC 1 another rail, NIC 32 another set."""
    queue_pairs = make_queue_pairs([0, 0, 0], [8, 1, 32])
    port_QDH = route(small_clos, queue_pairs, HashSpec()).port_QDH
    assert (port_QDH[:, 0] != NO_PORT).sum(axis=1).tolist() == [2, 4, 4]


def test_two_nics_of_one_host_go_through_the_fabric(small_clos: Fabric) -> None:
    """A host carries no transit traffic, not even between its own NICs."""
    path = route(small_clos, make_queue_pairs([0], [1]), HashSpec()).port_QDH[0, 0]
    tiers = small_clos.node_tier_N[small_clos.port_node_P[path]].tolist()
    assert tiers == [0, 1, 2, 1]


def test_the_way_back_is_hashed_on_its_own(fat_tree: Fabric) -> None:
    """Acknowledgements hash reversed addresses, so their path is often not that of the data reversed."""
    queue_pairs = make_queue_pairs(np.zeros(64), np.full(64, 15))
    port_QDH = route(fat_tree, queue_pairs, HashSpec()).port_QDH
    forward, back = port_QDH[:, 0], fat_tree.port_peer_P[port_QDH[:, 1, ::-1]]
    is_same_Q = (forward == back).all(axis=1)
    assert 0 < is_same_Q.sum() < 64


def test_same_seed_gives_same_paths_and_another_seed_others(fat_tree: Fabric) -> None:
    """The choice depends on the 5-tuple and the seed, and on nothing else."""
    source, destination = random_pairs(fat_tree.num_nics, 200)
    queue_pairs = make_queue_pairs(source, destination)
    first, again, other = (route(fat_tree, queue_pairs, HashSpec(seed=seed)).port_QDH for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()


def test_a_nic_to_itself_is_refused(fat_tree: Fabric) -> None:
    """Such a transfer never leaves the host, so it has no place in a network."""
    with pytest.raises(RouteError) as raised:
        route(fat_tree, make_queue_pairs([0, 3], [1, 3]), HashSpec())
    assert str(raised.value) == "queue pair 1: from NIC host3:nic0 to itself\n  allowed: two different NICs"


def test_an_unreachable_pair_is_named() -> None:
    """Two islands, each with a host: the message names both NICs."""
    draft = FabricDraft("islands")
    for island in ("a", "b"):
        host, switch = draft.add_host(f"host-{island}"), draft.add_switch(f"switch-{island}")
        draft.add_link((host, "eth0"), (switch, "e1"), rate_bps=100, delay_ps=5)
    with pytest.raises(RouteError) as raised:
        build_network(draft.finish(), make_queue_pairs([0], [1]), HashSpec())
    assert str(raised.value) == (
        "queue pair 0: no path from host-a:eth0 to host-b:eth0\n"
        "  allowed: two NICs joined by switches\n"
        "  next: cable the two (1 queue pairs have no path)"
    )


def test_no_queue_pairs_are_no_paths(fat_tree: Fabric) -> None:
    """A network without traffic is a network."""
    network = build_network(fat_tree, make_queue_pairs([], []), HashSpec())
    assert network.epochs[0].port_QDH.shape[:2] == (0, 2)


def test_epoch_keeps_its_start(fat_tree: Fabric) -> None:
    """Later epochs begin after a fault has converged."""
    assert route(fat_tree, make_queue_pairs([0], [1]), HashSpec(), start_ps=7).start_ps == 7
