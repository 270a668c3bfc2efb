"""Coalesced acknowledgements: several packets in one, in any order, and none that a sender waits for in vain."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from tests.netsim.scenarios import random_scenario, with_trimming
from tests.netsim.test_reference import assert_equals_reference

Simulate = Callable[..., RunRecord]
PATIENT = TransportConfig(reliability="selective-repeat", reorder_window_ns=1_000_000, acknowledge_after_bytes=4096)
RARELY = replace(PATIENT, acknowledge_after_bytes=10**6)
EVERY_FOURTH = PacketConfig(
    mtu_bytes=1000,
    wire_overhead_bytes=0,
    ack_bytes=100,
    ecn=EcnConfig(enabled=False),
    transport=PATIENT,
)


def num_acknowledgements(record: RunRecord) -> int:
    """Return how many packets were no data; no law here sends notifications."""
    packets = record.run["packets"]
    return int(packets["delivered"] - packets["data_delivered"])


def test_one_stands_for_four(simulate: Simulate) -> None:
    """Of ten packets the fourth, the eighth, and the last, which ends the message."""
    record = simulate([(0, 1)], [{"bytes": 10_000}], EVERY_FOURTH)
    assert num_acknowledgements(record) == 3
    # Ten packets of 80 ns, one more hop for the last, two cables of 10 ns; 36 ns for its acknowledgement.
    assert record.tables["transfers"]["acknowledged_ps"].tolist() == [900_000 + 36_000]


def test_a_window_of_fewer_packets_waits_for_no_timeout(simulate: Simulate) -> None:
    """The second of two packets asks: a round trip of 80 + 216 ns for every two, until six are through."""
    window = replace(EVERY_FOURTH, transport=replace(RARELY, window_packets=2))
    record = simulate([(0, 1)], [{"bytes": 6000}], window)
    assert num_acknowledgements(record) == 3
    assert record.tables["transfers"]["acknowledged_ps"].tolist() == [3 * 296_000]
    assert record.tables["transfers"]["packets_retransmitted"].tolist() == [0]


def test_a_mark_is_answered_at_once(simulate: Simulate) -> None:
    """All that finds a queue is marked: more acknowledgements than one of a hundred, and each marked packet's own."""
    marking = EcnConfig(kmin_bytes=0, kmax_bytes=1, pmax_fraction=1.0)
    config = replace(EVERY_FOURTH, ecn=marking, pfc=PfcConfig(enabled=False), transport=RARELY)
    record = simulate([(0, 2), (1, 2)], [{"bytes": 30_000, "qp": qp} for qp in range(2)], config)
    num_marked = int(record.tables["ports"]["ecn_marked_packets"].sum())
    assert num_marked > 20
    assert num_marked <= num_acknowledgements(record) <= num_marked + 2


def test_packets_out_of_order_share_one(simulate: Simulate) -> None:
    """Where each early packet had an acknowledgement of its own, four have one now, and nothing is sent again."""
    fabric = build_fat_tree(FatTreeSpec(radix=4, link_rate_bps=100 * 10**9))
    pairs = [(source, 4 + source % 4) for source in range(8, 16)]
    rows = [{"bytes": 400_000, "qp": qp} for qp in range(len(pairs))]
    config = replace(EVERY_FOURTH, path_choice=PathChoiceConfig(mode="spray"))
    each = replace(config, transport=replace(PATIENT, acknowledge_after_bytes=None))
    ours, theirs = (simulate(pairs, rows, one, fabric=fabric) for one in (config, each))
    assert ours.run["packets"]["data_out_of_order"] > 1000
    assert num_acknowledgements(ours) < 0.4 * num_acknowledgements(theirs)
    assert ours.tables["transfers"]["packets_retransmitted"].sum() == 0
    assert ours.findings == ()


def test_lost_acknowledgements_are_made_up_by_later_bits(simulate: Simulate) -> None:
    """Half of what the sender would repeat for want of an acknowledgement has been reported by another."""
    lossy = replace(EVERY_FOURTH, loss_fraction=0.02, transport=replace(PATIENT, reorder_window_ns=20_000))
    record = simulate([(0, 1)], [{"bytes": 4_000_000}], lossy)
    dropped = record.run["packets"]["data_dropped"]
    resent = int(record.tables["transfers"]["packets_retransmitted"][0])
    assert record.run["outcome"] == "finished"
    assert dropped > 50
    assert dropped <= resent <= 2 * dropped


@pytest.mark.parametrize("first_seed", range(0, 40, 20))
def test_compiled_engine_equals_the_reference(first_seed: int) -> None:
    """Over random runs with spraying, which leaves gaps of more than 64 packets, with and without trimming."""
    num_packets = 0
    for seed in range(first_seed, first_seed + 20):
        scenario = random_scenario(seed)
        if seed % 2 == 0:
            scenario = with_trimming(scenario, "nscc")
        after = (1, 3_000, 20_000)[seed % 3]
        transport = replace(scenario.config.transport, reliability="selective-repeat", acknowledge_after_bytes=after)
        config = replace(scenario.config, transport=transport)
        config = replace(config, path_choice=PathChoiceConfig(mode="entropy", entropy="reps"))
        simulation = assert_equals_reference(replace(scenario, config=config))
        num_packets += simulation.packet_counts()["data_delivered"]
    assert num_packets > 1000
