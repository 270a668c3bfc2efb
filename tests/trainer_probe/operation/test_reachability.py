"""Which nodes answer: an answer needs no listener, and silence is reported only of a node that answered before."""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing

import pytest

from fabrictune.trainer_probe.operation.reachability import MAX_PEERS, Reachability, answering
from tests.chaos import network as namespaces


def test_a_refused_connection_is_an_answer() -> None:
    """Every loopback address is of this machine; no process listens."""
    assert answering({"a": "127.0.0.1", "b": "127.0.0.2"}) == {"a", "b"}
    assert answering({}) == set()


@pytest.mark.skipif(bool(namespaces.lack()), reason=namespaces.lack())
def test_a_node_behind_a_cut_link_does_not_answer() -> None:
    """Real namespaces behind a bridge; the driver's still answers."""
    with closing(namespaces.Network(f"reach-{os.getpid()}", ("a", "b"))) as network:
        network.cut("a", "b")
        addresses = {name: network.address(name) for name in ("b", namespaces.HUB)}
        code = f"from {answering.__module__} import answering; print(*answering({addresses}))"
        told = subprocess.run([*network.entered("a"), sys.executable, "-c", code], capture_output=True, check=True)
    assert told.stdout.split() == [namespaces.HUB.encode()]


class Network:
    """Nodes that answer or do not."""

    def __init__(self, *names: str) -> None:
        self.up = set(names)
        self.tried: list[str] = []

    def probe(self, addresses: Mapping[str, str]) -> set[str]:
        """Return who answers."""
        self.tried = list(addresses)
        return self.up & set(addresses)


def watch(network: Network, *names: str) -> Reachability:
    """Return the trials of node b, whose thread has ended."""
    reachability = Reachability("b", network.probe)
    reachability.watch(dict.fromkeys(names, "127.0.0.1"))
    reachability.close()
    return reachability


def test_two_misses_after_an_answer_are_reported_until_the_next_answer() -> None:
    """One may be a busy machine's."""
    network = Network("a", "c")
    reachability = watch(network, "a", "b", "c")
    reachability.try_all()
    network.up = {"a"}
    reachability.try_all()
    assert reachability.unreachable() == ()
    reachability.try_all()
    assert reachability.unreachable() == ("c",)
    network.up = {"a", "c"}
    reachability.try_all()
    assert reachability.unreachable() == ()


def test_a_node_that_never_answered_is_not_reported() -> None:
    """A firewall drops what it does not know."""
    network = Network("a")
    reachability = watch(network, "a", "b", "c")
    for _ in range(4):
        reachability.try_all()
    assert reachability.unreachable() == ()


def test_each_node_tries_those_after_it() -> None:
    """Itself left out, and never more than the limit, in a ring."""
    names = [f"n{number:02d}" for number in range(MAX_PEERS + 4)]
    network = Network(*names)
    reachability = Reachability(names[-2], network.probe)
    reachability.watch(dict.fromkeys(names, "127.0.0.1"))
    reachability.close()
    reachability.try_all()
    assert network.tried == [names[-1], *names[: MAX_PEERS - 1]]
