"""Path choice on two ToRs joined by four aggregation switches, where every port's share can be counted."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.adaptive_routing import ArsConfig
from fabrictune.netsim.config.faults import LinkDown
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.engine_inputs.path_choice import path_choice_settings
from fabrictune.netsim.faults.timeline import fault_intervals
from fabrictune.netsim.memory import estimated_bytes
from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.reference.engine import ReferenceEngine
from fabrictune.netsim.reference.port_loads import LoadMeter
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from fabrictune.topology.fabric import Fabric
from tests.netsim.conftest import compiled, network_of, traffic_of
from tests.netsim.scenarios import LAWS, Scenario
from tests.netsim.test_reference import assert_equals_reference

Simulate = Callable[..., RunRecord]

UPLINKS = 4
HOSTS_PER_TOR = 4
BARE = PacketConfig(mtu_bytes=1000, wire_overhead_bytes=0, ack_bytes=100)
FRAME_PS = 80_000  # 1000 B at 100 Gb/s


@cache
def two_tors() -> Fabric:
    """Return NICs 0 to 3 under one ToR and 4 to 7 under another, four uplinks each."""
    return build_clos(
        ClosSpec(
            num_hosts=2 * HOSTS_PER_TOR,
            hosts_per_tor_set=HOSTS_PER_TOR,
            nics_per_host=1,
            tiers=2,
            nic_rate_bps=100 * 10**9,
            uplink_rate_bps=100 * 10**9,
            downlink_split=1,
            uplinks_per_tor=UPLINKS,
        )
    )


def uplink_packets(record: RunRecord, tor: int = 0) -> IntArray:
    """Return the data packets that left through each uplink of a ToR."""
    fabric = two_tors()
    is_uplink_P = np.array([fabric.port_label(port).startswith(f"tor{tor}:up") for port in range(fabric.num_ports)])
    packets: IntArray = record.tables["ports"]["data_packets"][is_uplink_P]
    return packets


def choosing(**settings: object) -> PacketConfig:
    """Return the bare configuration with a path choice."""
    return replace(BARE, path_choice=PathChoiceConfig(**settings))  # type: ignore[arg-type]


def test_round_robin_gives_every_port_its_turn(simulate: Simulate) -> None:
    """1,000 packets over four ports are 250 each."""
    config = choosing(mode="spray", spray="round-robin")
    record = simulate([(0, 4)], [{"bytes": 1_000_000}], config, fabric=two_tors())
    assert uplink_packets(record).tolist() == [250] * 4


def test_random_spraying_is_uniform(simulate: Simulate) -> None:
    """1,000 packets over four ports: 250 each, with a standard deviation of 13.7; five of them are 68."""
    record = simulate([(0, 4)], [{"bytes": 1_000_000}], choosing(mode="spray"), fabric=two_tors())
    assert uplink_packets(record).sum() == 1000
    assert np.abs(uplink_packets(record) - 250).max() < 68


def test_spraying_takes_another_course_under_another_seed(simulate: Simulate) -> None:
    """The draws are the run's, not the machine's."""
    seeds = [
        simulate([(0, 4)], [{"bytes": 1_000_000}], choosing(mode="spray"), fabric=two_tors(), seed=seed)
        for seed in (1, 1, 2)
    ]
    shares = [uplink_packets(record).tolist() for record in seeds]
    assert shares[0] == shares[1] != shares[2]


@pytest.mark.parametrize(("gap_ns", "num_ports"), [(10_000, 2), (10_001, 1)])
def test_a_flowlet_ends_with_the_gap_and_not_before(simulate: Simulate, gap_ns: int, num_ports: int) -> None:
    """Two packets 10,000 ns apart: a gap of 10,000 ns lets the second choose anew, one of 10,001 ns does not.

    The seed is one under which the second choice differs from the first.
    """
    config = choosing(mode="flowlet", gap_ns=gap_ns)
    rows = [{"bytes": 1000}, {"bytes": 1000, "start_ps": 10_000_000}]
    record = simulate([(0, 4)], rows, config, fabric=two_tors(), seed=1)
    assert np.count_nonzero(uplink_packets(record)) == num_ports


@pytest.mark.parametrize("gap_ns", [2_000, 1_000_000])
def test_many_flowlets_share_no_entry(gap_ns: int) -> None:
    """480 queue pairs of 16 hosts fill the table of flowlets, which grows where none has expired; the reference keeps
    each in a dictionary.
    """
    fabric = build_fat_tree(FatTreeSpec(radix=4, link_rate_bps=10**11, cable_mm=2_000))
    pairs = [(source, destination) for source in range(16) for destination in range(16) if source != destination] * 2
    rows = [{"bytes": 3_000, "qp": qp, "start_ps": 1_000 * qp} for qp in range(len(pairs))]
    config = PacketConfig(mtu_bytes=1000, path_choice=PathChoiceConfig(mode="flowlet", gap_ns=gap_ns))
    inputs = make_engine_inputs(
        network_of(fabric, pairs), traffic_of(rows), compiled("none"), config, seed=0, probe=None
    )
    simulation = make_simulation(inputs, compiled("none"))
    assert simulation.advance(10**7).name == "FINISHED"
    reference = ReferenceEngine(inputs, *LAWS["none"])
    reference.run()
    for name, column in reference.port_columns().items():
        np.testing.assert_array_equal(simulation.port_columns()[name], column, err_msg=name)


def test_the_gap_counts_from_the_last_packet_not_the_first(simulate: Simulate) -> None:
    """100 packets 80 ns apart last 8 us, but no silence is longer than 1 us, so they are one flowlet."""
    config = choosing(mode="flowlet", gap_ns=1_000)
    record = simulate([(0, 4)], [{"bytes": 100_000}], config, fabric=two_tors())
    assert np.count_nonzero(uplink_packets(record)) == 1


def test_adaptive_routing_avoids_the_queue_that_another_flow_has_filled(simulate: Simulate) -> None:
    """Four flows of line rate and four uplinks: nobody waits long, so every flow keeps nearly line rate.

    At most a packet of each other flow can be in front, so the queue of no uplink exceeds three packets.
    """
    pairs = [(nic, nic + HOSTS_PER_TOR) for nic in range(HOSTS_PER_TOR)]
    rows = [{"qp": qp, "bytes": 500_000} for qp in range(HOSTS_PER_TOR)]
    record = simulate(pairs, rows, choosing(mode="adaptive"), fabric=two_tors())
    fabric = two_tors()
    is_uplink_P = np.array([fabric.port_label(port).startswith("tor0:up") for port in range(fabric.num_ports)])
    assert record.tables["ports"]["max_queue_bytes"][is_uplink_P].max() <= 3000


def test_ties_go_to_the_first_port_if_so_told(simulate: Simulate) -> None:
    """A flow alone finds all queues empty, since its own packet has left when the next one comes."""
    config = choosing(mode="adaptive", ties="first")
    record = simulate([(0, 4)], [{"bytes": 100_000}], config, fabric=two_tors())
    assert uplink_packets(record).tolist() == [100, 0, 0, 0]


def test_queues_within_a_step_are_equally_short(simulate: Simulate) -> None:
    """With steps of 1 MB no queue of this run counts as longer than another, so the first port takes all."""
    pairs = [(nic, nic + HOSTS_PER_TOR) for nic in range(HOSTS_PER_TOR)]
    rows = [{"qp": qp, "bytes": 100_000} for qp in range(HOSTS_PER_TOR)]
    config = choosing(mode="adaptive", ties="first", queue_step_bytes=1_000_000)
    record = simulate(pairs, rows, config, fabric=two_tors())
    assert uplink_packets(record).tolist() == [400, 0, 0, 0]


ALTERNATING = ArsConfig(
    assign_mode="per_packet",
    sampling_interval_ns=800,
    future_load_weight=0,
    past_load_max_fraction=0.5,
    load_exponent=0,
    quantization_bands=2,
)


def test_ars_leaves_the_port_that_has_sent_in_the_last_interval(simulate: Simulate) -> None:
    """Ten frames of 80 ns are an interval: the port that had them is in the worse of two bands, and rests for the next.

    So a flow of 100 frames alternates between the first two ports.
    """
    record = simulate([(0, 4)], [{"bytes": 100_000}], choosing(mode="ars", ties="first", ars=ALTERNATING),
                      fabric=two_tors())  # fmt: skip
    assert uplink_packets(record).tolist() == [50, 50, 0, 0]


def test_ars_knows_no_load_before_the_first_sample(simulate: Simulate) -> None:
    """An interval longer than the run: every port is as good as the first."""
    ars = replace(ALTERNATING, sampling_interval_ns=10**6)
    record = simulate([(0, 4)], [{"bytes": 100_000}], choosing(mode="ars", ties="first", ars=ars), fabric=two_tors())
    assert uplink_packets(record).tolist() == [100, 0, 0, 0]


@pytest.mark.parametrize(("max_flows", "packets"), [(512, [100, 20, 0, 0]), (1, [120, 0, 0, 0])])
def test_flows_that_share_an_entry_of_ars_share_its_port(
    simulate: Simulate, max_flows: int, packets: list[int]
) -> None:
    """The second flow finds the first port loaded and takes another, unless both are one macro flow, never idle."""
    ars = replace(ALTERNATING, assign_mode="per_flowlet_quality", flowlet_idle_time_ns=1_000, max_flows=max_flows)
    rows = [{"bytes": 100_000}, {"bytes": 20_000, "qp": 1, "start_ps": 4_000_000}]
    record = simulate([(0, 4), (1, 5)], rows, choosing(mode="ars", ties="first", ars=ars), fabric=two_tors())
    assert uplink_packets(record).tolist() == packets


def test_ars_waits_for_the_idle_time_of_a_flowlet(simulate: Simulate) -> None:
    """A flow of line rate is never idle, so its port stays the one that it took first, however loaded."""
    ars = replace(ALTERNATING, assign_mode="per_flowlet_quality", flowlet_idle_time_ns=81)
    record = simulate([(0, 4)], [{"bytes": 100_000}], choosing(mode="ars", ties="first", ars=ars), fabric=two_tors())
    assert uplink_packets(record).tolist() == [100, 0, 0, 0]


@pytest.mark.parametrize("down_ns", [1_005, 2_345, 3_685])
def test_ars_samples_a_queue_up_to_the_instant_that_loses_it(down_ns: int) -> None:
    """Eight samples a frame: those since the last frame of a port that goes down have found its queue.

    They are part of its average when it is up again; the reference engine chooses the same ports.
    """
    fabric = two_tors()
    label = next(name for name in map(fabric.port_label, range(fabric.num_ports)) if name.startswith("tor0:up"))
    ars = ArsConfig(
        assign_mode="per_packet",
        sampling_interval_ns=10,
        past_load_weight=0,
        future_load_weight=1,
        future_load_min_bytes=0,
        future_load_max_bytes=4_000,
        load_exponent=4,
        load_current=False,
        quantization_bands=8,
    )
    config = replace(choosing(mode="ars", ties="first", ars=ars), transport=TransportConfig(timeout_ns=50_000))
    scenario = Scenario(
        network=network_of(fabric, [(nic, HOSTS_PER_TOR + nic) for nic in range(HOSTS_PER_TOR)]),
        traffic=traffic_of([{"qp": qp, "bytes": 60_000} for qp in range(HOSTS_PER_TOR)]),
        config=config,
        law="none",
        seed=0,
        faults=fault_intervals(fabric, [LinkDown(link=label, at_ns=down_ns, until_ns=down_ns + 100)], config),
    )
    simulation = assert_equals_reference(scenario)
    assert simulation.fault_drop_columns()["link_down"].sum() > 10


def meter(**settings: object) -> LoadMeter:
    """Return the loads of a port of 100 Gb/s beside one of 400 Gb/s, sampled every microsecond."""
    values = path_choice_settings(PathChoiceConfig(mode="ars", ars=ArsConfig(**settings)), seed=0)  # type: ignore[arg-type]
    run = SimpleNamespace(settings=SimpleNamespace(**values), columns={"port_rate_bps": [10**11, 4 * 10**11]})
    return LoadMeter(run, 10**11)  # type: ignore[arg-type]


def test_an_average_moves_by_a_quarter_towards_its_sample() -> None:
    """The queue counts four times, as that of a port of a quarter of the fastest rate; 12,500 B an interval are all."""
    load = meter(sampling_interval_ns=1_000)
    averages = []
    for now_us in (1, 2, 3):
        load.settle(now_us * 1_000_000, 12_500 * now_us, 1_000)
        averages.append((load.past_scaled >> 8, load.future_scaled >> 8))
    assert averages == [(16384, 1000), (28672, 1750), (37888, 2312)]
    load.settle(3_999_999, 10**6, 10**6)
    assert (load.past_scaled >> 8, load.future_scaled >> 8) == averages[-1], "the interval has not ended"


def test_a_load_that_falls_at_once_forgets() -> None:
    """Otherwise a quarter of the rate remains after five intervals of silence: 0.75**5 is 0.237."""
    for falls, expected in ((False, 15552), (True, 0)):
        load = meter(sampling_interval_ns=1_000, load_current=falls, load_exponent=0)
        load.settle(1_000_000, 12_500, 0)
        load.settings.load_exponent = 2
        load.settle(6_000_000, 12_500, 0)
        assert load.past_scaled >> 8 == expected


def test_a_long_silence_is_as_many_short_ones() -> None:
    """A meter that is not asked for long stands where one does that is asked at every instant."""
    late, early = meter(sampling_interval_ns=1_000), meter(sampling_interval_ns=1_000)
    for load in (late, early):
        load.settle(1_000_000, 12_500, 70_000)
    for now_ns in range(1_000, 300_500, 100):
        early.settle(now_ns * 1_000, 12_500, 70_000)
    late.settle(300_400_000, 12_500, 70_000)
    assert vars(late) | {"settings": None} == vars(early) | {"settings": None}
    assert late.quality == 3, "bands 0 and 7"


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"past_load_weight": 0, "future_load_weight": 0}, "past_load_weight: 0, as future_load_weight"),
        ({"past_load_min_fraction": 1.0}, "path_choice.ars.past_load_max: 1.0"),
        ({"future_load_max_bytes": 2**31}, "path_choice.ars.future_load_max: 2147483648"),
        ({"max_flows": 0}, "path_choice.ars.max_flows: 0"),
        ({"quantization_bands": 1}, "path_choice.ars.quantization_bands: 1"),
    ],
)  # fmt: skip
def test_settings_of_ars_out_of_range_are_refused(settings: dict[str, Any], found: str) -> None:
    """By the names that a scenario has for them."""
    with pytest.raises(InputError, match=re.escape(found)):
        ArsConfig(**settings)


def test_a_weighted_choice_is_made_once_for_a_flow(simulate: Simulate) -> None:
    """So packets keep their order, and one uplink carries all."""
    record = simulate([(0, 4)], [{"bytes": 100_000}], choosing(mode="weighted"), fabric=two_tors())
    assert sorted(uplink_packets(record)) == [0, 0, 0, 100]
    assert record.run["packets"]["data_out_of_order"] == 0


@pytest.mark.parametrize(("acknowledgements", "num_ports"), [("hash", 1), ("same", 4)])
def test_acknowledgements_keep_their_path_unless_told(
    simulate: Simulate, acknowledgements: str, num_ports: int
) -> None:
    """NIC 4's answers leave tor1 through one uplink, or through all four."""
    config = choosing(mode="spray", acknowledgements=acknowledgements)
    record = simulate([(0, 4)], [{"bytes": 100_000}], config, fabric=two_tors())
    fabric = two_tors()
    is_uplink_P = np.array([fabric.port_label(port).startswith("tor1:up") for port in range(fabric.num_ports)])
    assert np.count_nonzero(record.tables["ports"]["tx_packets"][is_uplink_P]) == num_ports


def test_reordering_is_a_finding_that_names_its_cause(simulate: Simulate) -> None:
    """Two sprayed flows into one ToR overtake themselves where queues differ; go-back-N sends packets again."""
    pairs = [(nic, nic + HOSTS_PER_TOR) for nic in range(HOSTS_PER_TOR)]
    rows = [{"qp": qp, "bytes": 500_000} for qp in range(HOSTS_PER_TOR)]
    record = simulate(pairs, rows, choosing(mode="spray"), fabric=two_tors())
    (finding,) = [finding for finding in record.findings if finding.id == "netsim.reordered-packets"]
    out_of_order = record.run["packets"]["data_out_of_order"]
    assert out_of_order > 0
    assert finding.actual.startswith(f"{out_of_order} packets arrived out of order and ")
    assert record.tables["transfers"]["packets_retransmitted"].sum() > 0


def test_fixed_paths_say_nothing_of_order(simulate: Simulate) -> None:
    """The finding is about path choice, so it needs one."""
    assert not simulate([(0, 4)], [{"bytes": 100_000}], BARE, fabric=two_tors()).findings


def test_the_tables_of_next_hops_are_counted() -> None:
    """Before the run: a run that chooses needs more than one that does not, and flowlets need more again."""
    network, traffic = network_of(two_tors(), [(0, 4)]), traffic_of([{"bytes": 1000}])
    needed = [
        estimated_bytes(make_engine_inputs(network, traffic, compiled("none"), choosing(mode=mode), seed=0, probe=None))
        for mode in ("hash", "spray", "flowlet")
    ]
    assert needed[0] < needed[1] < needed[2]


def test_settings_out_of_range_are_refused_by_name() -> None:
    """A gap of nothing would be spraying under another name."""
    with pytest.raises(InputError, match=r"path_choice\.gap: 0 ns"):
        PathChoiceConfig(mode="flowlet", gap_ns=0)
