"""Who keeps whose copies."""

from collections import Counter

import pytest

from fabrictune.trainer_probe.operation.peers import Place, peer_of, peers_of


def places(sizes: list[int], num_replicas: int = 1) -> list[Place]:
    """Return nodes on ToR sets of these sizes, their replicas by turns."""
    tor_sets = [f"tor {number}" for number, size in enumerate(sizes) for _ in range(size)]
    return [
        Place(node=f"n{number:02}", tor_set=tor_set, replicas=(number % num_replicas,))
        for number, tor_set in enumerate(tor_sets)
    ]


@pytest.mark.parametrize("sizes", [[1, 1], [4, 4], [8, 8, 8, 8], [3, 2, 1], [5, 3, 2], [1] * 7, [6, 1, 1, 1, 1, 1, 1]])
def test_no_node_shares_a_tor_set_with_its_copies_where_none_must(sizes: list[int]) -> None:
    """No set has more than half of the nodes, so that each has its copies elsewhere; each keeps those of one other."""
    nodes = places(sizes)
    tor_set = {place.node: place.tor_set for place in nodes}
    peers = peers_of(nodes)
    assert all(tor_set[node] != tor_set[peer.node] for node, peer in peers.items())
    assert set(Counter(peer.node for peer in peers.values()).values()) == {1}


def test_a_set_with_most_nodes_keeps_some_of_its_own_copies() -> None:
    """5 of 6 nodes on one set: only one can go to the other, and one comes from it; the others are told."""
    peers = peers_of(places([5, 1]))
    assert Counter(peer.shortcoming == "same ToR set" for peer in peers.values()) == {True: 4, False: 2}


def test_replicas_differ_where_they_can() -> None:
    """4 sets of 4 nodes, 2 replicas: another set and another replica for all."""
    nodes = places([4, 4, 4, 4], num_replicas=2)
    replicas = {place.node: place.replicas for place in nodes}
    peers = peers_of(nodes)
    assert all(replicas[node] != replicas[peer.node] for node, peer in peers.items())
    assert {peer.shortcoming for peer in peers.values()} == {""}


def test_what_is_lacking_is_said() -> None:
    """One node, nodes whose switches nobody knows, one replica for all."""
    assert peer_of("a", [Place(node="a", tor_set="t")]).shortcoming == "no other node"
    assert peer_of("a", [Place(node="a"), Place(node="b")]).shortcoming == "ToR sets not known"
    both = [Place(node="a", tor_set="t", replicas=(0,)), Place(node="b", tor_set="u", replicas=(0,))]
    assert peer_of("a", both).shortcoming == "same replicas"


def test_the_order_of_nodes_does_not_matter() -> None:
    """Every node that asks comes to the same answer."""
    nodes = places([3, 3, 2], num_replicas=2)
    assert peers_of(nodes) == peers_of(nodes[::-1])
