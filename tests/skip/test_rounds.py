"""Rounds leave the bytes that a run without skip leaves."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.cc.compiler import compile_law
from fabrictune.netsim import _engine
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.switch import EcnConfig
from fabrictune.netsim.packet import make_simulation
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.queue_pairs import make_queue_pairs
from fabrictune.topology.routing import build_network
from tests.recording import Record
from tests.skip import steady_law
from tests.skip.rounds import Rows, random_rounds
from tests.skip.runs import LAWS, MTU_BYTES, Run, compare, finished

RUNS_PER_TEST = 20


@pytest.mark.parametrize("first_seed", range(0, 120, RUNS_PER_TEST))
def test_rounds_change_nothing(first_seed: int, recorded: Record) -> None:
    """Rings in steps, iterations with computation and NVLink, trains of messages; some are disturbed, some sampled."""
    num_skipped = 0
    for seed in range(first_seed, first_seed + RUNS_PER_TEST):
        run = random_rounds(seed)
        got = compare(run.inputs(), LAWS[run.law])
        assert not got.differences, f"seed {seed}"
        recorded.hold(f"rounds {seed}", got.num_skipped)
        num_skipped += got.num_skipped
    assert num_skipped > 0


def test_a_run_may_be_settled_between_rounds(recorded: Record) -> None:
    """As at Ctrl-C."""
    for seed in range(300, 330):
        run = random_rounds(seed)
        got = compare(run.inputs(), LAWS[run.law], events_per_slice=2_000)
        assert not got.differences, f"seed {seed}"
        recorded.hold(f"rounds {seed}, settled", got.num_skipped)


def _one_tor(rows: Rows, law: str) -> Run:
    fabric = build_clos(
        ClosSpec(
            num_hosts=8,
            hosts_per_tor_set=8,
            nics_per_host=1,
            tiers=2,
            nic_rate_bps=400 * 10**9,
            uplink_rate_bps=400 * 10**9,
            downlink_split=1,
            uplinks_per_tor=2,
        )
    )
    source_Q, destination_Q = np.ascontiguousarray(np.array(rows.pairs, np.int64).T)
    network = build_network(fabric, make_queue_pairs(source_Q, destination_Q), HashSpec())
    config = PacketConfig(mtu_bytes=MTU_BYTES)
    return Run(network=network, traffic=rows.trace(), config=config, law=law, seed=0, probe=None)


@pytest.mark.parametrize("law", ["none", "dcqcn", "swift"])
def test_steps_of_a_ring_too_short_for_periods_are_taken(law: str) -> None:
    """Messages of four packets, of which no component finds a period."""
    rows = Rows()
    before: list[int] = []
    for _ in range(200):
        before = [
            rows.send(rank, (rank + 1) % 8, 4 * MTU_BYTES, [before[rank - 1]] if before else []) for rank in range(8)
        ]
    got = compare(_one_tor(rows, law).inputs(), LAWS[law])
    assert not got.differences
    assert got.num_skipped > 0.9 * got.num_events


def test_iterations_that_are_longer_than_messages_are_taken() -> None:
    """Collisions at a port, computation and copies between GPUs, twenty-five times."""
    rows = Rows()
    before: list[int] = []
    for _ in range(25):
        sent = [rows.send(source, 7, 20 * MTU_BYTES, before) for source in (0, 1, 2)]
        sent.append(rows.send(3, 4, 7 * MTU_BYTES, [sent[0]]))
        before = [rows.wait(5_000_000, [*sent, rows.copy(0, 900_000, before)])]
    got = compare(_one_tor(rows, "none").inputs(), LAWS["none"])
    assert not got.differences
    assert got.num_skipped > 0.7 * got.num_events


def test_a_step_that_differs_ends_the_rounds() -> None:
    """One message is a packet longer; the others are taken all the same."""
    rows = Rows()
    last: list[int] = []
    for number in range(120):
        last = [rows.send(0, 1, (4 + (number == 60)) * MTU_BYTES, last)]
    got = compare(_one_tor(rows, "none").inputs(), LAWS["none"])
    assert not got.differences
    assert 0.7 * got.num_events < got.num_skipped < got.num_events


def test_marks_are_drawn_again_in_rounds(recorded: Record) -> None:
    """Three senders collide beyond the least queue that is marked, under a law that does not hear of it."""
    rows = Rows()
    before: list[int] = []
    for _ in range(25):
        sent = [rows.send(source, 7, 20 * MTU_BYTES, before) for source in (0, 1, 2)]
        before = [rows.wait(5_000_000, sent)]
    run = _one_tor(rows, "none")
    ecn = EcnConfig(kmin_bytes=10_000, kmax_bytes=40_000, pmax_fraction=0.1)
    inputs = replace(run, config=replace(run.config, ecn=ecn)).inputs()
    got = compare(inputs, LAWS["none"])
    assert not got.differences
    assert got.num_skipped > 0.7 * got.num_events
    marked = finished(inputs, LAWS["none"], skips=True, events_per_slice=10**8).port_columns()["ecn_marked_packets"]
    recorded.hold("marks in rounds", got.num_skipped, int(marked.sum()))


@pytest.mark.parametrize("most_acks", [37, 200, 201, 202, 203])
def test_a_law_fails_amid_rounds_when_it_would_have(most_acks: int) -> None:
    """A ring's steps of four packets: within a round at each of its acknowledgements, and in the first rounds."""
    rows = Rows()
    before: list[int] = []
    for _ in range(100):
        before = [
            rows.send(rank, (rank + 1) % 8, 4 * MTU_BYTES, [before[rank - 1]] if before else []) for rank in range(8)
        ]
    law = compile_law(steady_law, {"most_acks": most_acks})
    inputs = _one_tor(rows, "narrow").inputs()
    faults = []
    for skips in (False, True):
        simulation = make_simulation(replace(inputs, settings={**inputs.settings, "skips_repeats": skips}), law)
        with pytest.raises(_engine.LawFaultError) as refused:
            simulation.advance(10**8)
        faults.append(refused.value.args)
    assert faults[0] == faults[1]
    assert simulation.num_skipped_events > simulation.num_events / 2


@pytest.mark.parametrize("num_packets", [1_000, 2_000])
def test_rounds_in_which_a_component_sleeps_are_taken(num_packets: int, recorded: Record) -> None:
    """One long message beside twelve short ones: it is waked where a round is kept or compared, and sleeps again."""
    rows = Rows()
    before: list[int] = []
    for _ in range(20):
        last = before
        for _ in range(12):
            last = [rows.send(0, 1, 8 * MTU_BYTES, last)]
        before = [rows.wait(1_000_000, [rows.send(2, 3, num_packets * MTU_BYTES, before), *last])]
    got = compare(_one_tor(rows, "none").inputs(), LAWS["none"])
    assert not got.differences
    assert got.num_skipped > 0.9 * got.num_events
    recorded.hold(f"rounds, a message of {num_packets} packets asleep", got.num_skipped)


@pytest.mark.parametrize("fast_acks", [200, 201, 202, 203])
def test_rounds_end_where_the_law_changes_its_mind(fast_acks: int) -> None:
    """The rate is halved at each place of a ring's step of four packets: what was set free beyond it is taken back."""
    rows = Rows()
    before: list[int] = []
    for _ in range(100):
        before = [
            rows.send(rank, (rank + 1) % 8, 4 * MTU_BYTES, [before[rank - 1]] if before else []) for rank in range(8)
        ]
    got = compare(_one_tor(rows, "narrow").inputs(), compile_law(steady_law, {"fast_acks": fast_acks}))
    assert not got.differences
    assert got.num_skipped > got.num_events / 2
