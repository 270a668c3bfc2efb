"""Deadlocks: which ports are never resumed, by hand and in a run."""

import pytest

from fabrictune.conformance.netsim.deadlock import ring_network, ring_record
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.switch import PfcConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.deadlock import find_deadlock, stuck_ports
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.packet import make_simulation, run
from fabrictune.netsim.workloads.table import one_message_each
from tests.netsim.conftest import compiled


def test_a_buffer_that_can_drain_enough_is_not_stuck() -> None:
    """Port 1 is resumed at 10 B: of its 100 B, 95 are for a free port, so it will be; then port 2 is not stuck."""
    bytes_for = {1: {2: 5, 9: 95}, 2: {1: 100}}
    assert stuck_ports({1: 10, 2: 10}, bytes_for) == set()


def test_ports_that_wait_for_one_another_are_stuck_and_those_behind_them_too() -> None:
    """1 and 2 wait for each other; 3 waits for 1, so it is stuck as well; 4 waits for a port that is not held."""
    bytes_for = {1: {2: 11}, 2: {1: 11, 9: 50}, 3: {1: 50}, 4: {9: 50}}
    assert stuck_ports(dict.fromkeys([1, 2, 3, 4], 10), bytes_for) == {1, 2, 3}


def test_the_threshold_itself_is_enough_to_resume() -> None:
    """A switch resumes at 10 B, so 10 B that never drain do no harm and 11 B do."""
    assert stuck_ports({1: 10, 2: 10}, {1: {2: 10}, 2: {1: 11}}) == set()
    assert stuck_ports({1: 10, 2: 10}, {1: {2: 11}, 2: {1: 11}}) == {1, 2}


def test_a_run_that_deadlocks_stalls_and_names_the_ring_and_nothing_else() -> None:
    """Three switches wait for one another, and the three NICs for them; the ring is the ports between switches."""
    record = ring_record()
    assert record.run["outcome"] == "stalled"
    finding = record.findings[0]
    assert finding.id == "netsim.pfc-deadlock"
    assert finding.entity == ("switch0:on -> switch1:back; switch1:on -> switch2:back; switch2:on -> switch0:back")
    assert finding.actual.startswith("a cycle of 3 ports is never resumed and blocks 3 more; they hold ")


@pytest.mark.parametrize("probe", [None, ProbeConfig(interval_ns=1_000_000, ports="all")])
def test_a_deadlock_ends_the_run_whether_or_not_it_is_probed(probe: ProbeConfig | None) -> None:
    """A sample every millisecond must not keep alive a run in which nothing else can happen."""
    network = ring_network()
    pairs = network.queue_pairs
    _, traffic = one_message_each(pairs.source_nic_Q, pairs.destination_nic_Q, 2_000_000)
    config = PacketConfig(
        pfc=PfcConfig(xoff_bytes=80_000, xon_bytes=40_000), transport=TransportConfig(timeout_ns=1_000_000)
    )
    record = run(network, traffic, compiled("none"), config, probe=probe)
    assert record.run["outcome"] == "stalled"
    assert record.run["end_ps"] < 20 * 10**9


def test_pauses_that_pass_are_no_deadlock() -> None:
    """Two of the three hosts share one link, which pauses both in turn; no buffer waits for itself."""
    network = ring_network()
    pairs = network.queue_pairs
    _, traffic = one_message_each(pairs.source_nic_Q[:2], pairs.destination_nic_Q[:2], 2_000_000)
    config = PacketConfig(pfc=PfcConfig(xoff_bytes=80_000, xon_bytes=40_000))
    law = compiled("none")
    simulation = make_simulation(make_engine_inputs(network, traffic, law, config, seed=0, probe=None), law)
    num_held = 0
    while simulation.advance(100).name == "RUNNING":
        num_held += len(simulation.hold_columns()["port"])
        assert find_deadlock(simulation) is None
    assert num_held > 0
    assert (simulation.transfer_columns()["finish_ps"] > 0).all()
