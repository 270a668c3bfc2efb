"""Loads, shares and findings of collisions, worked out by hand on a fabric with one choice."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.records import Severity
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.hpn import HpnSpec
from fabrictune.topology.ecmp.collisions import CollisionReport, analyze_collisions
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import Network, QueuePairs
from fabrictune.topology.placement import place
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network


@pytest.fixture(scope="module")
def thin() -> Fabric:
    """Two ToRs of four hosts at 100G, one uplink of 200G each: everything between them meets, 2:1 oversubscribed."""
    return build_clos(
        ClosSpec(
            num_hosts=8,
            hosts_per_tor_set=4,
            nics_per_host=1,
            tiers=2,
            nic_rate_bps=100_000_000_000,
            uplink_rate_bps=200_000_000_000,
            oversubscription=2,
        )
    )


def analyzed(fabric: Fabric, source: list[int] | IntArray, destination: list[int] | IntArray) -> CollisionReport:
    """Return the report of these queue pairs under the ideal hash."""
    return analyze_collisions(build_network(fabric, make_queue_pairs(source, destination), HashSpec()))


def ring(fabric: Fabric, strategy: str) -> QueuePairs:
    """Return the data-parallel rings of 8 x 16 ranks."""
    layout = ParallelLayout(tp=8, dp=16)
    placement = place(layout, fabric, strategy)
    groups = layout.groups("dp")
    return make_queue_pairs(placement.nic_R[groups].ravel(), placement.nic_R[np.roll(groups, -1, axis=1)].ravel())


def test_four_flows_share_a_thin_uplink(thin: Fabric) -> None:
    """Four flows of 100G on 200G get half of what they ask for, on the way up and on the way down."""
    report = analyzed(thin, [0, 1, 2, 3], [4, 5, 6, 7])
    assert report.throughput_fraction_Q.tolist() == [0.5] * 4
    assert [thin.link_label(int(port)) for port in report.overloaded_ports] == [
        "tor0:up0 -> agg0-0:down0",
        "agg0-0:down1 -> tor1:up0",
    ]
    assert report.demand_bps_P[report.overloaded_ports].tolist() == [400e9, 400e9]


def test_a_full_link_is_not_overloaded(thin: Fabric) -> None:
    """Two flows of 100G fill 200G exactly."""
    report = analyzed(thin, [0, 1], [4, 5])
    assert report.overloaded_ports.tolist() == []
    assert report.mean_throughput_fraction == 1.0


def test_a_billionth_above_full_is_a_rounding_error() -> None:
    """1 Gbps and 1 bps is not overloaded, 1 Gbps and 2 bps is."""
    report = CollisionReport(
        num_flows_P=np.ones(2, np.int64),
        demand_bps_Q=np.zeros(0),
        demand_bps_P=np.array([1e9 + 1, 1e9 + 2]),
        rate_bps_P=np.full(2, 10**9),
        port_QH=np.zeros((0, 1), np.int32),
        throughput_fraction_Q=np.zeros(0),
    )
    assert report.overloaded_ports.tolist() == [1]
    assert replace(report, demand_bps_P=np.array([0.0, 25e7])).worst_load_fraction == 0.25


def test_queue_pairs_of_one_nic_share_its_rate(thin: Fabric) -> None:
    """Three pairs from one NIC ask for a third of 100G each, so that none is short of anything."""
    report = analyzed(thin, [0, 0, 0], [4, 5, 6])
    assert report.throughput_fraction_Q.tolist() == [1.0] * 3
    assert report.demand_bps_P.max() == pytest.approx(100e9)


@pytest.mark.parametrize(("num_flows", "demand_gbps"), [(1, 200.0), (2, 200.0), (4, 100.0)])
def test_a_nic_of_two_ports_has_the_rate_of_both(num_flows: int, demand_gbps: float) -> None:
    """HPN's NIC is 2 x 200G: one flow or two may have a port's rate each, four a quarter of the whole each."""
    pair_of_hosts = HpnSpec(num_hosts=4, hosts_per_tor_set=2, tiers=2, uplinks_per_tor=4, uplinks_per_aggregation=None)
    report = analyzed(build_clos(pair_of_hosts), [0] * num_flows, list(range(16, 16 + num_flows)))
    assert report.demand_bps_Q.tolist() == [demand_gbps * 1e9] * num_flows


def test_the_worst_link_decides(thin: Fabric) -> None:
    """Into one NIC come 3 x 100G: a third each; the fourth flow meets them on the uplink alone, 400G on 200G."""
    report = analyzed(thin, [0, 1, 2, 3], [4, 4, 4, 5])
    assert report.throughput_fraction_Q.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1 / 2])


def test_findings_name_link_flows_and_next_step(thin: Fabric) -> None:
    """The overloaded uplink is an error at twice its rate; the receiver's own link is called what it is."""
    queue_pairs = make_queue_pairs([0, 1, 2, 3], [4, 4, 4, 5])
    report = analyze_collisions(build_network(thin, queue_pairs, HashSpec()))
    uplink, _ = report.check_links(thin, queue_pairs).findings
    (receiver,) = report.check_receivers(thin, queue_pairs).findings
    assert (receiver.id, receiver.severity, receiver.entity) == (
        "ecmp.receiver-overloaded",
        Severity.ERROR,
        "tor1:down0/0 -> host4:nic0",
    )
    assert receiver.actual == "3 flows offer 300 Gbps"
    assert (uplink.id, uplink.entity) == ("ecmp.link-overloaded", "tor0:up0 -> agg0-0:down0")
    assert (uplink.expected, uplink.actual) == ("at most 200 Gbps", "4 flows offer 400 Gbps")
    assert uplink.evidence[3] == "queue pair 3: host3:nic0 to host5:nic0"
    assert "same leaf/rail group" in uplink.next_step


@pytest.mark.parametrize(("declared", "severity"), [([0, 1], Severity.WARNING), ([0], Severity.ERROR)])
def test_flows_of_a_declared_incast_make_no_error_by_themselves(
    thin: Fabric, declared: list[int], severity: Severity
) -> None:
    """Of three flows into a NIC of 100 Gbps, what is not declared counts: 100 Gbps, or 200 Gbps, twice its rate."""
    queue_pairs = make_queue_pairs([0, 1, 2], [4, 4, 4])
    report = analyze_collisions(build_network(thin, queue_pairs, HashSpec()))
    is_declared_Q = np.isin(np.arange(3), declared)
    (receiver,) = report.check_receivers(thin, queue_pairs, is_declared_Q=is_declared_Q).findings
    assert receiver.severity == severity
    assert receiver.actual == f"3 flows offer 300 Gbps, {len(declared)} of them of a declared incast"


def test_three_flows_on_a_double_link_are_a_warning(thin: Fabric) -> None:
    """300G on 200G is short of twice the rate."""
    queue_pairs = make_queue_pairs([0, 1, 2], [4, 5, 6])
    report = analyze_collisions(build_network(thin, queue_pairs, HashSpec()))
    assert [finding.severity for finding in report.check_links(thin, queue_pairs).findings] == [Severity.WARNING] * 2
    assert report.check_receivers(thin, queue_pairs).findings == ()


@pytest.mark.parametrize(("num_flows", "last"), [(8, "queue pair 7: "), (9, "and 1 more queue pairs")])
def test_a_finding_shows_eight_queue_pairs(thin: Fabric, num_flows: int, last: str) -> None:
    """And counts the others."""
    queue_pairs = make_queue_pairs([0, 1, 2, 3, 0, 1, 2, 3, 0][:num_flows], [4, 5, 6, 7, 5, 6, 7, 4, 6][:num_flows])
    report = analyze_collisions(build_network(thin, queue_pairs, HashSpec()))
    uplink = report.check_links(thin, queue_pairs).findings[0]
    assert uplink.actual.startswith(f"{num_flows} flows offer ")
    assert len(uplink.evidence) == num_flows
    assert uplink.evidence[-1].startswith(last)


def test_tables_tell_who_meets_where(thin: Fabric) -> None:
    """Four flows over four links each: 4 + 1 + 1 + 4 loaded ports, and 2 overloaded ones with all four flows."""
    report = analyzed(thin, [0, 1, 2, 3], [4, 5, 6, 7])
    tables = report.tables()
    assert sorted(tables["loads"]["flows"].tolist()) == [1] * 8 + [4] * 2
    assert tables["collisions"]["qp"].tolist() == [0, 1, 2, 3] * 2
    assert sorted(set(tables["collisions"]["port"].tolist())) == sorted(report.overloaded_ports.tolist())
    assert tables["throughput"]["throughput_fraction"].tolist() == [0.5] * 4
    assert [row.tolist() for row in (report.queue_pairs_on(int(port)) for port in report.overloaded_ports)] == [
        [0, 1, 2, 3]
    ] * 2


def test_bad_placement_collides_and_megascales_does_not(small_clos: Fabric) -> None:
    """Interleaved, four flows of each ToR choose among two double uplinks at random; contiguous, one flow climbs."""
    shares = {
        strategy: analyze_collisions(build_network(small_clos, ring(small_clos, strategy), HashSpec()))
        for strategy in ("interleaved", "contiguous")
    }
    assert shares["contiguous"].mean_throughput_fraction == 1.0
    assert len(shares["contiguous"].overloaded_ports) == 0
    assert shares["interleaved"].mean_throughput_fraction < 0.9
    assert len(shares["interleaved"].overloaded_ports) > 20


def test_a_network_without_traffic_has_no_loads(thin: Fabric) -> None:
    """Nothing collides with nothing."""
    network: Network = build_network(thin, make_queue_pairs([], []), HashSpec())
    report = analyze_collisions(network)
    assert report.mean_throughput_fraction == 1.0
    for check in (report.check_links, report.check_receivers):
        assert check(thin, network.queue_pairs).findings == ()
        assert check(thin, network.queue_pairs).checks[0].actual == "highest 0 %"
    assert {len(column) for table in report.tables().values() for column in table.values()} == {0}


def test_every_overloaded_link_is_a_finding(small_clos: Fabric) -> None:
    """Of more than twenty none is left out, the worst come first, and the check has their number."""
    network = build_network(small_clos, queue_pairs := ring(small_clos, "interleaved"), HashSpec())
    report = analyze_collisions(network)
    links, receivers = (check(small_clos, queue_pairs) for check in (report.check_links, report.check_receivers))
    assert len(report.overloaded_ports) > 20
    assert len(links.findings) + len(receivers.findings) == len(report.overloaded_ports)
    assert [check.num_found for check in links.checks] == [len(links.findings)]
    assert links.checks[0].subject.endswith(" loaded link directions to switches")
    entities = [finding.entity for finding in links.findings]
    assert entities == [
        small_clos.link_label(port) for port in report.overloaded_ports if port_to_switch(small_clos, port)
    ]
    assert receivers.checks[0].actual == "highest 100 %"


def port_to_switch(fabric: Fabric, port: int) -> bool:
    """Return whether a link leads to a switch."""
    return bool(fabric.port_nic_P[fabric.port_peer_P[port]] < 0)


def test_a_finding_says_which_parts_meet(thin: Fabric) -> None:
    """Three flows of one job and one of another on the uplink: counted, and named queue pair by queue pair."""
    queue_pairs = make_queue_pairs([0, 1, 2, 3], [4, 5, 6, 7])
    report = analyze_collisions(build_network(thin, queue_pairs, HashSpec()))
    uplink, _ = report.check_links(thin, queue_pairs, part_Q=["b", "a", "a", "a"]).findings
    assert uplink.actual == "4 flows (a: 3, b: 1) offer 400 Gbps"
    assert uplink.evidence[0] == "queue pair 0 of b: host0:nic0 to host4:nic0"
