"""A link explained: the flows that cross it, who they belong to, and which choices brought them there."""

import numpy as np
import pytest

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.rocev2 import source_port
from fabrictune.topology.ecmp.collisions import CollisionReport, analyze_collisions
from fabrictune.topology.ecmp.link_report import LinkExplanation, explain_link
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import NO_PORT, Network
from fabrictune.topology.placement import Placement, place
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.rank_pairs import neighbour_pairs
from fabrictune.topology.routing import build_network

LAYOUT = ParallelLayout(tp=8, dp=16)


@pytest.fixture(scope="module")
def placement(small_clos: Fabric) -> Placement:
    """Return 8 rings over 16 hosts, every step of which climbs."""
    return place(LAYOUT, small_clos, "interleaved")


@pytest.fixture(scope="module")
def network(small_clos: Fabric, placement: Placement) -> Network:
    """Return the rings' paths."""
    pairs = neighbour_pairs(LAYOUT, ("dp",))
    queue_pairs = make_queue_pairs(placement.nic_R[pairs.source_E], placement.nic_R[pairs.destination_E])
    return build_network(small_clos, queue_pairs, HashSpec())


@pytest.fixture(scope="module")
def report(network: Network) -> CollisionReport:
    """Return the loads of its links."""
    return analyze_collisions(network)


@pytest.fixture(scope="module")
def worst(network: Network, report: CollisionReport, placement: Placement) -> LinkExplanation:
    """Return what crosses the link asked for most."""
    return explain_link(network, report, int(report.overloaded_ports[0]), placements={"": placement})


def test_the_flows_are_those_of_the_report(network: Network, report: CollisionReport, worst: LinkExplanation) -> None:
    """Four flows of 200G on 400G: twice what it carries, and together what the report counts."""
    port = int(report.overloaded_ports[0])
    assert worst.link == network.fabric.link_label(port)
    assert [flow.queue_pair for flow in worst.flows] == report.queue_pairs_on(port).tolist()
    assert sum(flow.demand_bps for flow in worst.flows) == worst.demand_bps == report.demand_bps_P[port]
    assert worst.load_fraction == 2.0
    assert sum(flow.rate_bps for flow in worst.flows) <= worst.rate_bps * (1 + 1e-9)


def test_ranks_and_rails_say_who_meets_whom(worst: LinkExplanation) -> None:
    """One rail's flows meet on its ToR; a rank's ring neighbour is 8 further; a rank's rail is its tensor index."""
    (rail,) = {flow.source_rail for flow in worst.flows}
    for flow in worst.flows:
        (source,), (destination,) = flow.source_ranks, flow.destination_ranks
        assert destination == (source + 8) % 128
        assert source % 8 == rail == flow.destination_rail


def test_numbers_are_those_a_capture_shows(worst: LinkExplanation) -> None:
    """The source port follows from the two queue-pair numbers as the kernel computes it."""
    for flow in worst.flows:
        assert flow.source_port == int(source_port(np.array([flow.source_qpn]), np.array([flow.destination_qpn]))[0])


def test_choices_lead_along_the_path(network: Network, worst: LinkExplanation) -> None:
    """A ToR chooses one of two uplinks, all later hops have one choice; the ports are the path's after the NIC's."""
    fabric = network.fabric
    for flow in worst.flows:
        path = network.epochs[0].port_QDH[flow.queue_pair, 0]
        assert [hop.port for hop in flow.hops] == [fabric.port_label(port) for port in path[1:] if port != NO_PORT]
        assert [hop.num_choices for hop in flow.hops] == [2, 1, 1]
        assert flow.hops[0].port.endswith(f":up{flow.hops[0].choice}")


def test_without_a_placement_no_rank_is_named(network: Network, report: CollisionReport) -> None:
    """Traffic that is no job's has hosts and queue pairs alone."""
    explanation = explain_link(network, report, int(report.overloaded_ports[0]))
    assert {flow.source_ranks for flow in explanation.flows} == {()}


def test_a_link_that_nothing_crosses_has_no_flows(small_clos: Fabric) -> None:
    """Its load is 0."""
    network = build_network(small_clos, make_queue_pairs([0], [8]), HashSpec())
    report = analyze_collisions(network)
    port = int(np.argmin(report.num_flows_P))
    explanation = explain_link(network, report, port)
    assert (explanation.flows, explanation.load_fraction) == ((), 0.0)
