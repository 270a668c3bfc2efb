"""Runs whose results can be worked out by hand. 100 Gb/s is 80 ps a byte; every cable takes 10 ns."""

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.laws import load_law
from fabrictune.foundation.errors import InputError, LawError
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import Medium
from fabrictune.foundation.units import format_duration
from fabrictune.netsim import packet
from fabrictune.netsim.config.nic import NicConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.config.transport import CnpConfig, TransportConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.packet import make_simulation
from fabrictune.topology.draft import FabricDraft
from tests.netsim.conftest import compiled, funnel, network_of, one_switch, traffic_of

Simulate = Callable[..., RunRecord]

BARE = PacketConfig(mtu_bytes=1000, wire_overhead_bytes=0, ack_bytes=100)
FRAME_PS = 80_000  # 1000 B
ACK_PS = 8_000
CABLE_PS = 10_000


def transfers(record: RunRecord, name: str) -> list[int]:
    return [int(value) for value in record.tables["transfers"][name]]


def test_one_packet_takes_two_serializations_and_two_cables_each_way(simulate: Simulate) -> None:
    """Store and forward: 2 * (80 + 10) ns there, 2 * (8 + 10) ns back for the acknowledgement."""
    record = simulate([(0, 1)], [{"bytes": 1000}], BARE)
    assert transfers(record, "finish_ps") == [2 * (FRAME_PS + CABLE_PS)]
    assert transfers(record, "acknowledged_ps") == [2 * (FRAME_PS + CABLE_PS) + 2 * (ACK_PS + CABLE_PS)]


def test_the_last_packet_carries_only_what_is_left(simulate: Simulate) -> None:
    """2,500 B are packets of 1000, 1000 and 500 B: the first reaches the switch, which sends for 200 ns."""
    record = simulate([(0, 1)], [{"bytes": 2500}], BARE)
    assert transfers(record, "finish_ps") == [FRAME_PS + CABLE_PS + 2500 * 80 + CABLE_PS]
    assert transfers(record, "packets_sent") == [3]


def test_the_most_packets_at_a_time_are_counted() -> None:
    """Three frames leave in 240 ns, before the first has come back as an acknowledgement."""
    law = compiled("none")
    inputs = make_engine_inputs(
        network_of(one_switch(2), [(0, 1)]), traffic_of([{"bytes": 3000}]), law, BARE, seed=0, probe=None
    )
    simulation = make_simulation(inputs, law)
    simulation.advance(10**6)
    assert simulation.peak_packets == 3


def test_an_empty_message_is_one_packet(simulate: Simulate) -> None:
    """It has no payload, but crosses the wire as a frame of the least length, 100 B."""
    record = simulate([(0, 1)], [{"bytes": 0}, {"bytes": 0}], BARE)
    assert transfers(record, "finish_ps") == [2 * (ACK_PS + CABLE_PS), 2 * (ACK_PS + CABLE_PS) + ACK_PS]
    assert transfers(record, "packets_sent") == [1, 1]


def test_rates_that_divide_no_picosecond_round_up(simulate: Simulate) -> None:
    """1000 B at 300 Gb/s take 26,666.7 ps; the model's wire is never faster, so 26,667."""
    record = simulate([(0, 1)], [{"bytes": 1000}], BARE, fabric=one_switch(2, rate_bps=300 * 10**9))
    assert transfers(record, "finish_ps") == [2 * (26_667 + CABLE_PS)]


def test_transfers_of_a_queue_pair_leave_in_the_order_they_become_ready(simulate: Simulate) -> None:
    """Row 1 starts first; row 0 follows it though its number is lower."""
    record = simulate([(0, 1)], [{"bytes": 1000, "start_ps": 1_000_000}, {"bytes": 50_000}], BARE)
    starts = transfers(record, "start_ps")
    assert starts[1] == 0
    assert starts[0] == 50 * FRAME_PS


def test_a_transfer_starts_its_delay_after_the_last_it_waits_for(simulate: Simulate) -> None:
    """Data at the destination set the next transfer free, not the acknowledgement at the source."""
    rows = [{"bytes": 1000}, {"bytes": 2000, "qp": 1}, {"bytes": 1000, "qp": 2, "waits": [0, 1], "delay_ps": 7}]
    record = simulate([(0, 1), (2, 3), (1, 0)], rows, BARE)
    finish = transfers(record, "finish_ps")
    assert transfers(record, "ready_ps")[2] == finish[1] + 7
    assert finish[1] > finish[0]


def test_transfers_off_the_fabric_take_their_delay_and_nvlink_its_rate(simulate: Simulate) -> None:
    """1 MB at 3.6 Tb/s takes 2,222,223 ps rounded up; a delay moves no bytes."""
    rows = [
        {"medium": Medium.NONE, "delay_ps": 500},
        {"medium": Medium.NVLINK, "bytes": 1_000_000, "waits": [0]},
        {"bytes": 1000, "waits": [1]},
    ]
    record = simulate([(0, 1)], rows, BARE)
    assert transfers(record, "finish_ps")[:2] == [500, 500 + 2_222_223]
    assert transfers(record, "ready_ps")[2] == 500 + 2_222_223


def test_transfers_over_nvlink_share_the_links_of_their_gpus(simulate: Simulate) -> None:
    """4 MB take 8,888,889 ps. GPU 0 sends two, so its second ends later; GPU 2 receives that one and another."""
    four_mb = {"medium": Medium.NVLINK, "bytes": 4_000_000}
    rows = [
        four_mb | {"source": 0, "destination": 1},
        four_mb | {"source": 0, "destination": 2},
        four_mb | {"source": 3, "destination": 2},
        four_mb | {"source": 3, "destination": 4},
    ]
    one = 8_888_889
    assert transfers(simulate([(0, 1)], rows, BARE), "finish_ps") == [one, 2 * one, 2 * one, 2 * one]


def test_data_cross_nvlink_to_another_gpus_nic_before_they_cross_the_fabric(simulate: Simulate) -> None:
    """1 MB at 3.6 Tb/s takes 2,222,223 ps: so much later it begins, and its thousand packets take as long as ever."""
    relay = {"relayed_from": 0, "relayed_to": 1}
    alone, relayed = (simulate([(0, 1)], [{"bytes": 1_000_000} | more], BARE) for more in ({}, relay))
    assert transfers(relayed, "ready_ps") == [0]
    assert transfers(relayed, "start_ps") == [2_222_223]
    assert transfers(relayed, "finish_ps") == [transfers(alone, "finish_ps")[0] + 2_222_223]
    assert transfers(relayed, "ideal_ps") == transfers(alone, "ideal_ps")


def test_the_way_to_a_nic_shares_nvlink(simulate: Simulate) -> None:
    """4 MB take 8,888,889 ps. GPU 0 sends GPU 1 a message, then what NIC 1 is to send, which so begins after both; what
    goes from GPU 2 to GPU 0 meets neither.
    """
    rows = [
        {"medium": Medium.NVLINK, "source": 0, "destination": 1, "bytes": 4_000_000},
        {"bytes": 4_000_000, "relayed_from": 0, "relayed_to": 1},
        {"bytes": 4_000_000, "relayed_from": 2, "relayed_to": 0, "qp": 1},
        {"bytes": 1000, "qp": 2},
    ]
    record = simulate([(0, 1), (2, 3), (4, 5)], rows, BARE, fabric=one_switch(6))
    one = 8_888_889
    assert transfers(record, "start_ps") == [0, 2 * one, one, 0]


def test_transfers_of_a_queue_pair_leave_in_the_order_they_reach_their_nic(simulate: Simulate) -> None:
    """Row 0 is on its way to the NIC when row 1 is there."""
    rows = [{"bytes": 1_000_000, "relayed_from": 0, "relayed_to": 1}, {"bytes": 1000, "start_ps": 1000}]
    assert transfers(simulate([(0, 1)], rows, BARE), "start_ps") == [2_222_223, 1000]


def test_a_nic_serves_its_queue_pairs_in_turn(simulate: Simulate) -> None:
    """Three messages of 30 packets share 90 frames; the first to come is one frame ahead of its turn.

    Queue pair 0 sends frames 0, 1, 4, 7 to 85; 1 and 2 alternate for the four that are left.
    """
    record = simulate([(0, 1), (0, 2), (0, 3)], [{"bytes": 30_000, "qp": qp} for qp in range(3)], BARE)
    latency = FRAME_PS + 2 * CABLE_PS
    assert transfers(record, "finish_ps") == [frames * FRAME_PS + latency for frames in (86, 89, 90)]


def test_one_acknowledgement_covers_several_packets(simulate: Simulate) -> None:
    """Ten packets with one acknowledgement in four: after 4, 8, and the last of the message."""
    config = PacketConfig(mtu_bytes=1000, ack_every_packets=4)
    record = simulate([(0, 1)], [{"bytes": 10_000}], config)
    assert record.run["packets"]["sent"] == 10 + 3
    assert record.run["outcome"] == "finished"


def test_a_law_that_halves_the_rate_doubles_the_gaps(simulate: Simulate, write_law: Callable[..., Any]) -> None:
    """At half of 100 Gb/s a 1000 B packet leaves every 160 ns: ten of them start within 1,440 ns."""
    law = write_law(rate="flow.line_rate_bps / 2", cwnd="1e18")
    record = simulate([(0, 1)], [{"bytes": 10_000}], BARE, law=law)
    assert transfers(record, "finish_ps") == [9 * 2 * FRAME_PS + 2 * (FRAME_PS + CABLE_PS)]


def test_a_window_of_one_packet_sends_one_a_round_trip(simulate: Simulate, write_law: Callable[..., Any]) -> None:
    """The round trip is 216 ns; the fourth packet leaves after three of them."""
    law = write_law(rate="flow.line_rate_bps", cwnd="1000.0")
    record = simulate([(0, 1)], [{"bytes": 4000}], BARE, law=law)
    round_trip = 2 * (FRAME_PS + CABLE_PS) + 2 * (ACK_PS + CABLE_PS)
    assert transfers(record, "finish_ps") == [3 * round_trip + 2 * (FRAME_PS + CABLE_PS)]


def test_a_window_below_a_packet_spaces_packets_by_round_trips(
    simulate: Simulate, write_law: Callable[..., Any]
) -> None:
    """A quarter of a packet's window is one packet every four round trips."""
    law = write_law(rate="flow.line_rate_bps", cwnd="250.0")
    record = simulate([(0, 1)], [{"bytes": 3000}], BARE, law=law)
    round_trip = 2 * (FRAME_PS + CABLE_PS) + 2 * (ACK_PS + CABLE_PS)
    assert transfers(record, "finish_ps") == [2 * 4 * round_trip + 2 * (FRAME_PS + CABLE_PS)]


def test_marks_follow_the_curve_of_red(simulate: Simulate) -> None:
    """With kmax one byte above kmin every packet that finds more than kmin queued is marked, and no other.

    Two senders of 50 packets each: their frames arrive in pairs, and one leaves in the time of a pair.
    """
    config = PacketConfig(
        mtu_bytes=1000, wire_overhead_bytes=0, ecn=EcnConfig(kmin_bytes=10_000, kmax_bytes=10_001, pmax_fraction=0.0)
    )
    record = simulate([(0, 2), (1, 2)], [{"bytes": 50_000, "qp": qp} for qp in range(2)], config)
    # The frames of pair j find j and j + 1 others: j have left since, and the next leaves only after the arrival.
    # More than ten find the pairs 11 to 49 and 10 to 49.
    assert record.tables["ports"]["max_queue_bytes"].max() == 51_000
    assert record.tables["ports"]["ecn_marked_packets"].sum() == 39 + 40


def test_half_of_the_packets_are_marked_where_the_curve_says_so(simulate: Simulate) -> None:
    """On a curve that is flat at one half, 2,000 packets are marked 1,000 times, give or take four deviations (90)."""
    config = PacketConfig(
        mtu_bytes=1000,
        ecn=EcnConfig(kmin_bytes=0, kmax_bytes=2**30, pmax_fraction=1.0),
        pfc=PfcConfig(enabled=False, buffer_bytes=2**30),
    )
    record = simulate([(0, 2), (1, 2)], [{"bytes": 1_000_000, "qp": qp} for qp in range(2)], config)
    ports = record.tables["ports"]
    queue = ports["max_queue_bytes"].max()
    expected = 2000 * queue / 2 / 2**30  # the queue grows evenly from 0 to its longest
    assert abs(int(ports["ecn_marked_packets"].sum()) - expected) < 4 * np.sqrt(expected) + 1


def test_notifications_keep_their_distance(simulate: Simulate) -> None:
    """Every packet behind the first is marked for 8 us or so: notifications 4 us apart are two or three, not 100."""
    marking = EcnConfig(kmin_bytes=0, kmax_bytes=1)
    config = PacketConfig(mtu_bytes=1000, wire_overhead_bytes=0, ecn=marking, cnp=CnpConfig(interval_ns=4_000))
    rows = [{"bytes": 100_000, "qp": qp} for qp in range(2)]
    record = simulate([(0, 2), (1, 2)], rows, config, law=compiled("dcqcn"))
    marked = int(record.tables["ports"]["ecn_marked_packets"].sum())
    last_us = max(transfers(record, "finish_ps")) / 1e6
    assert marked > 50
    for cnps in transfers(record, "cnps"):
        assert 2 <= cnps <= 1 + last_us / 4


def test_a_notification_may_follow_the_last_after_exactly_the_interval(simulate: Simulate) -> None:
    """Frames 3 to 22 find others queued. They arrive 800 ns apart: 3.2 us let every fourth notify, five in all."""
    marking = EcnConfig(kmin_bytes=0, kmax_bytes=1)
    config = replace(BARE, ecn=marking, cnp=CnpConfig(interval_ns=3_200))
    record = simulate([(0, 1)], [{"bytes": 22_000}], config, law="dcqcn", fabric=funnel(10**10))
    assert record.tables["ports"]["ecn_marked_packets"].sum() == 20
    assert transfers(record, "cnps") == [5]


@pytest.mark.parametrize(("num_frames", "num_pauses"), [(5, 0), (6, 1)])
def test_a_pause_is_sent_when_one_more_frame_would_pass_xoff(
    simulate: Simulate, num_frames: int, num_pauses: int
) -> None:
    """The first frame leaves at once, the others wait: four leave room for one more in an xoff of 5,000 B."""
    config = replace(BARE, pfc=PfcConfig(buffer_bytes=100_000, xoff_bytes=5_000, response_ns=0))
    record = simulate([(0, 1)], [{"bytes": 1000 * num_frames}], config, fabric=funnel(10**9))
    assert record.tables["ports"]["max_queue_bytes"].max() == 1000 * (num_frames - 1)
    assert record.tables["ports"]["pauses"].sum() == num_pauses


def test_losses_are_repaired_and_counted(simulate: Simulate) -> None:
    """One packet in fifty is lost; go-back-N delivers all the same, and what was sent again is on the record."""
    config = PacketConfig(mtu_bytes=1000, loss_fraction=0.02, transport=TransportConfig(timeout_ns=50_000))
    record = simulate([(0, 1)], [{"bytes": 200_000}], config)
    assert record.run["outcome"] == "finished"
    resent = transfers(record, "packets_retransmitted")[0]
    assert resent > 0
    assert transfers(record, "packets_sent") == [200 + resent]
    assert record.run["packets"]["data_sent"] == 200 + resent
    assert [finding.id for finding in record.findings] == ["netsim.dropped-packets"]


def test_a_queue_pair_fails_after_its_retries(simulate: Simulate) -> None:
    """On a dead wire the first try and seven retries wait 67.108864 ms each: 0.536870912 s."""
    record = simulate([(0, 1)], [{"bytes": 1000}, {"bytes": 1, "waits": [0]}], PacketConfig(loss_fraction=1.0))
    assert record.run["outcome"] == "stalled"
    assert record.run["end_ps"] == 8 * 67_108_864_000
    unfinished = record.findings[0]
    assert unfinished.id == "netsim.unfinished-transfers"
    assert (unfinished.entity, unfinished.actual) == ("transfers 0, 1", "2 of 2 transfers never completed; run stalled")


def test_a_queue_beyond_its_counter_ends_the_run_by_name(simulate: Simulate) -> None:
    """Four senders of 1 GB each to one port: beyond 2**31 B the queue went below zero, and marking stopped."""
    config = PacketConfig(mtu_bytes=60_000, pfc=PfcConfig(enabled=False, buffer_bytes=2**30))
    rows = [{"bytes": 1_070_000_000, "qp": qp} for qp in range(4)]
    with pytest.raises(InputError) as error:
        simulate([(0, 4), (1, 4), (2, 4), (3, 4)], rows, config)
    mistake = error.value.mistakes[0]
    assert (mistake.where, mistake.allowed) == ("port tor0:down4", "up to 2147483647 B")
    assert mistake.found.startswith("a queue of more than 2147483647 B at ")


def test_a_run_beyond_the_clock_ends_by_name(simulate: Simulate) -> None:
    """A pause of 50 days and 1 MB at a start of 50 days pass 53 days; beyond 106 the clock went below zero."""
    days_ps = 50 * 86_400 * 10**12
    rows = [
        {"bytes": 1},
        {"bytes": 1, "start_ps": days_ps, "waits": [0]},
        {"bytes": 1, "delay_ps": days_ps, "waits": [1]},
    ]
    with pytest.raises(InputError) as error:
        simulate([(0, 1)], rows, BARE)
    assert error.value.mistakes[0].allowed == f"up to {2**62 - 1} ps of simulated time, 53 days"


def test_the_time_limit_ends_a_run_and_marks_it_partial(simulate: Simulate) -> None:
    """1 MB takes 83 us; after 10 us some of it is in flight and none of it finished."""
    record = simulate([(0, 1)], [{"bytes": 1_000_000}], PacketConfig(time_limit_ns=10_000))
    assert (record.run["outcome"], record.run["is_partial"], record.run["end_ps"]) == ("time-limit", True, 10_000_000)
    assert record.run["packets"]["in_flight"] > 0
    assert transfers(record, "finish_ps") == [-1]


def test_an_interrupt_leaves_a_partial_record(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C arrives between two slices of events, here from the progress callback's place."""

    def interrupt(fraction: float, note: str = "", /) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(packet, "EVENTS_PER_SLICE", 10)
    network = network_of(one_switch(2), [(0, 1)])
    record = packet.run(network, traffic_of([{"bytes": 10**6}]), compiled("none"), PacketConfig(), progress=interrupt)
    assert (record.run["outcome"], record.run["is_partial"]) == ("interrupted", True)


def test_progress_rises_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the share of bytes acknowledged, with the simulated time as its note; the last is the run's end."""
    monkeypatch.setattr(packet, "EVENTS_PER_SLICE", 100)
    network = network_of(one_switch(2), [(0, 1)])
    told: list[tuple[float, str]] = []
    record = packet.run(
        network,
        traffic_of([{"bytes": 10**6}]),
        compiled("none"),
        PacketConfig(),
        progress=lambda fraction, note="", /: told.append((fraction, note)),
    )
    fractions, notes = zip(*told, strict=True)
    assert list(fractions) == sorted(fractions)
    assert (fractions[-1], notes[-1]) == (1.0, f"{format_duration(record.run['end_ps'])} simulated")
    assert len(set(notes)) == len(notes)
    assert len(told) > 3


def test_same_seed_same_bytes_and_another_seed_other_marks(simulate: Simulate) -> None:
    """Marking is the only chance in these runs, and it comes from the seed."""
    config = PacketConfig(mtu_bytes=1000, ecn=EcnConfig(kmin_bytes=1_000, kmax_bytes=100_000, pmax_fraction=0.5))
    rows = [{"bytes": 200_000, "qp": qp} for qp in range(3)]

    def tables(seed: int) -> dict[str, bytes]:
        record = simulate([(0, 3), (1, 3), (2, 3)], rows, config, law="dcqcn", seed=seed)
        return {
            f"{table}.{name}": column.tobytes()
            for table, columns in record.tables.items()
            for name, column in columns.items()
            if column.dtype != object
        }

    assert tables(1) == tables(1)
    assert tables(1) != tables(2)


def test_probing_changes_nothing_but_the_samples(simulate: Simulate) -> None:
    """Samples are taken last at their instant and touch no packet."""
    rows = [{"bytes": 200_000, "qp": qp} for qp in range(3)]
    pairs = [(0, 3), (1, 3), (2, 3)]
    plain = simulate(pairs, rows, law="dcqcn")
    probed = simulate(pairs, rows, law="dcqcn", probe=ProbeConfig(interval_ns=1_000, ports="all"))
    for table in ("transfers", "ports"):
        for name, column in plain.tables[table].items():
            np.testing.assert_array_equal(probed.tables[table][name], column)
    assert plain.run["end_ps"] == probed.run["end_ps"]
    samples = probed.tables["samples"]
    assert set(np.diff(np.unique(samples["time_ps"]))) == {1_000_000}
    assert samples["queue_bytes"].max() > 0
    assert len(plain.tables["samples"]["port"]) == 0


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("flow.rate_bps = -1.0", "left rate_bps below 1, or no number"),
        ("flow.rate_bps = 0.999", "left rate_bps below 1, or no number"),
        ("flow.rate_bps = math.nan", "left rate_bps below 1, or no number"),
        ("flow.rate_bps = math.inf", "left rate_bps below 1, or no number"),
        ("flow.cwnd_bytes = 0.0", "left cwnd_bytes below 0.001, or no number"),
        ("flow.cwnd_bytes = 0.000999", "left cwnd_bytes below 0.001, or no number"),
        ("flow.cwnd_bytes = math.nan", "left cwnd_bytes below 0.001, or no number"),
        ("flow.deadline_ps[1] = now_ps - 1", "left a deadline_ps that has passed"),
        ("return 2", "refused the state it met"),
        ("return 99", "returned the unknown status 99"),
        ("if rtt_ps > 0: raise ValueError", "raised an exception (LAW in on_ack)"),
        ("while rtt_ps > 0: pass", "looped more than 100,000 times in one call (LAW in on_ack)"),
        ("flow.cwnd_bytes = 7 // (num_hops - num_hops)", "divided by zero (LAW in on_ack)"),
        ("flow.cwnd_bytes = 7 % (num_hops - num_hops)", "divided by zero (LAW in on_ack)"),
        ("flow.deadline_ps[num_hops + 9] = now_ps", "used an index outside its array (LAW in on_ack)"),
    ],
)
def test_a_law_that_misbehaves_ends_the_run_by_name(
    simulate: Simulate, write_law: Callable[..., Any], statement: str, what: str
) -> None:
    """The first acknowledgement comes after 216 ns; the law breaks there."""
    law = write_law(rate="flow.line_rate_bps", cwnd="1e18", on_ack=statement, on_timer="pass")
    with pytest.raises(LawError) as error:
        simulate([(0, 1)], [{"bytes": 1000}], BARE, law=law)
    mistake = error.value.mistakes[0]
    assert mistake.where == "law my_law, on_ack"
    found = re.sub(r"\(\S*my_law.py:\d+ in", "(LAW in", mistake.found)
    assert found == f"{what} at 216 ns (216000 ps), queue pair 0"


def test_slices_follow_the_time_that_events_take() -> None:
    """Ctrl-C waits for the end of one: a tenth of a second, whatever a law does with its events."""
    assert [packet._next_slice(4_000, elapsed_s) for elapsed_s in (0.01, 0.1, 0.5)] == [8_000, 4_000, 1_000]
    assert packet._next_slice(1_000, 100.0) == 1_000
    assert packet._next_slice(packet.EVENTS_PER_SLICE, 0.0) == packet.EVENTS_PER_SLICE


def test_a_rate_that_is_halved_for_ever_ends_the_run(simulate: Simulate, write_law: Callable[..., Any]) -> None:
    """100 Gb/s are below 1 bit a second after 37 halvings; the law's timer alone would go on for years."""
    law = write_law(
        rate="100e9",
        cwnd="1e18",
        on_start="flow.deadline_ps[0] = 1_000_000",
        on_timer="flow.rate_bps /= 2; flow.deadline_ps[0] = now_ps + 1_000_000",
    )
    with pytest.raises(LawError, match=r"on_timer: left rate_bps below 1, or no number at 37 us .* queue pair 0"):
        simulate([(0, 1)], [{"bytes": 10_000_000}], BARE, law=law)


def test_a_timer_that_sets_itself_to_now_is_refused(simulate: Simulate, write_law: Callable[..., Any]) -> None:
    """Otherwise the clock would stand still for ever."""
    law = write_law(
        rate="flow.line_rate_bps",
        cwnd="1e18",
        on_start="flow.deadline_ps[0] = 5",
        on_timer="flow.deadline_ps[3] = now_ps",
    )
    with pytest.raises(LawError, match=r"on_timer: left a deadline_ps that has passed at 5 ps"):
        simulate([(0, 1)], [{"bytes": 1000}], BARE, law=law)


def test_an_acknowledgement_after_the_last_wakes_no_law(simulate: Simulate, write_law: Callable[..., Any]) -> None:
    """Sent again after 150 ns, acknowledged after 216 ns and after 366: by then the law's deadline of 217 ns is past.

    Nothing fires the timers of a queue pair that is done, so it may not be asked to answer for them.
    """
    law = write_law(
        rate="flow.line_rate_bps",
        cwnd="1e18",
        on_ack="if acked_bytes > 0: flow.deadline_ps[0] = now_ps + 1_000",
        on_timer="pass",
    )
    record = simulate([(0, 1)], [{"bytes": 1000}], replace(BARE, transport=TransportConfig(timeout_ns=150)), law=law)
    assert record.run["outcome"] == "finished"
    assert record.run["packets"]["data_delivered"] == 2


@pytest.fixture
def write_law(tmp_path: Path) -> Callable[..., Any]:
    """Return a function that compiles a law of fixed rate and window, with statements for some events."""
    arguments = {
        "on_ack": "acked_bytes, rtt_ps, endpoint_delay_ps, num_hops, is_ecn_marked, telemetry",
        "on_timer": "timer",
    }

    def write(*, rate: str, cwnd: str, on_start: str = "pass", telemetry: bool = False, **handlers: str) -> Any:
        text = (
            f"import math\n\nPARAMETERS = ()\nSTATE = (('seen', 'f8', (64,)),)\nUSES_TELEMETRY = {telemetry}\n\n\n"
            "def on_start(params, flow, now_ps):\n"
            f"    flow.rate_bps = {rate}\n    flow.cwnd_bytes = {cwnd}\n    {on_start}\n    return 0\n"
        )
        for event, statement in handlers.items():
            text += f"\n\ndef {event}(params, flow, now_ps, {arguments[event]}):\n    {statement}\n    return 0\n"
        path = tmp_path / "my_law.py"
        path.write_text(text)
        return compile_law(load_law(str(path), trust_code=True))

    return write


def test_telemetry_tells_of_every_hop(simulate: Simulate, write_law: Callable[..., Any]) -> None:
    """The law divides by what it must find: two hops at line rate, the first sent before the second, 1000 B each."""
    checks = (
        "if num_hops != 2 or telemetry[0].rate_bps != 1e11 or telemetry[1].tx_bytes != telemetry[0].tx_bytes"
        " or telemetry[1].time_ps - telemetry[0].time_ps != 90000 or telemetry[1].queue_bytes != 0: return 2"
    )
    law = write_law(rate="flow.line_rate_bps", cwnd="1000.0", telemetry=True, on_ack=checks)
    config = replace(BARE, telemetry_bytes=0)
    assert simulate([(0, 1)], [{"bytes": 5000}], config, law=law).run["outcome"] == "finished"
    wrong = write_law(
        rate="flow.line_rate_bps", cwnd="1000.0", telemetry=True, on_ack="if telemetry[0].tx_bytes < 5000: return 2"
    )
    with pytest.raises(LawError, match="refused"):
        simulate([(0, 1)], [{"bytes": 5000}], config, law=wrong)


@pytest.mark.parametrize("num_switches", [5, 6, 11, 15])
def test_telemetry_tells_of_every_hop_of_a_long_path(
    simulate: Simulate, write_law: Callable[..., Any], num_switches: int
) -> None:
    """Along a row of switches, beside a short flow whose packets are under way when room for longer trails is made."""
    draft = FabricDraft("row")
    switches = [draft.add_switch(f"s{number}") for number in range(num_switches)]
    speed = {"rate_bps": 10**11, "delay_ps": 10_000}
    for number, switch in enumerate((switches[0], switches[0], switches[-1])):
        draft.add_link((draft.add_host(f"h{number}"), "nic"), (switch, f"h{number}"), **speed)
    for left, right in itertools.pairwise(switches):
        draft.add_link((left, "right"), (right, "left"), **speed)
    checks = (
        "if num_hops != flow.num_hops: return 2\n"
        "    for hop in range(1, num_hops):\n"
        "        if telemetry[hop].time_ps - telemetry[hop - 1].time_ps < 90000: return 2\n"
        "        if telemetry[hop].tx_bytes < acked_bytes: return 2"
    )
    law = write_law(rate="flow.line_rate_bps", cwnd="1e18", telemetry=True, on_ack=checks)
    rows = [{"bytes": 50_000, "qp": 0, "source": 0, "destination": 1}, {"bytes": 50_000, "qp": 1, "destination": 2}]
    config = replace(BARE, telemetry_bytes=0)
    assert simulate([(0, 1), (0, 2)], rows, config, law=law, fabric=draft.finish()).run["outcome"] == "finished"


def test_telemetry_takes_room_on_the_wire(simulate: Simulate, write_law: Callable[..., Any]) -> None:
    """A packet of 1000 B and its acknowledgement of 100 B each carry 42 B more over both links, at 80 ps a byte."""
    finished_ps = []
    for has_telemetry in (False, True):
        law = write_law(rate="flow.line_rate_bps", cwnd="1000.0", telemetry=has_telemetry)
        record = simulate([(0, 1)], [{"bytes": 1000}], BARE, law=law)
        assert record.run["configuration"]["telemetry_bytes"] == 42
        finished_ps += transfers(record, "acknowledged_ps")
    assert finished_ps[1] - finished_ps[0] == 4 * 42 * 80


def test_the_hosts_answer_after_the_endpoint_delay(simulate: Simulate) -> None:
    """300 ns more on the way back, and in the round trip."""
    config = PacketConfig(mtu_bytes=1000, wire_overhead_bytes=0, ack_bytes=100, nic=NicConfig(endpoint_delay_ns=300))
    record = simulate([(0, 1)], [{"bytes": 1000}], config)
    assert transfers(record, "acknowledged_ps") == [2 * (FRAME_PS + CABLE_PS) + 300_000 + 2 * (ACK_PS + CABLE_PS)]


def test_a_law_hears_of_congestion_when_the_adapter_has_handled_it(simulate: Simulate) -> None:
    """Eight senders into one: with 55 us from mark to reaction the queue grows further before anyone slows down."""
    rows = [{"bytes": 4_000_000, "qp": qp} for qp in range(8)]
    pairs = [(sender, 8) for sender in range(8)]
    slow = CnpConfig(generation_delay_ns=25_000, handling_delay_ns=30_000)
    prompt, late = (
        simulate(pairs, rows, PacketConfig(cnp=cnp, pfc=PfcConfig(enabled=False, buffer_bytes=10**8)), law="dcqcn")
        for cnp in (CnpConfig(), slow)
    )
    deepest = [int(record.tables["ports"]["max_queue_bytes"].max()) for record in (prompt, late)]
    assert deepest[1] > 1.1 * deepest[0]
    assert min(int(record.tables["transfers"]["cnps"].sum()) for record in (prompt, late)) > 0


def test_a_timer_that_never_ends_leaves_a_run_stalled(simulate: Simulate) -> None:
    """Exponent 0 turns the local-ack timeout off: a packet lost is lost."""
    config = PacketConfig(loss_fraction=1.0, transport=TransportConfig(timeout_exponent=0))
    assert simulate([(0, 1)], [{"bytes": 1000}], config).run["outcome"] == "stalled"


def test_samples_of_a_queue_pair_follow_its_law(simulate: Simulate, write_law: Callable[..., Any]) -> None:
    """Half of line rate and a window that never binds: packet k leaves at 160k ns and is acknowledged at 160k + 216.

    At 1 us packets 0 to 4 are acknowledged and 5 and 6 in flight; at 2 us 0 to 11, and 12; at 3 us 0 to 17, and 18.
    """
    law = write_law(rate="flow.line_rate_bps / 2", cwnd="5000.0")
    rows = [{"bytes": 20_000}, {"bytes": 20_000, "qp": 1}]
    probe = ProbeConfig(interval_ns=1_000, flows=(0,))
    samples = simulate([(0, 1), (2, 3)], rows, BARE, law=law, probe=probe).tables["flow_samples"]
    assert set(samples["qp"]) == {0}
    assert samples["time_ps"].tolist() == [0, 1_000_000, 2_000_000, 3_000_000]
    assert samples["rate_bps"].tolist()[1:] == [50 * 10**9] * 3
    assert samples["cwnd_bytes"].tolist()[1:] == [5000] * 3
    assert samples["rtt_ps"].tolist() == [216_000] * 4
    assert samples["acknowledged_packets"].tolist() == [0, 5, 12, 18]
    assert samples["in_flight_bytes"].tolist() == [1000, 2000, 1000, 1000]


@pytest.mark.parametrize(("num_ports", "flows"), [(2, (0,)), (1, (0, 1))])
@pytest.mark.parametrize(("room", "num_instants"), [(8, 4), (7, 3)])
def test_samples_end_where_their_room_does(
    num_ports: int, flows: tuple[int, ...], room: int, num_instants: int
) -> None:
    """37 frames take 3.2 us, so four instants are sampled: two ports or two queue pairs need room for eight."""
    probe = ProbeConfig(interval_ns=1_000, num_busiest=num_ports, flows=flows)
    network, law = network_of(one_switch(2), [(0, 1), (0, 1)]), compiled("none")
    inputs = make_engine_inputs(network, traffic_of([{"bytes": 37_000}]), law, BARE, seed=0, probe=probe)
    simulation = make_simulation(replace(inputs, settings={**inputs.settings, "max_samples": room}), law)
    assert simulation.advance(10**6).name == "FINISHED"
    assert len(simulation.flow_sample_columns()["rate_bps"]) == num_instants * len(flows)
    assert simulation.has_all_samples == (num_instants == 4)


def test_a_queue_pair_that_is_not_there_cannot_be_probed(simulate: Simulate) -> None:
    """The mistake says how many there are."""
    with pytest.raises(InputError, match=r"probe.flows: 1\n  allowed: a row of the network's 1 queue pairs"):
        simulate([(0, 1)], [{"bytes": 1}], BARE, probe=ProbeConfig(interval_ns=1_000, flows=(1,)))


def test_samples_count_the_time_paused(simulate: Simulate) -> None:
    """Eight senders into one fill the switch; what the last sample of a port says is what its row says at the end."""
    rows = [{"bytes": 2_000_000, "qp": qp} for qp in range(8)]
    record = simulate([(i, 8) for i in range(8)], rows, probe=ProbeConfig(interval_ns=1_000, ports="all"))
    samples, ports = record.tables["samples"], record.tables["ports"]
    last = samples["time_ps"] == samples["time_ps"].max()
    assert ports["paused_ps"].any()
    for port, paused_ps in zip(samples["port"][last], samples["paused_ps"][last], strict=True):
        assert 0 <= ports["paused_ps"][port] - paused_ps <= 1_000_000
