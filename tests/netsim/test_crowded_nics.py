"""The compiled engine against the plain one where NICs are crowded: their turns, pace, and ports that fail."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.foundation.traces import UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.netsim.config.faults import LinkDown
from fabrictune.netsim.faults.timeline import changes, down_ports, fault_intervals
from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.reference.engine import ReferenceEngine
from fabrictune.topology.failures import follow_failures
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network
from tests.netsim.scenarios import (
    COMPILED,
    LAWS,
    Scenario,
    inputs_of,
    random_config,
    random_fabric,
    with_priorities,
)

NUM_PAIRS = 16


def crowded(seed: int) -> Scenario:
    """Return a run of 16 queue pairs from two NICs of two ports each, which lose one of these for a while."""
    dice = np.random.default_rng([seed, 6])
    fabric = random_fabric(dice, is_dual=True)
    source_Q = dice.choice([0, 1], NUM_PAIRS)
    network = build_network(fabric, make_queue_pairs(source_Q, dice.choice([2, 3], NUM_PAIRS)), HashSpec())
    config = replace(random_config(seed, dice), time_limit_ns=400_000)
    if seed % 2:
        _, _, config = with_priorities(network, config, dice)
        priorities = [one.priority for one in config.queues.priorities]
        pairs = replace(network.queue_pairs, priority_Q=dice.choice(priorities, NUM_PAIRS))
        network = build_network(fabric, pairs, HashSpec())
    ports = dice.choice(np.flatnonzero(fabric.port_nic_P < 2), 2)
    begins_ns = np.cumsum(dice.integers(1_000, 6_000, 4)).tolist()
    faults = fault_intervals(
        fabric,
        [
            LinkDown(link=fabric.port_label(int(port)), at_ns=begin_ns, until_ns=begin_ns + 900)
            for port, begin_ns in zip(np.resize(ports, 4), begins_ns, strict=True)
        ],
        config,
    )
    states = down_ports(changes(fabric, faults))
    return Scenario(
        network=follow_failures(network, HashSpec(), states, delay_ps=1),
        traffic=_messages(dice),
        config=config,
        law=str(dice.choice(list(LAWS))),
        seed=seed,
        faults=faults,
    )


def _messages(dice: np.random.Generator) -> TrafficTrace:
    """Return two messages a queue pair, of which the second is ready while the first is on its way."""
    rows = 2 * NUM_PAIRS
    return TrafficTrace(
        source_N=np.zeros(rows, np.int64),
        destination_N=np.zeros(rows, np.int64),
        medium_N=np.full(rows, Medium.FABRIC, np.int64),
        qp_N=np.tile(np.arange(NUM_PAIRS), 2),
        bytes_N=dice.choice([1, 1_000, 5_500, 20_000], rows),
        start_ps_N=np.repeat([0, 2_000_000], NUM_PAIRS) + dice.integers(0, 2_000_000, rows),
        delay_ps_N=np.zeros(rows, np.int64),
        operation_N=np.full(rows, UNKNOWN, np.int64),
        dependencies=Dependencies.none(rows),
    )


@pytest.mark.parametrize("first_seed", range(0, 40, 10))
def test_both_engines_give_crowded_nics_the_same_turns(first_seed: int) -> None:
    """Queue pairs enter the ring by pace, by window and from the other port, and leave it from any place."""
    for seed in range(first_seed, first_seed + 10):
        scenario = crowded(seed)
        inputs = inputs_of(scenario)
        compiled = make_simulation(inputs, COMPILED[scenario.law])
        outcome = compiled.advance(10**8).name.lower().replace("_", "-")
        reference = ReferenceEngine(inputs, *LAWS[scenario.law])
        reference.run()
        assert (outcome, compiled.now_ps) == (reference.outcome, reference.now_ps), f"seed {seed}"
        assert compiled.flow_records() == reference.flow_records(), f"seed {seed}"
        for ours, truth in (
            (compiled.transfer_columns(), reference.transfer_columns()),
            (compiled.port_columns(), reference.port_columns()),
            (compiled.queue_columns(), reference.queue_columns()),
            (compiled.fault_drop_columns(), reference.fault_drop_columns()),
        ):
            for name, column in truth.items():
                np.testing.assert_array_equal(ours[name], column, err_msg=f"seed {seed}, {name}")
