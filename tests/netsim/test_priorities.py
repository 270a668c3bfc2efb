"""Priorities, buffers and pauses on runs that can be worked out by hand; 100 Gb/s is 80 ps a byte, a cable 10 ns."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fabrictune.conformance.netsim.deadlock import ring_network
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import TrafficTrace
from fabrictune.netsim import _engine
from fabrictune.netsim.config.faults import LinkDown
from fabrictune.netsim.config.nic import NicConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.queues import BufferConfig, PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig, WatchdogConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.engine_inputs.ports import MAX_PORT_DELAY_PS
from fabrictune.netsim.engine_inputs.priorities import pause_patience_ps
from fabrictune.netsim.faults.timeline import FaultTimeline
from fabrictune.netsim.memory import COPIES, estimated_bytes
from fabrictune.netsim.packet import make_simulation, run
from fabrictune.netsim.reference.engine import ReferenceEngine
from fabrictune.netsim.workloads.table import one_message_each
from fabrictune.topology.network import Network
from tests.netsim.conftest import compiled, funnel, network_of, one_switch, traffic_of
from tests.netsim.scenarios import LAWS

LOW, HIGH = 2, 6
FRAME_PS, ACK_PS, PAUSE_PS, CABLE_PS = 80_000, 8_000, 6_720, 10_000
BARE = PacketConfig(mtu_bytes=1000, wire_overhead_bytes=0, ack_bytes=100, ecn=EcnConfig(enabled=False))


def configured(*rules: PriorityConfig, **settings: Any) -> PacketConfig:
    """Return priorities without marking; settings of the whole are passed on."""
    queues = QueuesConfig(priorities=rules, acknowledgements=settings.pop("acknowledgements", None))
    return replace(BARE, queues=queues, **settings)


def simulate(
    pairs: list[tuple[int, int]], priorities: list[int], rows: list[dict[str, Any]], config: PacketConfig
) -> RunRecord:
    """Return the record of rows of traffic between hosts under one switch."""
    network = network_of(one_switch(1 + max(max(pair) for pair in pairs)), pairs)
    queue_pairs = replace(network.queue_pairs, priority_Q=np.array(priorities))
    return run(replace(network, queue_pairs=queue_pairs), traffic_of(rows), compiled("none"), config)


def queue(record: RunRecord, name: str, priority: int) -> np.ndarray:
    """Return a column of the queues of one priority, by port."""
    queues = record.tables["queues"]
    return np.asarray(queues[name][queues["priority"] == priority])


def test_a_higher_strict_priority_waits_for_one_frame_at_most() -> None:
    """Ten frames of either meet at host 2: the urgent ones pass, behind the one ordinary frame that came as early."""
    config = configured(PriorityConfig(priority=LOW), PriorityConfig(priority=HIGH))
    rows = [{"bytes": 10_000}, {"bytes": 10_000, "qp": 1}]
    record = simulate([(0, 2), (1, 2)], [LOW, HIGH], rows, config)
    latency = FRAME_PS + 2 * CABLE_PS
    assert record.tables["transfers"]["finish_ps"].tolist() == [20 * FRAME_PS + latency, 11 * FRAME_PS + latency]


def test_a_nic_shares_itself_by_weights() -> None:
    """Weights 3 and 1: of the frames that leave until the heavier pair's 60 are gone, 20 are the lighter one's."""
    config = configured(PriorityConfig(priority=LOW, weight=1), PriorityConfig(priority=HIGH, weight=3))
    rows = [{"bytes": 60_000}, {"bytes": 60_000, "qp": 1}]
    record = simulate([(0, 1), (0, 1)], [LOW, HIGH], rows, config)
    finish = record.tables["transfers"]["finish_ps"]
    assert abs(int(finish[1]) - 80 * FRAME_PS) <= 4 * FRAME_PS
    assert finish[0] == 120 * FRAME_PS + FRAME_PS + 2 * CABLE_PS


def test_acknowledgements_in_a_lower_priority_wait_for_data() -> None:
    """Host 1 answers when its own 100 frames are gone; at the switch, the last of them still goes first."""
    config = configured(PriorityConfig(priority=LOW), PriorityConfig(priority=HIGH), acknowledgements=LOW)
    record = simulate([(0, 1), (1, 0)], [HIGH, HIGH], [{"bytes": 1000}, {"bytes": 100_000, "qp": 1}], config)
    acknowledged_ps = 100 * FRAME_PS + CABLE_PS + FRAME_PS + ACK_PS + CABLE_PS
    assert record.tables["transfers"]["acknowledged_ps"][0] == acknowledged_ps


def test_a_lossy_queue_drops_what_goes_beyond_its_threshold() -> None:
    """Two senders of 20 frames: one leaves as two come, and of 5,000 B five frames may wait; the rest is sent again."""
    config = configured(PriorityConfig(priority=LOW), pfc=PfcConfig(buffer_bytes=5_000, xoff_bytes=1_000))
    rows = [{"bytes": 20_000}, {"bytes": 20_000, "qp": 1}]
    record = simulate([(0, 2), (1, 2)], [LOW, LOW], rows, config)
    assert queue(record, "max_queue_bytes", LOW).max() == 5_000
    assert queue(record, "dropped_packets", LOW).sum() == record.tables["ports"]["dropped_packets"].sum() > 0
    assert record.run["outcome"] == "finished"


def test_only_the_priority_that_fills_its_buffer_is_paused() -> None:
    """Both leave host 0: one for the crowded host 2, one for host 1, which is to get its frames as if alone."""
    rules = (PriorityConfig(priority=number, weight=1, lossless=True) for number in (LOW, HIGH))
    config = configured(*rules, pfc=PfcConfig(buffer_bytes=100_000, xoff_bytes=5_000, response_ns=0))
    rows = [{"bytes": 100_000, "qp": qp} for qp in range(3)]
    record = simulate([(0, 2), (3, 2), (0, 1)], [LOW, LOW, HIGH], rows, config)
    assert queue(record, "pauses", LOW).max() > 0
    assert queue(record, "pauses", HIGH).max() == 0
    assert queue(record, "dropped_packets", LOW).sum() == 0
    assert record.tables["ports"]["dropped_packets"].sum() == 0


@pytest.mark.parametrize(("free_bytes", "num_pauses"), [(9_000, 0), (8_998, 1)])
def test_a_sender_is_paused_when_one_more_full_frame_has_no_room(free_bytes: int, num_pauses: int) -> None:
    """Five frames come while the first leaves; alpha 1 leaves four that wait 9,000 - 2 x 4,000 B: a frame, or less."""
    config = configured(PriorityConfig(priority=LOW, lossless=True), buffer=BufferConfig(size_bytes=1_000_000))
    network, law = network_of(funnel(10**10), [(0, 1)]), compiled("none")
    network = replace(network, queue_pairs=replace(network.queue_pairs, priority_Q=np.array([LOW])))
    inputs = make_engine_inputs(network, traffic_of([{"bytes": 5_000}]), law, config, seed=0, probe=None)
    free = np.full_like(inputs.arrays["priority_shared_buffer"], free_bytes)
    simulation = make_simulation(replace(inputs, arrays={**inputs.arrays, "priority_shared_buffer": free}), law)
    simulation.advance(10**6)
    assert simulation.queue_columns()["pauses"].sum() == num_pauses


def test_a_pause_without_refresh_runs_out() -> None:
    """40 quanta of 512 bits are 205 ns of 100 Gb/s: the sender goes on though it was never resumed."""
    config = configured(
        PriorityConfig(priority=LOW, lossless=True),
        pfc=PfcConfig(buffer_bytes=100_000, xoff_bytes=3_000, xon_bytes=0, quanta=40, refresh=False, response_ns=0),
    )
    record = simulate([(0, 2), (1, 2)], [LOW, LOW], [{"bytes": 20_000}, {"bytes": 20_000, "qp": 1}], config)
    paused = queue(record, "paused_ps", LOW)
    assert set(paused[paused > 0].tolist()) == {40 * 64 * 80}


def test_pause_frames_take_their_time_on_the_wire() -> None:
    """Host 1 sends to host 2 and gets from it: its frames wait behind the 84 B with which the switch pauses it."""
    config = configured(
        PriorityConfig(priority=LOW, lossless=True),
        pfc=PfcConfig(buffer_bytes=100_000, xoff_bytes=1_000, xon_bytes=0, response_ns=0),
    )
    rows = [{"bytes": 2_000}, {"bytes": 2_000, "qp": 1}, {"bytes": 1000, "qp": 2, "start_ps": 1}]
    record = simulate([(0, 2), (1, 2), (3, 1)], [LOW] * 3, rows, config)
    # All three first frames reach the switch within a picosecond; its pauses leave first, then host 3's frame.
    assert record.tables["transfers"]["finish_ps"][2] == 1 + 2 * (FRAME_PS + CABLE_PS) + PAUSE_PS - 1


def test_a_list_of_data_and_control_gives_the_run_without_a_list() -> None:
    """Listing priorities changes no physics: pauses begin and end at the same times, and frames take the same wire."""
    pfc = PfcConfig(buffer_bytes=100_000, xoff_bytes=9_000, xon_bytes=4_000, response_ns=0)
    ecn = EcnConfig(kmin_bytes=3_000, kmax_bytes=20_000)
    listed = QueuesConfig(
        priorities=(PriorityConfig(priority=LOW, lossless=True), PriorityConfig(priority=HIGH)),
        acknowledgements=HIGH,
        cnp=HIGH,
    )
    rows = [{"bytes": 300_000, "qp": pair, "start_ps": pair} for pair in range(6)]
    pairs = [(0, 3), (1, 3), (2, 3), (3, 0), (4, 1), (5, 2)]
    plain, priorities = (
        simulate(pairs, [LOW] * 6, rows, replace(BARE, pfc=pfc, ecn=ecn, queues=queues))
        for queues in (QueuesConfig(), listed)
    )
    ports, transfers = priorities.tables["ports"], priorities.tables["transfers"]
    assert ports["pauses"].sum() > 10
    assert ports["ecn_marked_packets"].sum() > 10
    for name, column in plain.tables["transfers"].items():
        np.testing.assert_array_equal(transfers[name], column, err_msg=name)
    for name in ("tx_bytes", "tx_packets", "dropped_packets", "ecn_marked_packets", "pauses", "paused_ps"):
        np.testing.assert_array_equal(ports[name], plain.tables["ports"][name], err_msg=name)


def test_one_lossless_priority_gives_the_run_with_acknowledgements_in_the_data_class() -> None:
    """Both queue models have acknowledgements wait, take buffer and be paused alike."""
    pfc = PfcConfig(buffer_bytes=100_000, xoff_bytes=9_000, xon_bytes=4_000, response_ns=0)
    rows = [{"bytes": 300_000, "qp": pair, "start_ps": pair} for pair in range(6)]
    pairs = [(0, 3), (1, 3), (2, 3), (3, 0), (4, 1), (5, 2)]
    own, with_data, listed = (
        simulate(pairs, [LOW] * 6, rows, replace(BARE, pfc=pfc, queues=queues))
        for queues in (
            QueuesConfig(),
            QueuesConfig(acknowledgement_class="data"),
            QueuesConfig(priorities=(PriorityConfig(priority=LOW, lossless=True),)),
        )
    )
    assert with_data.tables["ports"]["pauses"].sum() > 10
    for table, names in (
        ("transfers", with_data.tables["transfers"]),
        ("ports", ("tx_bytes", "tx_packets", "data_packets", "dropped_packets", "pauses", "paused_ps")),
    ):
        for name in names:
            np.testing.assert_array_equal(listed.tables[table][name], with_data.tables[table][name], err_msg=name)
    acknowledged_ps = [record.tables["transfers"]["acknowledged_ps"].sum() for record in (own, with_data)]
    assert acknowledged_ps[0] != acknowledged_ps[1], "so that there is something to compare"


@pytest.mark.parametrize(("acknowledgement_class", "frames"), [("control", 3), ("data", 5)])
def test_an_acknowledgement_waits_for_the_data_that_it_finds(acknowledgement_class: Any, frames: int) -> None:
    """It reaches the switch at 198 ns, 28 ns into the second frame to its host; two frames more wait there by then."""
    config = replace(BARE, queues=QueuesConfig(acknowledgement_class=acknowledgement_class))
    rows = [{"bytes": 1_000}, {"bytes": 10_000, "qp": 1}, {"bytes": 10_000, "qp": 2}]
    record = simulate([(0, 1), (2, 0), (3, 0)], [LOW] * 3, rows, config)
    assert record.tables["transfers"]["acknowledged_ps"][0] == frames * FRAME_PS + 2 * CABLE_PS + ACK_PS


@pytest.mark.parametrize(
    ("not_capable", "capable", "dropped"),
    [("queue", "data", 0), ("drop", "data", 1), ("drop", "acknowledgements", 0), ("drop", "all", 0)],
)
def test_wred_drops_what_it_would_mark_and_cannot(not_capable: Any, capable: Any, dropped: int) -> None:
    """The acknowledgement of one frame finds two waiting, kmax or more: data would be marked; it is lost, or passes."""
    ecn = EcnConfig(kmin_bytes=1_000, kmax_bytes=2_000, not_capable=not_capable)
    rule = PriorityConfig(priority=LOW, lossless=True, ecn=ecn)
    config = configured(rule, nic=NicConfig(ecn_capable=capable))
    rows = [{"bytes": 1_000}, {"bytes": 3_000, "qp": 1}, {"bytes": 3_000, "qp": 2}]
    record = simulate([(0, 1), (2, 0), (3, 0)], [LOW] * 3, rows, config)
    assert queue(record, "dropped_packets", LOW).sum() == dropped
    assert record.tables["transfers"]["packets_retransmitted"].tolist() == [dropped, 0, 0]
    assert queue(record, "ecn_marked_packets", LOW).sum() > 0


def test_each_priority_is_marked_by_its_own_profile() -> None:
    """Of two priorities with equal queues only the one with a profile is marked: SONiC binds profiles to queues."""
    config = configured(
        PriorityConfig(priority=LOW, weight=1, ecn=EcnConfig(kmin_bytes=1_000, kmax_bytes=2_000)),
        PriorityConfig(priority=HIGH, weight=1, ecn=EcnConfig(enabled=False)),
    )
    rows = [{"bytes": 20_000, "qp": qp} for qp in range(4)]
    record = simulate([(0, 4), (1, 4), (2, 4), (3, 4)], [LOW, LOW, HIGH, HIGH], rows, config)
    assert queue(record, "ecn_marked_packets", LOW).sum() > 10
    assert queue(record, "ecn_marked_packets", HIGH).sum() == 0
    assert queue(record, "max_queue_bytes", HIGH).max() >= 2_000


def test_drops_of_wred_need_a_list_of_priorities() -> None:
    """The plain port's acknowledgements meet no queue that marks."""
    with pytest.raises(InputError, match=r"ecn.not_capable: no list of priorities"):
        replace(BARE, ecn=EcnConfig(not_capable="drop"))


@pytest.mark.parametrize("action", ["drop", "forward"])
def test_a_watchdog_ends_a_deadlock(action: Any) -> None:
    """The ring that stops for ever goes on after the detection time; both engines agree on every queue."""
    outcome, columns = _run_ring(WatchdogConfig(detect_ns=100_000, restore_ns=50_000, action=action))
    assert outcome == "finished"
    assert sum(columns["pause_storms"]) > 0
    assert (sum(columns["dropped_packets"]) > 0) == (action == "drop")


def test_pauses_that_only_renew_one_another_end_a_run() -> None:
    """Without a watchdog the ring renews its pauses for ever, so the run is stalled once nothing else is left."""
    outcome, columns = _run_ring(None)
    assert (outcome, columns) == _run_ring(None, ProbeConfig(interval_ns=50_000)), "probes are no part of a run"
    assert outcome == "stalled"
    assert max(columns["pause_frames_received"]) > 2 * max(columns["pauses"])


@pytest.mark.parametrize(("quanta", "late_drops"), [(None, 1), (65_535, 2)])
def test_a_storm_is_over_when_no_pause_has_come_for_the_restoration_time(quanta: int | None, late_drops: int) -> None:
    """Frame 10 has host 1's NIC pause the ToR while frame 11 is on the wire. The other nine are lost 100 us later.

    The watchdog looks again after 300 us. A pause that is never sent again is then 400 us old, so a frame at 350 us is
    lost and one at 450 us waits. One of 65,535 quanta (335.5 us) is sent again every 167.8 us: both are lost.
    """
    config = configured(
        PriorityConfig(priority=LOW, lossless=True),
        pfc=PfcConfig(response_ns=0, quanta=quanta, watchdog=WatchdogConfig(detect_ns=100_000, restore_ns=300_000)),
        nic=NicConfig(drain_rate_bps=10**6, receive_buffer_bytes=100_000, xoff_bytes=10_000),
        time_limit_ns=500_000,
    )
    late = [{"bytes": 1000, "qp": 1, "start_ps": at_us * 10**6} for at_us in (350, 450)]
    record = simulate([(0, 1), (2, 1)], [LOW, LOW], [{"bytes": 20_000}, *late], config)
    assert queue(record, "pause_storms", LOW).sum() == 1
    assert queue(record, "dropped_packets", LOW).sum() == 9 + late_drops


def test_a_link_that_goes_down_forgets_the_pauses_of_every_priority() -> None:
    """Both priorities of host 0 fill the ToR in the first 2 us; their pauses end with the link, 100 us into the run."""
    rules = (PriorityConfig(priority=number, lossless=True) for number in (LOW, HIGH))
    config = configured(
        *rules,
        pfc=PfcConfig(buffer_bytes=100_000, xoff_bytes=5_000, xon_bytes=0, response_ns=0),
        time_limit_ns=150_000,
    )
    network = network_of(funnel(10**9), [(0, 1), (0, 1)])
    network = replace(network, queue_pairs=replace(network.queue_pairs, priority_Q=np.array([LOW, HIGH])))
    cut = LinkDown(link="host0:nic0", at_ns=100_000, until_ns=200_000)
    faults = FaultTimeline.of(network.fabric, [cut], config)
    rows = [{"bytes": 20_000, "qp": qp} for qp in range(2)]
    record = run(network, traffic_of(rows), compiled("none"), config, faults=faults)
    for priority in (LOW, HIGH):
        assert 98_000_000 < queue(record, "paused_ps", priority).max() < 100_000_000


def test_a_pause_ends_by_default_when_two_full_frames_may_come() -> None:
    """Each frame that leaves makes room for 1.125: the run is that of an offset of 2,000 B, not of 1,000 B."""
    paused_ps = []
    for offset_bytes in (None, 2_000, 1_000):
        config = configured(
            PriorityConfig(priority=LOW, lossless=True, alpha=0.125),
            pfc=PfcConfig(headroom_bytes=10_000, response_ns=0),
            buffer=BufferConfig(size_bytes=100_000, resume_offset_bytes=offset_bytes),
        )
        network = network_of(funnel(10**10), [(0, 1)])
        network = replace(network, queue_pairs=replace(network.queue_pairs, priority_Q=np.array([LOW])))
        record = run(network, traffic_of([{"bytes": 200_000}]), compiled("none"), config)
        paused_ps.append(int(queue(record, "paused_ps", LOW).sum()))
    assert paused_ps[0] == paused_ps[1]
    assert paused_ps[2] not in (0, paused_ps[1])


@pytest.mark.parametrize("quanta", [None, 1, 65_535])
def test_a_run_is_patient_until_every_pause_and_resume_has_arrived(quanta: int | None) -> None:
    """A frame of a pause may cross a cable of 4.3 ms and wait 1 ms for a response, as the engine's limits allow."""
    fabric = funnel(10**9)
    pause_ps = (quanta or 0) * 512 * 1_000
    under_way_ps = MAX_PORT_DELAY_PS + 10**9
    config = configured(PriorityConfig(priority=LOW, lossless=True), pfc=PfcConfig(quanta=quanta))
    assert pause_patience_ps(fabric, config) > pause_ps + under_way_ps


def test_what_stops_one_priority_is_named() -> None:
    """The ring's record tells of the deadlock by its ports, or, with a watchdog, of the storm that ended it."""
    network, traffic = _ring()
    for watchdog, expected in (
        (None, "netsim.pfc-deadlock"),
        (WatchdogConfig(detect_ns=100_000), "netsim.pause-storm"),
    ):
        findings = run(network, traffic, compiled("none"), _ring_config(watchdog)).findings
        (entity,) = [finding.entity for finding in findings if finding.id == expected]
        assert entity.startswith("switch0:on -> switch1:back")


def _ring() -> tuple[Network, TrafficTrace]:
    network = ring_network()
    pairs = network.queue_pairs
    _, traffic = one_message_each(pairs.source_nic_Q, pairs.destination_nic_Q, 60_000)
    return network, traffic


def _ring_config(watchdog: WatchdogConfig | None) -> PacketConfig:
    return configured(
        PriorityConfig(priority=3, lossless=True),
        pfc=PfcConfig(xoff_bytes=10_000, xon_bytes=5_000, quanta=2_000, watchdog=watchdog),
        transport=TransportConfig(timeout_ns=1_000_000),
    )


def _run_ring(watchdog: WatchdogConfig | None, probe: ProbeConfig | None = None) -> tuple[str, dict[str, list[int]]]:
    """Run three switches in a ring in both engines; return the outcome and the columns of queues."""
    network, traffic = _ring()
    config = _ring_config(watchdog)
    inputs = make_engine_inputs(network, traffic, compiled("none"), config, seed=0, probe=probe)
    simulation = make_simulation(inputs, compiled("none"))
    outcome = simulation.advance(10**7).name.lower()
    reference = ReferenceEngine(inputs, *LAWS["none"])
    reference.run()
    assert (outcome, simulation.now_ps) == (reference.outcome, reference.now_ps)
    columns = {name: column.tolist() for name, column in simulation.queue_columns().items()}
    for name, column in reference.queue_columns().items():
        assert columns[name] == column.tolist(), name
    return outcome, columns


def test_a_priority_that_no_entry_names_is_refused() -> None:
    """A queue pair without a queue could not send."""
    config = configured(PriorityConfig(priority=LOW))
    with pytest.raises(InputError) as error:
        simulate([(0, 1)], [HIGH], [{"bytes": 1}], config)
    assert str(error.value) == (
        "queues.priorities: [2], with queue pairs of priority 6\n"
        "  allowed: every priority that queue pairs have\n"
        "  next: list it as well"
    )


def test_a_buffer_that_headroom_uses_up_is_refused() -> None:
    """Each of four ports needs headroom: 94 KB are too little for all of them."""
    config = configured(PriorityConfig(priority=3, lossless=True), buffer=BufferConfig(size_bytes=94_000))
    with pytest.raises(InputError, match=r"buffer.size: 94000 B, of which reserves and headroom leave -\d+ B"):
        simulate([(0, 1), (2, 1)], [3, 3], [{"bytes": 1}], config)


def test_settings_of_priorities_need_priorities() -> None:
    """A shared buffer without a list of priorities would be silently without effect."""
    with pytest.raises(InputError) as error:
        PacketConfig(buffer=BufferConfig(size_bytes=10**6))
    assert str(error.value) == ("buffer.size: no list of priorities\n  allowed: with `queues.priorities` only")


def test_memory_counts_every_priority_of_every_port() -> None:
    """A packet is one packet either way; two priorities take twice the room at each port, in hosts as well.

    What they are made from comes on top.
    """
    network = network_of(one_switch(3), [(0, 1)])
    one, both = configured(PriorityConfig()), configured(PriorityConfig(), PriorityConfig(priority=HIGH))
    inputs = [
        make_engine_inputs(network, traffic_of([{"bytes": 1000}]), compiled("none"), config, seed=0, probe=None)
        for config in (BARE, one, both)
    ]
    none_bytes, one_bytes, both_bytes = (
        estimated_bytes(given) - COPIES * sum(array.nbytes for array in given.arrays.values()) for given in inputs
    )
    assert both_bytes - one_bytes == network.fabric.num_ports * _engine.BYTES_PER_PRIORITY
    assert one_bytes - none_bytes == both_bytes - one_bytes
