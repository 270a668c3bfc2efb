"""Links and nodes by the names people give them, and what is said where there is none of that name."""

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.lookup import find_node, find_port


def test_a_link_goes_by_the_port_packets_leave_through(small_clos: Fabric) -> None:
    """`node:port` alone, or as reports write a link, arrow and far end included."""
    port = find_port(small_clos, "tor0-5:up0", where="LINK")
    assert small_clos.link_label(port) == "tor0-5:up0 -> agg0-0:down5"
    assert find_port(small_clos, "tor0-5:up0 -> agg0-0:down5", where="LINK") == port
    assert find_port(small_clos, "agg0-0:down5", where="LINK") == small_clos.port_peer_P[port]


def test_every_port_is_found_by_its_label(small_clos: Fabric) -> None:
    """Also split ones, whose names have a slash."""
    for port in range(small_clos.num_ports):
        assert find_port(small_clos, small_clos.port_label(port), where="LINK") == port


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tr0-5:up0", "LINK: unknown node 'tr0-5'\n  did you mean 'tor0-5'?\n"),
        ("tor0-5:up7", "LINK: unknown port of tor0-5 'up7'\n  did you mean 'up1'?\n"),
        ("tor0-5", "LINK: 'tor0-5'\n  allowed: NODE:PORT, the port that packets leave through, such as tor0:up0\n"),
    ],
)
def test_an_unknown_link_gets_the_nearest_guess(small_clos: Fabric, name: str, message: str) -> None:
    """Node first, then the node's ports; and where to find all links."""
    with pytest.raises(InputError) as raised:
        find_port(small_clos, name, where="LINK")
    assert str(raised.value) == message + "  next: `fabrictune topo show FILE --links` lists the links of a fabric"


def test_a_wrong_far_end_is_not_overlooked(small_clos: Fabric) -> None:
    """The arrow names a cable there is not: the one there is stands beside it."""
    with pytest.raises(InputError) as raised:
        find_port(small_clos, "tor0-5:up0 -> agg0-1:down5", where="LINK")
    assert str(raised.value) == "LINK: 'tor0-5:up0 -> agg0-1:down5'\n  allowed: tor0-5:up0 -> agg0-0:down5"


def test_a_node_goes_by_its_name(small_clos: Fabric) -> None:
    """The place of the mistake is the caller's."""
    assert small_clos.node_name_N[find_node(small_clos, "agg0-1", where="fail")] == "agg0-1"
    with pytest.raises(InputError, match="fail: unknown node 'agg0-2'"):
        find_node(small_clos, "agg0-2", where="fail")
