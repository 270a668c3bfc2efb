"""Selective repeat: only what is lost is sent again, and overtaking is no loss. 100 Gb/s is 80 ps a byte."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fabrictune.cc.laws import load_law
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim._engine import Outcome
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.switch import PfcConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.memory import estimated_bytes
from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.reference.engine import ReferenceEngine
from fabrictune.topology.builders.fat_tree import FatTreeSpec, build_fat_tree
from tests.netsim.conftest import compiled, network_of, one_switch, traffic_of

Simulate = Callable[..., RunRecord]


def selective(window_packets: int) -> PacketConfig:
    """Return 1000 B packets and 100 B acknowledgements without overhead, under selective repeat."""
    return PacketConfig(
        mtu_bytes=1000,
        wire_overhead_bytes=0,
        ack_bytes=100,
        transport=TransportConfig(reliability="selective-repeat", window_packets=window_packets),
    )


def test_a_window_of_one_packet_is_stop_and_wait(simulate: Simulate) -> None:
    """A round trip is 2 * (80 + 10) + 2 * (8 + 10) = 216 ns: three packets take two of them and 180 ns."""
    record = simulate([(0, 1)], [{"bytes": 3000}], selective(window_packets=1))
    assert record.tables["transfers"]["finish_ps"].tolist() == [2 * 216_000 + 180_000]


def test_without_losses_it_is_go_back_n(simulate: Simulate) -> None:
    """What never happens makes no difference: every column is the same."""
    rows = [{"bytes": 200_000, "qp": qp} for qp in range(3)]
    pairs = [(0, 3), (1, 3), (2, 3)]
    ours = simulate(pairs, rows, PacketConfig(transport=TransportConfig(reliability="selective-repeat")), law="dcqcn")
    theirs = simulate(pairs, rows, PacketConfig(), law="dcqcn")
    for table in ("transfers", "ports"):
        for name, column in theirs.tables[table].items():
            assert ours.tables[table][name].tolist() == column.tolist(), name


def test_what_was_lost_is_sent_again_and_nothing_else(simulate: Simulate) -> None:
    """At 1 % loss go-back-N repeats a round trip a loss; here repetitions are the losses, and those of lost answers.

    An answer that is lost makes a packet look lost only if no later one stands for it: in the few that are in recovery.
    """
    lossy = PacketConfig(loss_fraction=0.01, transport=TransportConfig(reliability="selective-repeat"))
    record = simulate([(0, 1)], [{"bytes": 20_000_000}], lossy)
    dropped = record.run["packets"]["data_dropped"]
    resent = int(record.tables["transfers"]["packets_retransmitted"][0])
    assert dropped > 50
    assert dropped <= resent <= dropped + 5
    assert record.run["outcome"] == "finished"


def test_a_repetition_that_is_lost_is_noticed_without_a_timeout(simulate: Simulate) -> None:
    """Of 4,000 packets 200 are lost, and 10 of their repetitions; the run ends before any timeout could."""
    half_s = TransportConfig(reliability="selective-repeat", timeout_ns=500_000_000)
    lossy = PacketConfig(loss_fraction=0.05, transport=half_s, time_limit_ns=250_000_000)
    record = simulate([(0, 1)], [{"bytes": 8_000_000}, {"bytes": 8_000_000}], lossy)
    assert record.tables["transfers"]["finish_ps"][0] > 0


def test_losses_in_a_long_window_are_those_of_the_reference() -> None:
    """20 km hold some 2,500 packets of 1000 B: what is lost waits for Swift's window while hundreds behind it fly."""
    network = network_of(one_switch(2, cable_mm=20_000_000), [(0, 1)])
    lossy = replace(
        selective(window_packets=700), loss_fraction=0.01, pfc=PfcConfig(enabled=False), time_limit_ns=20_000_000
    )
    inputs = make_engine_inputs(
        network, traffic_of([{"bytes": 3_000_000}]), compiled("swift"), lossy, seed=1, probe=None
    )
    ours = make_simulation(inputs, compiled("swift"))
    assert ours.advance(10**8) == Outcome.TIME_LIMIT
    reference = ReferenceEngine(inputs, load_law("swift"), {})
    reference.run()
    for columns, truth in (
        (ours.transfer_columns(), reference.transfer_columns()),
        (ours.port_columns(), reference.port_columns()),
    ):
        for name, column in truth.items():
            np.testing.assert_array_equal(columns[name], column, err_msg=name)


def sprayed(simulate: Simulate, reorder_window_ns: int | None) -> RunRecord:
    """Return a run of four queue pairs that spray into one pod, beside others that make queues unequal."""
    fabric = build_fat_tree(FatTreeSpec(radix=4, link_rate_bps=100 * 10**9))
    pairs = [(source, 4 + source % 4) for source in range(8, 16)]
    config = PacketConfig(
        path_choice=PathChoiceConfig(mode="spray"),
        transport=TransportConfig(reliability="selective-repeat", reorder_window_ns=reorder_window_ns),
    )
    rows = [{"bytes": 400_000, "qp": qp} for qp in range(len(pairs))]
    return simulate(pairs, rows, config, fabric=fabric)


def test_overtaking_within_the_window_is_no_loss(simulate: Simulate) -> None:
    """Queues of 1 MB delay by 80 us at most, so nothing that is overtaken by less than 1 ms is ever sent again."""
    record = sprayed(simulate, 1_000_000)
    assert record.run["packets"]["data_out_of_order"] > 100
    assert record.tables["transfers"]["packets_retransmitted"].sum() == 0
    assert record.findings == ()


def test_overtaking_beyond_the_window_is_taken_for_loss_and_said(simulate: Simulate) -> None:
    """Without any tolerance the first packet that is overtaken is sent again, and the finding says what to raise."""
    record = sprayed(simulate, 0)
    assert record.tables["transfers"]["packets_retransmitted"].sum() > 0
    assert record.run["outcome"] == "finished"
    (finding,) = record.findings
    assert (finding.id, finding.next_step) == (
        "netsim.reordered-packets",
        "raise transport.reorder_window above the difference in delay between paths",
    )


@pytest.mark.parametrize(("window_packets", "tracked"), [(10, 10), (1024, 101)])
def test_memory_counts_what_both_ends_keep_track_of(window_packets: int, tracked: int) -> None:
    """100 kB in packets of 1000 B are estimated as 101, the window being the most that are tracked at once."""
    network, traffic = network_of(one_switch(2), [(0, 1)]), traffic_of([{"bytes": 100_000}])

    def needed(config: PacketConfig) -> int:
        return estimated_bytes(make_engine_inputs(network, traffic, compiled("none"), config, seed=0, probe=None))

    none, one = (needed(selective(packets)) for packets in (window_packets, 1))
    per_packet = needed(selective(window_packets=2)) - one
    assert none - one == (tracked - 1) * per_packet
