"""One run over several threads leaves the bytes that one thread leaves."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabrictune.conformance.netsim.deadlock import ring_network
from fabrictune.foundation.errors import InputError
from fabrictune.netsim import _engine
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.probes import ProbeConfig
from fabrictune.netsim.config.switch import PfcConfig
from fabrictune.netsim.config.transport import TransportConfig
from fabrictune.netsim.engine_inputs import search
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.memory import estimated_bytes
from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.packet import run as run_packets
from fabrictune.netsim.threads import thread_lines
from fabrictune.netsim.workloads.table import one_message_each
from fabrictune.scenario.compilation import compile_scenario
from fabrictune.scenario.files import load_scenario
from fabrictune.studies.simulation import run_engine
from tests.netsim import scenarios
from tests.recording import Record
from tests.skip.rounds import random_rounds
from tests.skip.runs import FAILING, LAWS, random_run
from tests.threads.cutter import Cutter
from tests.threads.runs import compare, every_run_compared, finished

SCENARIOS = Path(__file__).parents[2] / "scenarios"
LIGHT_SCENARIOS = ("incast", "slow-receiver", "link-flap", "shared-buffer")


@pytest.mark.parametrize("num_threads", [2, 3, 8])
def test_threads_change_nothing(num_threads: int, recorded: Record) -> None:
    """Runs with rings, incasts and messages under all laws, of which most are cut."""
    num_cut = 0
    for seed in range(12):
        run = random_run(seed)
        got = compare(run.inputs(), LAWS[run.law], num_threads)
        assert not got.differences, f"seed {seed}"
        recorded.hold(f"plain {seed}, {num_threads} threads", got.num_parts, got.peak_packets)
        num_cut += got.num_parts > 1
    assert num_cut > 6


@pytest.mark.parametrize("num_threads", [2, 5])
def test_random_runs_of_all_features_are_the_same(num_threads: int, recorded: Record) -> None:
    """Faults, priorities, selective repeat, path choice, captures and the rest, advanced a few events at a time."""
    probe, num_cut = ProbeConfig(interval_ns=2_000, ports="all", all_flows=True), 0
    for seed in range(60):
        scenario = scenarios.random_scenario(seed)
        capture = CaptureConfig(at="receiver") if seed % 2 else None
        inputs = scenarios.inputs_of(scenario, probe if seed % 3 else None, capture)
        per_slice = 10**8 if seed % 4 else 300
        got = compare(inputs, scenarios.COMPILED[scenario.law], num_threads, events_per_slice=per_slice)
        assert not got.differences, f"seed {seed}"
        recorded.hold(f"features {seed}, {num_threads} threads", got.num_parts, got.peak_packets)
        num_cut += got.num_parts > 1
    assert num_cut > 20


@pytest.mark.parametrize("num_threads", [2, 3, 8])
def test_every_node_is_in_the_part_that_the_definition_of_a_cut_gives_it(num_threads: int) -> None:
    """Over what has no delay, loses at random or waits at once, short and long wires; against the slow cutter."""
    num_cut = 0
    for seed in range(80):
        if seed % 2:
            run = random_rounds(seed) if seed % 4 == 1 else random_run(seed)
            inputs, law = run.inputs(), LAWS[run.law]
        else:
            scenario = scenarios.random_scenario(seed)
            inputs, law = scenarios.inputs_of(scenario), scenarios.COMPILED[scenario.law]
        inputs = replace(inputs, settings={**inputs.settings, "num_threads": num_threads})
        part_of_port = make_simulation(inputs, law).part_of_port
        if part_of_port:
            assert part_of_port == Cutter(inputs).part_of_port(num_threads), f"seed {seed}"
        num_cut += len(set(part_of_port)) > 1
    assert num_cut > 20


@pytest.mark.parametrize("name", LIGHT_SCENARIOS)
def test_bundled_scenarios_are_the_same(name: str) -> None:
    """With their own laws, probes and faults; `python -m tests.threads --scenarios` takes all of them."""
    compiled = compile_scenario(load_scenario(SCENARIOS / f"{name}.yaml"))
    with every_run_compared(2) as made:
        run_engine(compiled)
    assert [got.differences for got in made] == [()]


def test_a_deadlock_that_a_probe_finds_has_ended_before_it() -> None:
    """Three switches that wait for one another, a part each: the run's end is its last event, in whichever part."""
    network, law = ring_network(), LAWS["none"]
    pairs = network.queue_pairs
    _, traffic = one_message_each(pairs.source_nic_Q, pairs.destination_nic_Q, 2_000_000)
    config = PacketConfig(
        pfc=PfcConfig(xoff_bytes=80_000, xon_bytes=40_000), transport=TransportConfig(timeout_ns=1_000_000)
    )
    probe = ProbeConfig(interval_ns=1_000_000, ports="all")
    got = compare(make_engine_inputs(network, traffic, law, config, seed=0, probe=probe), law, 3)
    assert got.num_parts == 3
    assert not got.differences


def test_a_deadlock_ends_where_one_thread_finds_that_nothing_is_left() -> None:
    """The same three switches with queue pairs that give up: packets that nothing moves, and no probe."""
    network, law = ring_network(), LAWS["none"]
    pairs = network.queue_pairs
    _, traffic = one_message_each(pairs.source_nic_Q, pairs.destination_nic_Q, 2_000_000)
    config = PacketConfig(
        pfc=PfcConfig(xoff_bytes=80_000, xon_bytes=40_000), transport=TransportConfig(timeout_ns=1_000_000, retries=1)
    )
    inputs = make_engine_inputs(network, traffic, law, config, seed=0, probe=None)
    got = compare(inputs, law, 3)
    assert got.num_parts == 3
    assert not got.differences
    assert finished(inputs, law, 3, events_per_slice=10**8).advance(1) == _engine.Outcome.STALLED


@pytest.mark.parametrize("events_per_slice", [10**8, 300])
def test_a_law_fails_in_a_part_when_it_would_have_on_one_thread(events_per_slice: int) -> None:
    """The first fault of all parts, whose clocks are not the same: event, status, queue pair and instant."""
    for seed in range(8):
        inputs = replace(random_run(seed), law="narrow").inputs()
        faults = []
        for num_threads in (1, 2, 3):
            try:
                finished(inputs, FAILING, num_threads, events_per_slice=events_per_slice)
                faults.append(())
            except _engine.LawFaultError as fault:
                faults.append(fault.args)
        assert faults[1:] == faults[:1] * 2, f"seed {seed}"


def test_a_settled_run_has_what_there_is() -> None:
    """As at Ctrl-C; it goes on no more."""
    run = random_run(0)
    inputs = run.inputs()
    simulation = make_simulation(replace(inputs, settings={**inputs.settings, "num_threads": 2}), LAWS[run.law])
    simulation.advance(5_000)
    simulation.settle()
    counts = simulation.packet_counts()
    assert simulation.num_parts == 2
    assert counts["sent"] == counts["delivered"] + counts["dropped"] + counts["in_flight"] > 0
    assert simulation.transfer_columns()["acknowledged_ps"].max() <= simulation.now_ps
    with pytest.raises(RuntimeError, match="settled"):
        simulation.advance(1)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({}, "2 threads, with the same results as one"),
        ({"threads": 1}, ""),
        ({"skip": "bounded"}, "one thread: bounded skip"),
        ({"loss_fraction": 0.001}, "one thread: random loss"),
    ],
)
def test_the_record_says_how_many_threads_there_were(
    change: dict[str, Any], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or why there was one."""
    monkeypatch.setattr(search, "FEWEST_PACKET_HOPS", 0)  # so that no run is too short for exact skip
    run = random_run(0)
    config = replace(run.config, **{"threads": 2, **change})
    head = run_packets(run.network, run.traffic, LAWS["none"], config).run
    assert "".join(thread_lines(head)) == line
    assert head["threads"]["used"] == (2 if line.startswith("2") else 1)
    is_shared = config.skip == "exact" and config.threads > 1
    assert (head["skip"]["reason"] == "threads that share a run do not look for what repeats") == is_shared


def test_each_thread_has_its_own_state() -> None:
    """The memory estimate grows by what a part keeps, not by what Python does."""
    inputs = random_run(0).inputs()
    one, two, three = (
        estimated_bytes(replace(inputs, settings={**inputs.settings, "num_threads": number})) for number in (1, 2, 3)
    )
    assert one < two < 2 * one
    assert three - two == two - one


def test_threads_are_bounded() -> None:
    """One to 128."""
    with pytest.raises(InputError, match="1 to 128"):
        PacketConfig(threads=0)
