"""Failed links and switches: which ports they take down, the paths that are left, and who is cut off."""

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError, RouteError
from fabrictune.topology.builders.clos import build_clos
from fabrictune.topology.builders.hpn import HpnSpec
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.failures import failed_ports, follow_failures, reroute
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import NO_PORT, Network
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network

MILLISECOND_PS = 10**9


@pytest.fixture
def network(small_clos: Fabric) -> Network:
    """Return 16 hosts whose NIC 0 each sends to the NIC 0 of the next host but three, in another ToR set."""
    hosts = np.repeat(np.arange(16), 8)
    return build_network(small_clos, make_queue_pairs(hosts * 8, (hosts + 4) % 16 * 8), HashSpec())


def used_nodes(network: Network, epoch: int) -> set[str]:
    """Return the nodes that any packet leaves in an epoch."""
    ports = network.epochs[epoch].port_QDH
    return {network.fabric.node_name_N[node] for node in network.fabric.port_node_P[ports[ports != NO_PORT]]}


def test_a_link_is_down_in_both_directions(small_clos: Fabric) -> None:
    """It is named by the port at either end."""
    down = [small_clos.port_label(port) for port in np.nonzero(failed_ports(small_clos, ["tor0-3:up1"]))[0].tolist()]
    assert sorted(down) == ["agg0-1:down3", "tor0-3:up1"]
    assert (failed_ports(small_clos, ["agg0-1:down3"]) == failed_ports(small_clos, ["tor0-3:up1"])).all()


def test_a_switch_takes_all_its_links_down(small_clos: Fabric) -> None:
    """32 ToRs hang on an aggregation switch of the small fabric; the other one is left."""
    is_failed_P = failed_ports(small_clos, ["agg0-0"])
    assert is_failed_P.sum() == 2 * 32
    assert not is_failed_P[small_clos.port_node_P == small_clos.node_name_N.index("agg0-1")].any()


def test_no_failure_is_none(small_clos: Fabric) -> None:
    """An empty list is a whole fabric."""
    assert not failed_ports(small_clos, []).any()


def test_a_name_that_is_none_is_refused_with_the_nearest(small_clos: Fabric) -> None:
    """A failure of nothing would look like a fabric that does not care."""
    with pytest.raises(InputError, match="fail: unknown node 'agg0-2'\n  did you mean 'agg0-"):
        failed_ports(small_clos, ["agg0-2"])
    with pytest.raises(InputError, match="unknown port of tor0-3 'up7'"):
        failed_ports(small_clos, ["tor0-3:up7"])


def test_paths_after_a_failure_avoid_it_and_those_before_do_not(network: Network) -> None:
    """Both aggregation switches carry the 128 queue pairs until one is gone."""
    later = reroute(network, HashSpec(), ["agg0-0"], start_ps=MILLISECOND_PS)
    assert [epoch.start_ps for epoch in later.epochs] == [0, MILLISECOND_PS]
    assert {"agg0-0", "agg0-1"} <= used_nodes(later, 0)
    assert "agg0-0" not in used_nodes(later, 1)
    assert later.epochs[0] is network.epochs[0]


def test_a_repaired_fabric_routes_as_before(network: Network) -> None:
    """A third epoch without failures has the paths of the first."""
    broken = reroute(network, HashSpec(), ["tor0-0:up0"], start_ps=1)
    repaired = reroute(broken, HashSpec(), [], start_ps=2)
    assert (repaired.epochs[1].port_QDH != repaired.epochs[0].port_QDH).any()
    assert (repaired.epochs[2].port_QDH == repaired.epochs[0].port_QDH).all()


def test_who_is_cut_off_is_named(network: Network) -> None:
    """A ToR of single-port NICs takes those of its rail and set with it."""
    with pytest.raises(RouteError) as raised:
        reroute(network, HashSpec(), ["tor0-0"], start_ps=1)
    assert str(raised.value.mistakes[0]) == (
        "queue pair 0: no path from host0:nic0 to host4:nic0 while tor0-0 is down\n"
        "  allowed: failures that leave every queue pair a path\n"
        "  next: attach NICs to two ToRs, or leave these NICs out of the job"
    )


def test_a_nic_without_traffic_may_be_cut_off(network: Network) -> None:
    """The queue pairs are all on rail 0; the ToR of rail 5 is nothing to them."""
    later = reroute(network, HashSpec(), ["tor0-5", "host0:nic5"], start_ps=1)
    assert (later.epochs[1].port_QDH == later.epochs[0].port_QDH).all()


def test_a_nic_on_two_tors_survives_the_loss_of_one() -> None:
    """In HPN all flows to and from its segment move to the other plane."""
    fabric = build_clos(
        HpnSpec(num_hosts=16, hosts_per_tor_set=4, uplinks_per_tor=2, uplinks_per_aggregation=1),
    )
    sources = np.repeat(np.arange(4) * 8, 8)  # rail 0 of the first segment
    network = build_network(fabric, make_queue_pairs(sources, sources + 64), HashSpec())
    assert {"tor0-0", "tor0-1"} <= used_nodes(network, 0)
    later = reroute(network, HashSpec(), ["tor0-0"], start_ps=1)
    tors = {name for name in used_nodes(later, 1) if name.startswith("tor")}
    assert tors == {"tor0-1", "tor2-1"}


def test_epochs_begin_one_after_another(network: Network) -> None:
    """Two routings cannot be in force at once."""
    with pytest.raises(InputError, match="fail: a start at 0 ps\n  allowed: one after 0 ps"):
        reroute(network, HashSpec(), [], start_ps=0)


def test_paths_follow_failures_after_a_delay(network: Network) -> None:
    """Each state of the ports has its epoch, equal states the same paths, and no change is no epoch."""
    fabric = network.fabric
    down = frozenset(np.nonzero(failed_ports(fabric, ["agg0-0"]))[0].tolist())
    states = [(0, down), (5, down), (10, frozenset[int]()), (20, down)]
    later = follow_failures(network, HashSpec(), states, delay_ps=MILLISECOND_PS)
    assert [epoch.start_ps for epoch in later.epochs] == [0, MILLISECOND_PS, MILLISECOND_PS + 10, MILLISECOND_PS + 20]
    assert "agg0-0" not in used_nodes(later, 1)
    assert later.epochs[2].port_QDH is network.epochs[0].port_QDH
    assert later.epochs[3].port_QDH is later.epochs[1].port_QDH


def test_who_is_cut_off_for_a_while_has_no_path(network: Network) -> None:
    """With both aggregation switches gone no queue pair reaches another ToR set."""
    down = frozenset(np.nonzero(failed_ports(network.fabric, ["agg0-0", "agg0-1"]))[0].tolist())
    later = follow_failures(network, HashSpec(), [(0, down)], delay_ps=1)
    assert (later.epochs[1].port_QDH == NO_PORT).all()
