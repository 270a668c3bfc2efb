"""Faults in a run: what a link, a port or a switch costs while it fails, and what is made of it afterwards."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.faults import BitErrors, Fault, Flap, LinkDown, SlowPort, SwitchDown
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.faults.timeline import FaultTimeline, changes, down_ports, fault_intervals
from fabrictune.netsim.memory import estimated_bytes
from fabrictune.netsim.packet import run
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.failures import follow_failures
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import Network
from tests.netsim.conftest import Rows, compiled, network_of, one_switch, traffic_of

RATE_BPS = 100 * 10**9
FRAME_PS = 4178 * 80  # a full packet at 100 Gbps
ONE_SWITCH = one_switch(3)
FAT_TREE = build_fat_tree(FatTreeSpec(radix=4, link_rate_bps=RATE_BPS, cable_mm=2_000))
DUAL_TOR = build_clos(
    ClosSpec(
        num_hosts=4,
        hosts_per_tor_set=2,
        nics_per_host=1,
        ports_per_nic=2,
        tiers=2,
        nic_rate_bps=RATE_BPS,
        uplink_rate_bps=RATE_BPS,
        downlink_split=1,
        uplinks_per_tor=2,
        host_cable_mm=2_000,
        tor_cable_mm=2_000,
    )
)
CONFIG = PacketConfig(ecn=EcnConfig(enabled=False), transport=TransportConfig(timeout_ns=100_000, retries=3))


def simulate(
    network: Network, rows: Rows, faults: Sequence[Fault], config: PacketConfig = CONFIG, *, delay_ps: int | None = None
) -> RunRecord:
    """Return the record of a run, with new paths `delay_ps` after every failure and repair if that is given."""
    if delay_ps is not None:
        states = down_ports(changes(network.fabric, fault_intervals(network.fabric, faults, config)))
        network = follow_failures(network, HashSpec(), states, delay_ps=delay_ps)
    return run(
        network, traffic_of(rows), compiled("none"), config, faults=FaultTimeline.of(network.fabric, faults, config)
    )


def drops(record: RunRecord) -> dict[str, int]:
    """Return the packets lost by cause."""
    table = record.tables["drops"]
    return {cause: int(table["packets"][table["cause"] == cause].sum()) for cause in sorted(set(table["cause"]))}


def uplink(network: Network, qp: int = 0) -> str:
    """Return the name of the first link between switches on a queue pair's path."""
    return network.fabric.port_label(int(network.epochs[0].port_QDH[qp, 0, 1]))


def test_a_link_that_goes_down_loses_what_is_on_it_and_the_timeout_mends_it() -> None:
    """One packet, alone on a wire of 10 ns when that is cut, is sent again after the timeout, and no sooner."""
    network = network_of(ONE_SWITCH, [(0, 1)])
    cut = LinkDown(link="host0:nic0", at_ns=FRAME_PS // 1000 + 5, until_ns=10_000)
    record = simulate(network, [{"bytes": 4096}], [cut])
    healthy = simulate(network, [{"bytes": 4096}], [])
    late_ps = record.tables["transfers"]["finish_ps"] - healthy.tables["transfers"]["finish_ps"]
    assert late_ps.tolist() == [100_000 * 1000]
    assert drops(record) == {"link down": 1}
    assert record.tables["transfers"]["packets_retransmitted"].tolist() == [1]
    assert "drops" not in healthy.tables


def test_a_packet_that_has_arrived_is_safe() -> None:
    """A frame of 334.24 ns on a wire of 10 ns: a cut at 344 ns loses it, one at 345 ns only its acknowledgement."""
    network = network_of(ONE_SWITCH, [(0, 1)])
    finish_ps = []
    for at_ns in (344, 345):
        record = simulate(network, [{"bytes": 4096}], [LinkDown(link="host0:nic0", at_ns=at_ns, until_ns=10_000)])
        assert drops(record) == {"link down": 1}
        finish_ps += record.tables["transfers"]["finish_ps"].tolist()
    assert finish_ps == [100_000_000 + 2 * FRAME_PS + 20_000, 2 * FRAME_PS + 20_000]


def test_what_is_queued_to_a_dead_link_is_lost_and_its_buffer_freed() -> None:
    """Two NICs feed one: after 100 frames of each half wait in the switch, whose PFC lets go of what it loses."""
    network = network_of(ONE_SWITCH, [(0, 2), (1, 2)])
    config = replace(CONFIG, pfc=PfcConfig(buffer_bytes=300_000, headroom_bytes=100_000))
    rows = [{"bytes": 4096 * 200, "qp": qp} for qp in (0, 1)]
    cut = LinkDown(link="host2:nic0", at_ns=100 * FRAME_PS // 1000, until_ns=60_000)
    record = simulate(network, rows, [cut], config)
    assert record.run["outcome"] == "finished"
    assert drops(record)["link down"] > 2 * 45
    assert record.tables["ports"]["pauses"].sum() > 0  # of the senders, before and after


def test_a_pause_does_not_outlive_its_link() -> None:
    """The receiver's ToR port pauses its senders; one of these links flaps while it is paused, and sends again."""
    network = network_of(ONE_SWITCH, [(0, 2), (1, 2)])
    config = replace(CONFIG, pfc=PfcConfig(buffer_bytes=300_000, headroom_bytes=100_000))
    rows = [{"bytes": 4096 * 400, "qp": qp} for qp in (0, 1)]
    record = simulate(
        network, rows, [Flap(link="host0:nic0", at_ns=40_000, down_ns=500, period_ns=1_000, count=40)], config
    )
    assert record.run["outcome"] == "finished"
    ports = record.tables["ports"]
    assert ports["pauses"].sum() > 0
    assert (ports["paused_ps"] < record.run["end_ps"]).all()


def test_errors_are_on_both_directions_of_their_link_and_nowhere_else() -> None:
    """A tenth of what each direction carries is lost, within four standard deviations."""
    network = network_of(ONE_SWITCH, [(0, 1)])
    record = simulate(network, [{"bytes": 4096 * 1000}], [BitErrors(link="host0:nic0", at_ns=0, loss_fraction=0.1)])
    dropped, sent = (record.tables["ports"][name] for name in ("dropped_packets", "tx_packets"))
    ends = [0, int(ONE_SWITCH.port_peer_P[0])]
    assert np.nonzero(dropped)[0].tolist() == sorted(ends)
    for port in ends:
        assert dropped[port] / sent[port] == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / sent[port]))
    assert drops(record) == {"bit error": dropped.sum()}


def test_a_bit_error_rate_is_a_loss_of_packets_by_their_size() -> None:
    """At 1e-6 a packet of 4,178 B on the wire is lost with 1 - (1 - 1e-6)**33,424 = 3.29 %."""
    network = network_of(ONE_SWITCH, [(0, 1)])
    record = simulate(network, [{"bytes": 4096 * 20_000}], [BitErrors(link="host0:nic0", at_ns=0, ber_fraction=1e-6)])
    sent, lost = (int(record.tables["ports"][name][0]) for name in ("data_packets", "dropped_packets"))
    assert lost / sent == pytest.approx(-np.expm1(4178 * 8 * np.log1p(-1e-6)), abs=4 * np.sqrt(0.033 / sent))


def test_a_slow_port_sends_at_its_rate_and_recovers() -> None:
    """1,000 frames at 100 Gbps take 334.24 us; 10 us of them at a quarter of the rate cost 7.5 us more."""
    network = network_of(ONE_SWITCH, [(0, 1)])
    slow = SlowPort(port="tor0:down1", rate_bps=RATE_BPS // 4, at_ns=50_000, until_ns=60_000)
    times_ps = [
        int(simulate(network, [{"bytes": 4096 * 1000}], faults).tables["transfers"]["finish_ps"][0])
        for faults in ([], [slow])
    ]
    assert times_ps[1] - times_ps[0] == pytest.approx(7_500_000, abs=3 * FRAME_PS)


def test_paths_lead_round_a_failed_switch_once_routing_has_converged() -> None:
    """Until then its packets are lost; then nothing is, and after the repair the first paths are taken again."""
    network = network_of(FAT_TREE, [(0, 15)])
    port = int(network.epochs[0].port_QDH[0, 0, 1])
    switch = FAT_TREE.node_name_N[FAT_TREE.port_node_P[FAT_TREE.port_peer_P[port]]]
    fault = SwitchDown(switch=switch, at_ns=100_000, until_ns=1_000_000)
    rows = [{"bytes": 4096 * 4000}]
    record = simulate(network, rows, [fault], delay_ps=50_000_000)
    assert record.run["outcome"] == "finished"
    faults = record.tables["faults"]
    assert faults["description"].tolist() == [f"switch_down {switch}"]
    # Goodput is 98 % of 100 Gbps, less the 50 us until a packet on the new path shows the receiver what is missing.
    assert faults["goodput_before_bps"][0] == pytest.approx(0.98 * RATE_BPS, rel=0.03)
    assert faults["goodput_during_bps"][0] == pytest.approx(0.98 * RATE_BPS * (900 - 50) / 900, rel=0.01)
    assert set(drops(record)) == {"link down"}
    # About 50 us of packets at a frame each 334 ns were sent into the dead switch, or were on their way then.
    assert drops(record)["link down"] < 100_000_000 / FRAME_PS


def test_a_queue_pair_without_any_way_loses_its_packets_at_the_switch() -> None:
    """A host hangs on one ToR; when that fails the network knows no route, and the budget of 400 us ends the pair."""
    network = network_of(FAT_TREE, [(0, 15), (4, 8)])
    rows = [{"bytes": 4096 * 2000}, {"bytes": 4096 * 2000, "qp": 1}]
    last = int(network.epochs[0].port_QDH[0, 1, 1])
    tor = FAT_TREE.node_name_N[FAT_TREE.port_node_P[last]]
    record = simulate(network, rows, [SwitchDown(switch=tor, at_ns=50_000)], delay_ps=20_000_000)
    assert record.tables["aborts"]["qp"].tolist() == [0]
    assert drops(record)["no route"] > 0
    transfers = record.tables["transfers"]
    assert (transfers["acknowledged_ps"] > 0).tolist() == [False, True]
    (finding,) = [finding for finding in record.findings if finding.id == "netsim.aborted-queue-pairs"]
    assert finding.entity == f"faults[0] switch_down {tor}"
    assert finding.expected == "progress within the retry budget of 400 us"
    assert finding.actual.startswith("1 QP failed with retry-exceeded (IBV_WC_RETRY_EXC_ERR) 4")
    assert " us after switch down; first QP 0 (host0:nic0 to host15:nic0) at 4" in finding.actual
    assert not [finding for finding in record.findings if finding.id == "netsim.dropped-packets"]


def test_a_nic_with_two_ports_moves_its_queue_pairs_to_the_other() -> None:
    """The link from the NIC fails; from the next epoch on the queue pair leaves through the second port."""
    network = network_of(DUAL_TOR, [(0, 3), (0, 2)])
    first = int(network.epochs[0].port_QDH[0, 0, 0])
    rows = [{"bytes": 4096 * 1000, "qp": qp} for qp in (0, 1)]
    record = simulate(network, rows, [LinkDown(link=DUAL_TOR.port_label(first), at_ns=20_000)], delay_ps=30_000_000)
    assert record.run["outcome"] == "finished"
    (second,) = [port for port in np.nonzero(DUAL_TOR.port_nic_P == 0)[0] if port != first]
    assert record.tables["ports"]["data_packets"][second] > 900


def test_a_thousand_flaps_store_their_paths_once() -> None:
    """2,000 epochs, two sets of paths: the table of paths grows by what one failure changes."""
    network = network_of(FAT_TREE, [(source, 15 - source) for source in range(8)])
    flap = Flap(link=uplink(network), at_ns=1_000, down_ns=500, period_ns=1_000, count=1000)
    held = fault_intervals(FAT_TREE, [flap], CONFIG)
    states = down_ports(changes(FAT_TREE, held))
    later = follow_failures(network, HashSpec(), states, delay_ps=1)
    plain, flapping = (
        make_engine_inputs(one, traffic_of([{"bytes": 1}]), compiled("none"), CONFIG, seed=0, probe=None, faults=held)
        for one in (network, later)
    )
    assert len(flapping["epoch_time"]) == 2000
    assert len(flapping["path"]) <= 2 * len(plain["path"])
    assert estimated_bytes(flapping) < estimated_bytes(plain) + 10**5


def test_faults_draw_from_streams_of_their_own() -> None:
    """Bit errors on a link that nothing takes move no other draw: the run is the same to the byte."""
    network = network_of(ONE_SWITCH, [(0, 1)])
    config = replace(CONFIG, loss_fraction=0.05)
    idle = BitErrors(link="host2:nic0", at_ns=0, loss_fraction=0.5)
    with_fault, without = (simulate(network, [{"bytes": 4096 * 300}], faults, config) for faults in ([idle], []))
    for name in ("transfers", "ports"):
        for column, values in without.tables[name].items():
            assert np.array_equal(values, with_fault.tables[name][column]), column


def test_a_fault_that_the_run_did_not_live_to_see_is_a_finding() -> None:
    """Otherwise a run in which nothing happened would look like one that withstood it."""
    network = network_of(ONE_SWITCH, [(0, 1)])
    record = simulate(network, [{"bytes": 1}], [LinkDown(link="host0:nic0", at_ns=10**6)])
    (finding,) = record.findings
    assert (finding.id, finding.entity) == (
        "netsim.fault-never-began",
        "faults[0] link_down host0:nic0 -> tor0:down0",
    )
    assert record.tables["faults"]["goodput_during_bps"].tolist() == [-1]


FLAWED: list[tuple[list[Fault], str]] = [
    (
        [LinkDown(link="host7:nic0", at_ns=0)],
        "faults.0.link: unknown node 'host7'\n  did you mean 'host2'?",
    ),
    ([LinkDown(link="tor0:dwn1", at_ns=0)], "faults.0.link: unknown port of tor0 'dwn1'\n  did you mean 'down1'?"),
    ([SwitchDown(switch="host1", at_ns=0)], "faults.0.switch: the host 'host1'\n  allowed: a switch"),
    (
        [SlowPort(port="tor0:down1", at_ns=0, rate_bps=RATE_BPS)],
        "faults.0.rate: 100000000000 bps\n  allowed: below the port's own 100000000000 bps",
    ),
    (
        [LinkDown(link="host0:nic0", at_ns=2_000_000)],
        "faults.0.at: 2 ms\n  allowed: before the run's time limit, 1 ms",
    ),
    (
        [LinkDown(link="host0:nic0", at_ns=10_000), Flap(link="tor0:down0", at_ns=20_000, down_ns=5)],
        "faults.1: holds host0:nic0 -> tor0:down0 at 20 us, as faults[0] does\n"
        "  allowed: one fault of a kind on a port at a time",
    ),
]


@pytest.mark.parametrize(("faults", "message"), FLAWED)
def test_a_fault_that_cannot_be_is_refused(faults: list[Fault], message: str) -> None:
    """With its place in the list, what was found and the nearest name there is."""
    with pytest.raises(InputError) as refused:
        fault_intervals(ONE_SWITCH, faults, replace(CONFIG, time_limit_ns=1_000_000))
    assert str(refused.value).startswith(message)


def test_all_mistakes_of_a_list_are_reported_at_once() -> None:
    """The second would otherwise wait for the next attempt."""
    with pytest.raises(InputError) as refused:
        fault_intervals(ONE_SWITCH, [LinkDown(link="x:y", at_ns=0), SwitchDown(switch="z", at_ns=0)], CONFIG)
    assert len(refused.value.mistakes) == 2


def test_a_link_may_fail_with_its_switch() -> None:
    """It is down while either holds it, and comes up when both have let go."""
    faults: list[Fault] = [
        LinkDown(link="host0:nic0", at_ns=10, until_ns=30),
        SwitchDown(switch="tor0", at_ns=20, until_ns=40),
    ]
    found = list(down_ports(changes(ONE_SWITCH, fault_intervals(ONE_SWITCH, faults, CONFIG))))
    assert [(time_ps, len(down)) for time_ps, down in found] == [(10_000, 2), (20_000, 8), (40_000, 0)]


@pytest.mark.parametrize(
    ("spec", "settings", "message"),
    [
        (LinkDown, {"link": "a:b", "at_ns": 5, "until_ns": 5}, "until: 5 ns\n  allowed: after 5 ns"),
        (BitErrors, {"link": "a:b", "at_ns": 0}, "not one rate of errors\n  allowed: one of ber and loss"),
        (BitErrors, {"link": "a:b", "at_ns": 0, "loss_fraction": 0.0}, "loss: 0.0\n  allowed: above 0, up to 1"),
        (Flap, {"link": "a:b", "at_ns": 0, "down_ns": 5, "count": 2}, "period: none"),
        (Flap, {"link": "a:b", "at_ns": 0, "down_ns": 5, "count": 2, "period_ns": 5}, "period: 5 ns"),
        (Flap, {"link": "a:b", "at_ns": 0, "down_ns": 5, "count": 9, "period_ns": 10**14}, "count: an end at 8000000"),
        (Flap, {"link": "a:b", "at_ns": 0, "down_ns": 5, "count": 10**6}, "count: 1000000\n  allowed: 1 to 10000"),
    ],
)
def test_settings_that_make_no_fault_are_refused(spec: Any, settings: dict[str, Any], message: str) -> None:
    """Where they are written, before any fabric is known."""
    with pytest.raises(InputError) as refused:
        spec(**settings)
    assert message in str(refused.value)


def test_switches_that_spray_leave_out_what_is_down_once_routing_has_converged() -> None:
    """Of the two ways up one is dead: without new next hops half of all packets are lost, with them those of 50 us."""
    network = network_of(FAT_TREE, [(0, 15)])
    config = replace(
        CONFIG,
        path_choice=PathChoiceConfig(mode="spray", spray="round-robin"),
        transport=TransportConfig(reliability="selective-repeat", timeout_ns=100_000, retries=7),
    )
    fault = SwitchDown(switch="agg0-0", at_ns=100_000)
    rows = [{"bytes": 4096 * 3000}]
    converged, blind = (simulate(network, rows, [fault], config, delay_ps=delay_ps) for delay_ps in (50_000_000, None))
    lost_in_50_us = 50_000_000 / FRAME_PS / 2
    assert converged.run["outcome"] == "finished"
    assert converged.run["packets"]["data_dropped"] == pytest.approx(lost_in_50_us, abs=3)
    assert blind.run["packets"]["data_dropped"] > 5 * lost_in_50_us


def test_faults_beyond_the_tenth_are_counted() -> None:
    """Twelve faults begin too late; ten are named, and a reader knows of the other two."""
    network = network_of(ONE_SWITCH, [(0, 1)])
    begins_ns = range(10**6, 10**6 + 12_000, 1_000)
    late = [LinkDown(link="host0:nic0", at_ns=begin_ns, until_ns=begin_ns + 500) for begin_ns in begins_ns]
    (finding,) = simulate(network, [{"bytes": 1}], late).findings
    assert finding.entity.endswith("faults[9] link_down host0:nic0 -> tor0:down0 and 2 more")
