"""Trimming: what would wait too long is cut, answered and sent again. 100 Gb/s is 80 ps a byte, a cable 10 ns."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.queues import PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig, TrimmingConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from tests.netsim.conftest import compiled, network_of, one_switch, traffic_of
from tests.netsim.scenarios import random_scenario, with_trimming
from tests.netsim.test_reference import assert_equals_reference

Simulate = Callable[..., RunRecord]
TRIMS = PacketConfig(
    mtu_bytes=1000,
    wire_overhead_bytes=0,
    ack_bytes=100,
    ecn=EcnConfig(enabled=False),
    pfc=PfcConfig(enabled=False),
    trimming=TrimmingConfig(enabled=True, threshold_bytes=1000, last_hop_threshold_bytes=1000, trimmed_bytes=100),
    transport=TransportConfig(reliability="selective-repeat"),
)
PATIENT = TransportConfig(reliability="selective-repeat", reorder_window_ns=1_000_000)
INCAST = [(source, 3) for source in range(3)]
ONE_PACKET_EACH = [{"bytes": 1000, "qp": qp} for qp in range(3)]


def test_a_trimmed_packet_goes_first_and_is_sent_again_a_round_trip_later(simulate: Simulate) -> None:
    """Three packets are at the switch after 90 ns: one leaves, one waits, one is cut to 100 B and leaves before it.

    At 188 ns the receiver answers, at 224 the sender knows, and 180 ns later the packet is there.
    """
    record = simulate(INCAST, ONE_PACKET_EACH, TRIMS)
    assert record.tables["transfers"]["finish_ps"].tolist() == [180_000, 268_000, 404_000]
    assert record.tables["transfers"]["packets_retransmitted"].tolist() == [0, 0, 1]
    packets = record.run["packets"]
    assert (packets["data_trimmed"], packets["dropped"]) == (1, 0)
    assert record.findings == ()


def test_a_longer_threshold_trims_nothing(simulate: Simulate) -> None:
    """Two packets wait where two may."""
    longer = replace(TRIMS, trimming=replace(TRIMS.trimming, last_hop_threshold_bytes=2000))
    record = simulate(INCAST, ONE_PACKET_EACH, longer)
    assert record.tables["transfers"]["finish_ps"].tolist() == [180_000, 260_000, 340_000]
    assert record.run["packets"]["data_trimmed"] == 0


def test_packets_no_longer_than_trimmed_ones_are_left_alone(simulate: Simulate) -> None:
    """Nothing is gained by cutting 100 B to 100 B, so all wait."""
    record = simulate(INCAST, [{"bytes": 100, "qp": qp} for qp in range(3) for _ in range(12)], TRIMS)
    assert record.run["packets"]["data_trimmed"] == 0


def test_other_hops_have_a_threshold_of_their_own(simulate: Simulate) -> None:
    """Four flows leave a pod of two uplinks of one ToR: with room at hosts only, what is trimmed is trimmed there."""
    fabric = build_fat_tree(FatTreeSpec(radix=4, link_rate_bps=100 * 10**9))
    pairs = [(0, 4), (0, 8), (1, 12), (1, 6)]
    config = replace(TRIMS, trimming=replace(TRIMS.trimming, last_hop_threshold_bytes=10**6))
    rows = [{"bytes": 200_000, "qp": qp} for qp in range(4)]
    record = simulate(
        pairs, rows, replace(config, path_choice=PathChoiceConfig(mode="spray"), transport=PATIENT), fabric=fabric
    )
    assert record.run["packets"]["data_trimmed"] > 10
    assert (record.run["outcome"], record.findings) == ("finished", ())


def test_an_incast_under_nscc_finishes_without_a_drop_or_a_timeout(simulate: Simulate) -> None:
    """31 senders of 200 kB over 100 Gb/s: 6.3 MB with their headers, which take 506 us where the link never idles."""
    config = PacketConfig(
        ecn=EcnConfig(kmin_bytes=30_000, kmax_bytes=120_000, pmax_fraction=1.0),
        pfc=PfcConfig(enabled=False),
        trimming=TrimmingConfig(enabled=True),
        transport=TransportConfig(reliability="selective-repeat"),
    )
    pairs = [(source, 31) for source in range(31)]
    fabric = one_switch(32, cable_mm=550_000)
    rows = [{"bytes": 200_000, "qp": qp} for qp in range(31)]
    record = simulate(pairs, rows, config, law="nscc", fabric=fabric)
    packets = record.run["packets"]
    assert packets["data_trimmed"] > 100
    assert packets["dropped"] == 0
    finish_us = record.tables["transfers"]["finish_ps"].max() / 1e6
    assert 506 < finish_us < 1.1 * 506 + 12


def test_trimmed_packets_take_their_turns_in_a_priority_of_their_own(simulate: Simulate) -> None:
    """Cut to 100 B, a packet of the lower strict priority waits for the whole one, 80 ns, and all after it too."""
    priorities = (PriorityConfig(priority=3), PriorityConfig(priority=1), PriorityConfig(priority=6))
    queues = QueuesConfig(priorities=priorities, acknowledgements=6)
    pairs = [(source, 3) for source in range(3)]
    for priority, finish_ps in ((6, [180_000, 268_000, 404_000]), (1, [180_000, 260_000, 484_000])):
        config = replace(TRIMS, queues=queues, trimming=replace(TRIMS.trimming, priority=priority))
        record = simulate(pairs, ONE_PACKET_EACH, config)
        assert record.tables["transfers"]["finish_ps"].tolist() == finish_ps
        assert record.run["packets"]["data_trimmed"] == 1


def test_lossless_priorities_pause_and_are_not_trimmed(simulate: Simulate) -> None:
    """The same incast in two priorities: only the lossy one loses payload."""
    priorities = (PriorityConfig(priority=3, lossless=True), PriorityConfig(priority=1), PriorityConfig(priority=6))
    queues = QueuesConfig(priorities=priorities)
    config = replace(
        TRIMS, queues=queues, pfc=PfcConfig(), trimming=replace(TRIMS.trimming, priority=6), transport=PATIENT
    )
    rows = [{"bytes": 30_000, "qp": qp} for qp in range(3)]
    lossless = simulate(INCAST, rows, config)  # queue pairs have priority 3
    assert lossless.run["packets"]["data_trimmed"] == 0
    lossy = replace(priorities[0], lossless=False)
    record = simulate(INCAST, rows, replace(config, queues=replace(queues, priorities=(lossy, *priorities[1:]))))
    assert record.run["packets"]["data_trimmed"] > 10


@pytest.mark.parametrize("first_seed", range(1, 81, 40))
def test_compiled_engine_equals_the_reference_beside_priorities(first_seed: int) -> None:
    """Over random runs with priorities of which one is lossy and takes what is trimmed."""
    num_trimmed = 0
    for seed in range(first_seed, first_seed + 40, 2):
        simulation = assert_equals_reference(with_trimming(random_scenario(seed), "nscc"))
        num_trimmed += simulation.packet_counts()["data_trimmed"]
    assert num_trimmed > 100


@pytest.mark.parametrize("law", ["nscc", "dcqcn", "none"])
def test_compiled_engine_equals_the_reference(law: str) -> None:
    """A law that hears of trimmed packets, one that may hear of gaps, and none, over all other features."""
    num_trimmed = num_resent = 0
    for seed in range(0, 80, 2):
        simulation = assert_equals_reference(with_trimming(random_scenario(seed), law))
        packets = simulation.packet_counts()
        assert packets["sent"] == packets["delivered"] + packets["in_flight"] + packets["dropped"]
        num_trimmed += packets["data_trimmed"]
        num_resent += int(simulation.transfer_columns()["packets_retransmitted"].sum())
    assert num_trimmed > 0
    assert num_resent > 0


def test_a_capture_of_trimmed_packets_is_refused() -> None:
    """RoCE has no such packet, so a capture could only show something else."""
    network, traffic = network_of(one_switch(2), [(0, 1)]), traffic_of([{"bytes": 1}])
    with pytest.raises(InputError, match="switches that trim"):
        make_engine_inputs(network, traffic, compiled("none"), TRIMS, seed=0, probe=None, capture=CaptureConfig())
