"""The compiled engine against the plain Python one, on random small runs."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.netsim._engine import Simulation
from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.reference.engine import ReferenceEngine
from fabrictune.netsim.reference.ports import QUEUE_COLUMNS
from tests.netsim.scenarios import COMPILED, LAWS, Scenario, inputs_of, random_scenario

RUNS_PER_TEST = 10


@pytest.mark.parametrize("first_seed", range(0, 200, RUNS_PER_TEST))
def test_compiled_engine_equals_the_reference(first_seed: int) -> None:
    """Two engines that share no code agree on every table, so neither hides a slip of the other."""
    for seed in range(first_seed, first_seed + RUNS_PER_TEST):
        assert_equals_reference(random_scenario(seed))


def assert_equals_reference(scenario: Scenario) -> Simulation:
    """Run a scenario on both engines, hold every table of one against the other's, and return the compiled one."""
    seed, inputs = scenario.seed, inputs_of(scenario)
    compiled = make_simulation(inputs, COMPILED[scenario.law])
    outcome = compiled.advance(10**8).name.lower().replace("_", "-")
    reference = ReferenceEngine(inputs, *LAWS[scenario.law])
    reference.run()
    assert (outcome, compiled.now_ps) == (reference.outcome, reference.now_ps), f"seed {seed}"
    pairs = [
        (compiled.transfer_columns(), reference.transfer_columns()),
        (compiled.port_columns(), reference.port_columns()),
        (compiled.queue_columns(), reference.queue_columns()),
    ]
    if scenario.faults:
        pairs.append((compiled.fault_drop_columns(), reference.fault_drop_columns()))
    assert compiled.flow_records() == reference.flow_records(), f"seed {seed}"
    for ours, truth in pairs:
        for name, column in truth.items():
            np.testing.assert_array_equal(ours[name], column, err_msg=f"seed {seed}, {name}")
    return compiled


@pytest.mark.parametrize("first_seed", range(0, 100, RUNS_PER_TEST))
def test_the_full_engine_equals_the_lean_one(first_seed: int) -> None:
    """What a run leaves does not tell which of the two took it: about a fifth of the random runs need nothing rare."""
    for seed in range(first_seed, first_seed + RUNS_PER_TEST):
        scenario = random_scenario(seed)
        law = COMPILED[scenario.law]
        inputs = inputs_of(scenario)
        forced = replace(inputs, settings={**inputs.settings, "force_full": True})
        chosen, full = make_simulation(inputs, law), make_simulation(forced, law)
        assert chosen.advance(10**8) == full.advance(10**8), f"seed {seed}"
        assert chosen.packet_counts() == full.packet_counts(), f"seed {seed}"
        assert chosen.flow_records() == full.flow_records()
        for ours, truth in (
            (full.transfer_columns(), chosen.transfer_columns()),
            (full.port_columns(), chosen.port_columns()),
        ):
            assert {name: column.tobytes() for name, column in ours.items()} == {
                name: column.tobytes() for name, column in truth.items()
            }, f"seed {seed}"


def test_random_runs_reach_every_feature() -> None:
    """Agreement means little if nothing happened: together the runs lose, pause, mark, notify, resend and stall."""
    seen: set[str] = set()
    for seed in range(200):
        scenario = random_scenario(seed)
        law = COMPILED[scenario.law]
        simulation = make_simulation(inputs_of(scenario), law)
        seen.add(simulation.advance(10**8).name)
        seen |= {name for name, count in simulation.packet_counts().items() if count}
        columns = simulation.port_columns() | simulation.transfer_columns() | simulation.fault_drop_columns()
        seen |= {name for name, column in columns.items() if column.any()}
        seen |= {f"queues.{name}" for name, column in simulation.queue_columns().items() if column.any()}
    assert seen >= {"FINISHED", "STALLED", "TIME_LIMIT", "dropped_packets", "pauses", "ecn_marked_packets", "cnps"}
    assert seen >= {"packets_retransmitted", "data_out_of_order", "data_refused", "link_down", "no_route", "bit_error"}
    assert seen >= {f"queues.{name}" for name in QUEUE_COLUMNS}
    assert seen >= {"queues.input_dropped_packets", "queues.max_headroom_bytes"}


@pytest.mark.parametrize("seed", range(60))
def test_every_packet_is_accounted_for(seed: int) -> None:
    """Sent = delivered + in flight + dropped, wherever a run stops; in flight is counted by the packet pool itself."""
    scenario = random_scenario(seed)
    law = COMPILED[scenario.law]
    simulation = make_simulation(inputs_of(scenario), law)
    while simulation.advance(50).name == "RUNNING":
        packets = simulation.packet_counts()
        assert packets["sent"] == packets["delivered"] + packets["in_flight"] + packets["dropped"]
    packets = simulation.packet_counts()
    assert packets["sent"] == packets["delivered"] + packets["in_flight"] + packets["dropped"]
