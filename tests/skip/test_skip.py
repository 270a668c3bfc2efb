"""Exact skip leaves the bytes that a run without it leaves."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from fabrictune.conformance.suite import collect_cases
from fabrictune.foundation.cases import Case
from fabrictune.netsim import _engine
from fabrictune.netsim.packet import make_simulation
from fabrictune.netsim.packet import run as run_packets
from fabrictune.netsim.skip import skip_lines
from fabrictune.scenario.compilation import compile_scenario
from fabrictune.scenario.files import load_scenario
from fabrictune.studies.simulation import run_engine
from tests.netsim import scenarios
from tests.recording import Record
from tests.skip.features import FEATURES, featured_run, with_loss
from tests.skip.rounds import random_rounds
from tests.skip.runs import (
    FAILING,
    LAWS,
    MTU_BYTES,
    Run,
    compare,
    every_run_compared,
    make_trace,
    random_run,
    searching_long,
    searching_shortly,
)
from tests.skip.targets import INCAST, NEVER_SKIPPED, TARGETS, run_of

RUNS_PER_TEST = 10
LONG, SHORT = 5, 2  # seeds of random runs that are searched, and are not
SCENARIOS = Path(__file__).parents[2] / "scenarios"
LIGHT_SCENARIOS = ("incast", "slow-receiver", "link-flap", "shared-buffer")
LIGHT_CASES = ("incast-8", "permutation-16", "pfc", "go-back-n")
CASES = [case for case in collect_cases(["netsim."]) if any(part in case.name for part in LIGHT_CASES)]


@pytest.mark.parametrize("first_seed", range(0, 60, RUNS_PER_TEST))
def test_skip_changes_nothing(first_seed: int, recorded: Record) -> None:
    """Every column, the laws' records and the number of events are the same, in runs of which much is skipped."""
    num_skipped = num_events = 0
    for seed in range(first_seed, first_seed + RUNS_PER_TEST):
        run = random_run(seed)
        got = compare(run.inputs(), LAWS[run.law])
        assert not got.differences, f"seed {seed}"
        recorded.hold(f"plain {seed}", got.num_skipped)
        num_skipped += got.num_skipped
        num_events += got.num_events
    assert num_skipped > num_events / 4


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: str(feature.__name__))
def test_skip_changes_nothing_with(feature: Callable[[Run, np.random.Generator], Run], recorded: Record) -> None:
    """The same where a run has what only the full engine has; each is skipped, but for wires that lose at random."""
    num_skipped = 0
    for seed in range(20):
        run = feature(random_run(seed), np.random.default_rng([seed, 57]))
        got = compare(run.inputs(), LAWS[run.law], events_per_slice=3_000 if seed % 4 == 0 else 10**8)
        assert not got.differences, f"seed {seed}"
        recorded.hold(f"{feature.__name__} {seed}", got.num_skipped)
        num_skipped += got.num_skipped
    assert (num_skipped > 0) == (feature is not with_loss)


def test_skip_changes_nothing_with_several_features(recorded: Record) -> None:
    """One to three of them at once."""
    num_skipped = 0
    for seed in range(80):
        run = featured_run(seed)
        got = compare(run.inputs(), LAWS[run.law])
        assert not got.differences, f"seed {seed}"
        recorded.hold(f"featured {seed}", got.num_skipped)
        num_skipped += got.num_skipped
    assert num_skipped > 0


@pytest.mark.parametrize("name", TARGETS)
def test_what_random_runs_seldom_have_is_skipped(name: str, recorded: Record) -> None:
    """Pauses in a cycle, notifications to come, weights, late answers: the same, and skipped, all but one."""
    run = TARGETS[name]()
    got = compare(searching_long(run.inputs()), LAWS[run.law])
    assert not got.differences
    recorded.hold(name, got.num_skipped)
    assert (got.num_skipped > 0) == (name not in NEVER_SKIPPED)


@pytest.mark.parametrize("free_values", [0, 3_000, 20_000, 100_000])
def test_the_search_has_a_budget(free_values: int, recorded: Record) -> None:
    """What may be spent on it decides how soon repeats are found, never what comes of them."""
    for seed in range(60, 72):
        run = random_run(seed)
        inputs = run.inputs()
        got = compare(replace(inputs, settings={**inputs.settings, "free_search_values": free_values}), LAWS[run.law])
        assert not got.differences, f"seed {seed}"
        recorded.hold(f"plain {seed}, {free_values} values", got.num_skipped)


@pytest.mark.parametrize(
    ("name", "bound"),
    [("most_logged", 0), ("most_logged", 30), ("most_values_kept", 0), ("most_values_kept", 300)],
)
def test_what_a_search_keeps_and_logs_is_bounded(name: str, bound: int, recorded: Record) -> None:
    """What needs more is simulated; what a search has kept and logged makes room for the next."""
    runs = {
        **{f"plain {seed}": random_run(seed) for seed in range(8)},
        **{f"rounds {seed}": random_rounds(seed) for seed in range(16)},
        **{target: TARGETS[target]() for target in ("captured", "marks")},
    }
    for run_name, run in runs.items():
        inputs = searching_long(run.inputs())
        got = compare(replace(inputs, settings={**inputs.settings, name: bound}), LAWS[run.law])
        assert not got.differences, run_name
        recorded.hold(f"{run_name}, {name} {bound}", got.num_skipped)


def test_many_short_searches_log_as_much_as_they_like() -> None:
    """Each of 60 messages, one longer than another, logs some ten calls: together they are more than the bound."""
    num_messages = 60
    run = run_of("swift", ((0, 1),))
    bytes_N = (400 + 7 * np.arange(num_messages)) * MTU_BYTES
    waits = [[number - 1] if number else [] for number in range(num_messages)]
    traffic = make_trace(np.zeros(num_messages, np.int64), bytes_N, np.zeros(num_messages, np.int64), waits)
    inputs = searching_long(replace(run, traffic=traffic).inputs())
    free, bounded = (
        compare(replace(inputs, settings={**inputs.settings, "most_logged": most_logged}), LAWS[run.law])
        for most_logged in (2**20, 20)
    )
    assert not bounded.differences
    assert bounded.num_skipped == free.num_skipped > 0.9 * free.num_events


def test_a_law_fails_amid_what_repeats_when_it_would_have() -> None:
    """The 2,001st acknowledgement of a queue pair is refused: event, status, queue pair and instant are the same."""
    inputs = searching_long(run_of("narrow", INCAST).inputs())
    faults = []
    for skips in (False, True):
        simulation = make_simulation(replace(inputs, settings={**inputs.settings, "skips_repeats": skips}), FAILING)
        with pytest.raises(_engine.LawFaultError) as refused:
            simulation.advance(10**8)
        faults.append(refused.value.args)
    assert faults[0] == faults[1]
    assert simulation.num_skipped_events > simulation.num_events / 2


def test_the_plain_engine_may_take_over_at_any_time() -> None:
    """Searches that end soon, also between slices, and in runs of the full engine."""
    num_skipped = 0
    for seed in range(400, 440):
        run = featured_run(seed) if seed % 2 else random_run(seed)
        events_per_slice = 3_000 if seed % 4 == 0 else 10**8
        got = compare(searching_shortly(run.inputs()), LAWS[run.law], events_per_slice=events_per_slice)
        assert not got.differences, f"seed {seed}"
        num_skipped += got.num_skipped
    assert num_skipped > 0


def test_a_run_may_be_settled_at_any_event(recorded: Record) -> None:
    """What sleeps is brought up to date in the middle of its repeats, as at Ctrl-C, and goes on as before."""
    num_skipped = 0
    for seed in range(200, 230):
        run = random_run(seed)
        got = compare(run.inputs(), LAWS[run.law], events_per_slice=3_000)
        assert not got.differences, f"seed {seed}"
        recorded.hold(f"plain {seed}, settled", got.num_skipped)
        num_skipped += got.num_skipped
    assert num_skipped > 0


def test_random_runs_of_all_features_are_the_same() -> None:
    """Faults, priorities, selective repeat and the rest, and short runs that have none of them."""
    for seed in range(60):
        scenario = scenarios.random_scenario(seed)
        got = compare(scenarios.inputs_of(scenario), scenarios.COMPILED[scenario.law])
        assert not got.differences, f"seed {seed}"


@pytest.mark.parametrize("name", LIGHT_SCENARIOS)
def test_bundled_scenarios_are_the_same(name: str) -> None:
    """With their own laws, probes and faults; `python -m tests.skip --scenarios` takes all of them."""
    compiled = compile_scenario(load_scenario(SCENARIOS / f"{name}.yaml"))
    with every_run_compared() as made:
        run_engine(compiled)
    assert [got.differences for got in made] == [()]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_conformance_cases_are_the_same(case: Case) -> None:
    """Whatever a case simulates; `python -m tests.skip --cases` takes all of them."""
    with every_run_compared() as made:
        case.run()
    assert not [got.differences for got in made if got.differences]


@pytest.mark.parametrize(
    ("seed", "law", "mode", "reason"),
    [
        (LONG, "none", "exact", None),
        (LONG, "hpcc", "exact", "runs with telemetry are not skipped"),
        (SHORT, "none", "exact", "too short to look for what repeats"),
        (LONG, "none", "off", None),
    ],
)
def test_the_record_says_what_was_skipped(
    seed: int, law: str, mode: Literal["exact", "off"], reason: str | None
) -> None:
    """Or why nothing was; a terminal says no more than what was."""
    run = random_run(seed)
    config = replace(run.config, skip=mode, time_limit_ns=None)
    head = run_packets(run.network, run.traffic, scenarios.COMPILED[law], config).run
    is_skipped = mode == "exact" and reason is None
    assert head["skip"]["reason"] == reason
    assert [line.startswith("skipped ") for line in skip_lines(head)] == [True] * is_skipped
    assert (head["skip"]["events"] > 0) == (head["skip"]["share"] > 0) == is_skipped
