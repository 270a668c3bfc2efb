"""Deadlocks: which ports are never resumed, by hand and in a run."""

import pytest

from fabrictune.cc import none
from fabrictune.conformance.netsim.deadlock import ring_network, ring_record
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.queues import BufferConfig, PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import PfcConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.deadlock import find_deadlock, stuck_ports
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.packet import make_simulation, run
from fabrictune.netsim.reference.engine import ReferenceEngine
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
    inputs = make_engine_inputs(network, traffic, law, config, seed=0, probe=None)
    simulation = make_simulation(inputs, law)
    num_held = 0
    while simulation.advance(100).name == "RUNNING":
        num_held += len(simulation.hold_columns()["port"])
        assert find_deadlock(simulation, inputs) is None
    assert num_held > 0
    assert (simulation.transfer_columns()["finish_ps"] > 0).all()


def shared(alpha: float, *, quanta: int | None = None, time_limit_ns: int | None = None) -> PacketConfig:
    """Return 4 MB of buffer for a switch, which its ports share."""
    return PacketConfig(
        queues=QueuesConfig(priorities=(PriorityConfig(lossless=True, alpha=alpha),)),
        buffer=BufferConfig(size_bytes=4_000_000),
        pfc=PfcConfig(quanta=quanta),
        time_limit_ns=time_limit_ns,
    )


@pytest.mark.parametrize("quanta", [None, 65_535])
@pytest.mark.parametrize("alpha", [0.25, 1.0, 8.0])
def test_a_deadlock_in_shared_buffers_is_named_as_well(alpha: float, quanta: int | None) -> None:
    """What waits for stuck ports keeps the thresholds of all others down, those of the hosts' ports among them."""
    network = ring_network()
    pairs = network.queue_pairs
    _, traffic = one_message_each(pairs.source_nic_Q, pairs.destination_nic_Q, 20_000_000)
    record = run(network, traffic, compiled("none"), shared(alpha, quanta=quanta))
    assert record.run["outcome"] == "stalled"
    finding = record.findings[0]
    assert finding.id == "netsim.pfc-deadlock"
    assert finding.entity == ("switch0:on -> switch1:back; switch1:on -> switch2:back; switch2:on -> switch0:back")


def test_a_deadlock_ends_the_run_before_its_time_limit() -> None:
    """Pauses that renew one another were simulated to the limit: it is an event, too, and none of a pause."""
    network = ring_network()
    pairs = network.queue_pairs
    _, traffic = one_message_each(pairs.source_nic_Q, pairs.destination_nic_Q, 20_000_000)
    config = shared(1.0, quanta=65_535, time_limit_ns=2_000_000_000)
    record = run(network, traffic, compiled("none"), config)
    assert record.run["outcome"] == "stalled"
    assert record.run["end_ps"] < 10**11
    law = compiled("none")
    inputs = make_engine_inputs(network, traffic, law, config, seed=0, probe=None)
    reference = ReferenceEngine(inputs, none)
    reference.run()
    assert (reference.outcome, reference.now_ps) == ("stalled", record.run["end_ps"])


@pytest.mark.parametrize("alpha", [0.25, 1.0, 8.0])
def test_pauses_of_a_shared_buffer_that_pass_are_no_deadlock(alpha: float) -> None:
    """Two hosts share one link as above; looked at every 100 events, none of their queues is stuck."""
    network = ring_network()
    pairs = network.queue_pairs
    _, traffic = one_message_each(pairs.source_nic_Q[:2], pairs.destination_nic_Q[:2], 20_000_000)
    law = compiled("none")
    inputs = make_engine_inputs(network, traffic, law, shared(alpha), seed=0, probe=None)
    simulation = make_simulation(inputs, law)
    num_held = 0
    while simulation.advance(100).name == "RUNNING":
        num_held += len(simulation.hold_columns()["port"])
        assert find_deadlock(simulation, inputs) is None
    assert num_held > 0
    assert (simulation.transfer_columns()["finish_ps"] > 0).all()
