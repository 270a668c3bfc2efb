"""The fluid's kernel: what a transfer takes alone and among others, against the packet engine and the reference."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.arrays import IntArray
from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.engine_inputs.inputs import EngineInputs, make_engine_inputs
from fabrictune.netsim.fluid.kernel import MOST_UNCROWDED, Widening, Widenings, make_fluid, run_to_the_end, start
from fabrictune.netsim.ideal import IdealTimes
from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.reference.fluid import Flow, FluidReference, Wire
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.network import NO_PORT, Network
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network
from tests.skip.runs import LAWS, make_trace, random_run

NUM_HOSTS, MB = 8, 10**6
COLUMNS = ("ready_ps", "start_ps", "finish_ps", "acknowledged_ps")


def network_of(source_Q: Any, destination_Q: Any, **changes: Any) -> Network:
    """Return queue pairs of eight hosts under two ToRs with an uplink each."""
    shape = {"num_hosts": NUM_HOSTS, "hosts_per_tor_set": NUM_HOSTS // 2, "nics_per_host": 1, "tiers": 2}
    rates = {"nic_rate_bps": 400 * 10**9, "uplink_rate_bps": 400 * 10**9, "downlink_split": 1, "uplinks_per_tor": 1}
    fabric = build_clos(ClosSpec(**{**shape, **rates, "host_cable_mm": 3_000, **changes}))
    return build_network(fabric, make_queue_pairs(np.array(source_Q), np.array(destination_Q)), HashSpec())


def inputs_of(network: Network, traffic: Any) -> EngineInputs:
    return make_engine_inputs(network, traffic, LAWS["none"], PacketConfig(), seed=3, probe=None)


def finished(inputs: EngineInputs, most_uncrowded: int = MOST_UNCROWDED) -> _engine.Fluid:
    fluid = make_fluid(inputs, most_uncrowded=most_uncrowded)
    start(fluid)
    run_to_the_end(fluid)
    return fluid


def columns_of(run: Any, num: int, names: tuple[str, ...] = COLUMNS) -> Mapping[str, IntArray]:
    return {name: run.transfer_column(name, 0, num) for name in names}


def in_packets(inputs: EngineInputs) -> _engine.Simulation:
    simulation = make_simulation(inputs, LAWS["none"])
    while simulation.advance(10**8) == _engine.Outcome.RUNNING:
        pass
    return simulation


@pytest.mark.parametrize("nic_gbps", [100, 300, 400])
@pytest.mark.parametrize("num_bytes", [1, 4096, 5000, 1_000_000])
def test_a_transfer_alone_takes_what_it_takes_in_packets(num_bytes: int, nic_gbps: int) -> None:
    """To the picosecond, its acknowledgement included, over links of one rate or several."""
    network = network_of([0], [5], nic_rate_bps=nic_gbps * 10**9)
    inputs = inputs_of(network, make_trace([0], [num_bytes], [7_000], [[]]))
    ours, truth = columns_of(finished(inputs), 1), columns_of(in_packets(inputs), 1)
    assert {name: column.tolist() for name, column in ours.items()} == {
        name: column.tolist() for name, column in truth.items()
    }


def test_transfers_that_share_a_port_have_equal_shares() -> None:
    """Three on one uplink, one of them half as long: the others have a third, then half, then the link."""
    network = network_of([0, 1, 2], [4, 5, 6])
    inputs = inputs_of(network, make_trace([0, 1, 2], [10 * MB, 20 * MB, 30 * MB], [0, 0, 0], [[], [], []]))
    fluid = finished(inputs)
    finish_us = fluid.transfer_column("finish_ps", 0, 3) / 1e6
    wire = 4178 / 4096 * 8 / 400e3  # microseconds a byte
    assert finish_us == pytest.approx([30 * MB * wire, 50 * MB * wire, 60 * MB * wire], rel=0.01)
    assert fluid.transfer_column("held_ps", 0, 3) / 1e6 == pytest.approx(
        [30 * MB * wire, 50 * MB * wire, 50 * MB * wire], rel=0.01
    )


def test_acknowledgements_take_their_part() -> None:
    """Two hosts that send to each other take a packet and an acknowledgement each packet, as packets do."""
    network = network_of([0, 1], [1, 0])
    inputs = inputs_of(network, make_trace([0, 1], [10 * MB] * 2, [0, 0], [[], []]))
    ours, truth = (columns_of(run, 2)["finish_ps"] for run in (finished(inputs), in_packets(inputs)))
    assert ours == pytest.approx(truth, rel=2e-5)
    assert ours[0] > 1.02 * IdealTimes(network, PacketConfig()).of(np.array([0]), np.array([10 * MB]))[0]


def test_a_queue_pair_sends_one_after_another() -> None:
    """In the order in which they became ready; the second begins when the first has been sent."""
    network = network_of([0], [1])
    inputs = inputs_of(network, make_trace([0, 0], [MB, MB], [0, 1_000], [[], []]))
    ours, truth = columns_of(finished(inputs), 2), columns_of(in_packets(inputs), 2)
    assert ours["ready_ps"].tolist() == truth["ready_ps"].tolist()
    assert ours["finish_ps"] == pytest.approx(truth["finish_ps"], rel=1e-3)


def test_what_waits_begins_when_all_it_waits_for_is_done() -> None:
    """Its own delay later, also where it waits for transfers that cross no fabric."""
    network = network_of([0, 1], [1, 2])
    traffic = make_trace([0, 1, 0], [MB, MB, MB], [0, 5_000, 0], [[], [], [0, 1]])
    traffic = replace(traffic, delay_ps_N=np.array([0, 0, 123]))
    columns = columns_of(finished(inputs_of(network, traffic)), 3)
    assert columns["ready_ps"][2] == columns["finish_ps"][:2].max() + 123


def test_bounds_widen_from_transfer_to_transfer() -> None:
    """A tenth of what is uncertain of each; without widening there is no doubt; one begun anew is the same."""
    network = network_of([0, 1, 2], [4, 5, 6])
    inputs = inputs_of(network, make_trace([0, 1, 0], [10 * MB] * 3, [0, 0, 0], [[], [], [0]]))
    sure = finished(inputs)
    names = (*COLUMNS, "finish_low_ps", "finish_high_ps", "uncertain_ps")
    columns = columns_of(sure, 3, names)
    assert columns["finish_low_ps"].tolist() == columns["finish_ps"].tolist() == columns["finish_high_ps"].tolist()
    start(sure, Widenings(alone=Widening(late=0.1), held=Widening(late=0.1)))
    run_to_the_end(sure)
    again = columns_of(sure, 3, names)
    assert again["finish_ps"].tolist() == columns["finish_ps"].tolist()
    late_ps = again["finish_high_ps"] - again["finish_ps"]
    assert late_ps[0] == pytest.approx(0.1 * again["uncertain_ps"][0], abs=2)
    assert late_ps[2] >= late_ps[0] + 0.1 * again["uncertain_ps"][2] - 2
    assert (again["finish_low_ps"] == again["finish_ps"]).all()


def test_acknowledgements_of_slow_flows_take_little() -> None:
    """Seven senders to each of eight hosts: their acknowledgements together take what those of one flow take alone."""
    pairs = [(source, destination) for source in range(8) for destination in range(8) if source != destination]
    network = network_of(*zip(*pairs, strict=True), hosts_per_tor_set=8)
    num = len(pairs)
    inputs = inputs_of(network, make_trace(np.arange(num), [MB] * num, [0] * num, [[]] * num))
    ours, truth = (columns_of(run, num)["finish_ps"].max() for run in (finished(inputs), in_packets(inputs)))
    assert ours == pytest.approx(truth, rel=0.01)


def test_ends_in_a_crowd_fall_together() -> None:
    """Late by 1/256 of their time at most, never early, so that there are fewer instants."""
    pairs = [(source, destination) for source in range(4) for destination in range(4, 8)]
    network = network_of(*zip(*pairs, strict=True))
    num = len(pairs)
    inputs = inputs_of(network, make_trace(np.arange(num), MB + 1_000 * np.arange(num), [0] * num, [[]] * num))
    alone_ps, crowd_ps = (columns_of(finished(inputs, most), num)["finish_ps"] for most in (num, num - 1))
    assert len(np.unique(crowd_ps)) < len(np.unique(alone_ps)) == num
    assert (crowd_ps >= alone_ps).all()
    assert (crowd_ps <= alone_ps * (1 + 1 / 256)).all()


@pytest.mark.parametrize("most_uncrowded", [MOST_UNCROWDED, 2])
@pytest.mark.parametrize("seed", range(40))
def test_random_runs_are_those_of_the_reference(seed: int, most_uncrowded: int) -> None:
    """Starts and finishes, to some picoseconds that rounding makes; groups of three or more flows may be crowds."""
    run = replace(random_run(seed), probe=None)
    traffic = run.traffic
    dice = np.random.default_rng([seed, 77])
    start_ps_N = dice.integers(0, 50_000_000, len(traffic))
    traffic = make_trace(traffic.qp_N, np.minimum(traffic.bytes_N, 10**6), start_ps_N, [[]] * len(traffic))
    config = replace(run.config, time_limit_ns=None)
    inputs = replace(run, traffic=traffic, config=config).inputs()
    ours = columns_of(finished(inputs, most_uncrowded), len(traffic))
    flows = reference_flows(run.network, inputs, config, most_uncrowded)
    assert ours["start_ps"] == pytest.approx([flow.start_ps for flow in flows], abs=50)
    assert ours["finish_ps"] == pytest.approx([flow.finish_ps for flow in flows], abs=50)


def reference_flows(
    network: Network, inputs: EngineInputs, config: PacketConfig, most_uncrowded: int = MOST_UNCROWDED
) -> list[Flow]:
    """Return the transfers as the reference runs them."""
    traffic, port_QDH = inputs.traffic, network.epochs[0].port_QDH
    alone_ps_N = IdealTimes(network, config).of(traffic.qp_N, traffic.bytes_N)
    columns = (traffic.qp_N, traffic.bytes_N, traffic.start_ps_N, alone_ps_N)
    flows = [
        Flow(queue_pair=qp, num_bytes=size, ready_ps=ready_ps, alone_ps=alone_ps)
        for qp, size, ready_ps, alone_ps in zip(*(column.tolist() for column in columns), strict=True)
    ]
    paths = [[[int(port) for port in row if port != NO_PORT] for row in both] for both in port_QDH]
    reference = FluidReference(
        data=[both[0] for both in paths],
        acknowledgements=[both[1] for both in paths],
        rate_bps=network.fabric.port_rate_bps_P.tolist(),
        wire=Wire(
            mtu_bytes=config.mtu_bytes,
            overhead_bytes=config.wire_overhead_bytes,
            ack_bytes=config.ack_bytes,
            ack_every_packets=config.ack_every_packets,
        ),
        most_uncrowded=most_uncrowded,
    )
    reference.run(flows)
    return flows
