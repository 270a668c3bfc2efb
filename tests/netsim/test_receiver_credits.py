"""Receiver credits: a receiver's link is shared out, and no sender waits for credit that never comes."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig
from fabrictune.netsim.config.transport import CreditsConfig, TransportConfig
from tests.netsim.conftest import one_switch
from tests.netsim.scenarios import Scenario, random_scenario, with_trimming
from tests.netsim.test_reference import assert_equals_reference

Simulate = Callable[..., RunRecord]
SELECTIVE = TransportConfig(reliability="selective-repeat", reorder_window_ns=1_000_000)
PLAIN = PacketConfig(
    mtu_bytes=1000,
    wire_overhead_bytes=0,
    ack_bytes=100,
    ecn=EcnConfig(enabled=False),
    pfc=PfcConfig(enabled=False),
    transport=SELECTIVE,
)
INCAST = [(source, 8) for source in range(8)]


def credited(window_bytes: int | None, *, config: PacketConfig = PLAIN, rate_fraction: float = 0.99) -> PacketConfig:
    """Return a configuration with credits."""
    credits_ = CreditsConfig(enabled=True, window_bytes=window_bytes, rate_fraction=rate_fraction)
    return replace(config, transport=replace(config.transport, credits=credits_))


def last_hop_queue(record: RunRecord) -> int:
    """Return the longest queue of any port; in an incast under one switch, the receiver's."""
    return int(record.tables["ports"]["max_queue_bytes"].max())


def test_what_fits_into_the_first_window_takes_as_long_as_without_credits(simulate: Simulate) -> None:
    """Ten packets leave before any grant."""
    rows = [{"bytes": 10_000}]
    ours, theirs = simulate([(0, 1)], rows, credited(10_000)), simulate([(0, 1)], rows, PLAIN)
    assert ours.tables["transfers"]["finish_ps"].tolist() == theirs.tables["transfers"]["finish_ps"].tolist()


def test_one_sender_is_held_to_the_rate_of_grants(simulate: Simulate) -> None:
    """10 MB at half of 100 Gb/s, less a window of 20 packets, take 1.6 ms less 3.2 us, and a round trip more."""
    record = simulate([(0, 1)], [{"bytes": 10_000_000}], credited(20_000, rate_fraction=0.5))
    finish_us = record.tables["transfers"]["finish_ps"][0] / 1e6
    assert 1600 - 3.2 < finish_us < 1600 - 3.2 + 1
    assert record.run["packets"]["grants"] == pytest.approx((10_000_000 - 20_000) / 4000, abs=10)


def test_an_incast_queues_no_more_than_the_first_windows(simulate: Simulate) -> None:
    """Eight senders of 1 MB with windows of 4 packets: 32 packets at most wait, where 8 MB would; none is idle."""
    rows = [{"bytes": 1_000_000, "qp": qp} for qp in range(8)]
    big = replace(PLAIN, pfc=PfcConfig(enabled=False, buffer_bytes=16_000_000))
    fabric = one_switch(9)
    ours = simulate(INCAST, rows, credited(4000, config=big), fabric=fabric)
    theirs = simulate(INCAST, rows, big, fabric=fabric)
    assert last_hop_queue(ours) <= 32_000
    assert last_hop_queue(theirs) > 6_000_000
    finish_us = ours.tables["transfers"]["finish_ps"] / 1e6
    assert finish_us.max() < 640 / 0.99 + 2  # 8 MB at 100 Gb/s, granted at 99 %
    assert finish_us.min() > 0.99 * finish_us.max()  # each had its turn


def test_a_message_after_a_pause_finds_credit_and_asks_for_none(simulate: Simulate) -> None:
    """While no one wants any, the receiver grants a window again; the second message is as fast as the first."""
    rows = [{"bytes": 8_000}, {"bytes": 8_000, "start_ps": 100_000_000}]
    finish_ps = simulate([(0, 1)], rows, credited(8_000)).tables["transfers"]["finish_ps"]
    assert finish_ps[1] - 100_000_000 == finish_ps[0]


def test_lost_grants_and_requests_are_made_up(simulate: Simulate) -> None:
    """A twentieth of all packets is lost, grants and requests among them, and no queue pair fails."""
    lossy = replace(PLAIN, loss_fraction=0.05, transport=replace(SELECTIVE, timeout_ns=20_000, reorder_window_ns=1_000))
    rows = [{"bytes": 200_000, "qp": qp} for qp in range(8)]
    record = simulate(INCAST, rows, credited(3_000, config=lossy), fabric=one_switch(9))
    assert record.run["outcome"] == "finished"
    assert record.run["packets"]["dropped"] > record.run["packets"]["data_dropped"] > 50


def test_credits_need_selective_repeat() -> None:
    """Go-back-N has no place where credit could be asked for again."""
    with pytest.raises(InputError) as error:
        TransportConfig(credits=CreditsConfig(enabled=True))
    assert str(error.value) == "transport.credits: reliability go-back-n\n  allowed: reliability selective-repeat"


def with_credits(scenario: Scenario) -> Scenario:
    """Return a scenario with credits, and windows below and above a packet."""
    dice = np.random.default_rng([scenario.seed, 7])
    chosen = CreditsConfig(
        enabled=True,
        window_bytes=dice.choice(np.array([None, 700, 3_000, 50_000], object)),
        grant_packets=int(dice.choice([1, 4])),
        rate_fraction=float(dice.choice([0.6, 0.99, 1.0])),
    )
    transport = replace(scenario.config.transport, reliability="selective-repeat", credits=chosen)
    return replace(scenario, config=replace(scenario.config, transport=transport))


@pytest.mark.parametrize("first_seed", range(0, 80, 20))
def test_compiled_engine_equals_the_reference(first_seed: int) -> None:
    """Over all other features, priorities and faults included, half of the runs with switches that trim."""
    num_grants = num_resent = 0
    for seed in range(first_seed, first_seed + 20):
        scenario = random_scenario(seed)
        if seed % 4 == 0:
            scenario = with_trimming(scenario, "nscc")
        simulation = assert_equals_reference(with_credits(scenario))
        num_grants += simulation.packet_counts()["grants"]
        num_resent += int(simulation.transfer_columns()["packets_retransmitted"].sum())
    assert num_grants > 1000
    assert num_resent > 0
