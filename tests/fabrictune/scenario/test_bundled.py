"""The bundled scenarios, run as they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.checks import Result
from fabrictune.scenario.files import load_scenario
from fabrictune.studies.simulation import simulate

SCENARIOS = Path(__file__).parents[3] / "scenarios"


RECEIVER, LINK = "ecmp.receiver-overloaded", "ecmp.link-overloaded"
SWITCHES, HOSTS = "netsim.paused-switches", "netsim.paused-hosts"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("incast", {RECEIVER}),
        ("permutation", {LINK, SWITCHES, HOSTS}),
        ("allreduce", set()),
        ("simai-128", set()),
        ("link-flap", {"netsim.fault-drops"}),
        ("shared-buffer", {RECEIVER, HOSTS}),
        ("slow-receiver", {LINK, SWITCHES, HOSTS}),
        ("job-beside-burst", {RECEIVER, SWITCHES, HOSTS}),
        ("two-jobs", {LINK}),
        ("spraying", {"netsim.reordered-packets"}),
        ("web-search", {SWITCHES}),
        ("uet-incast", {RECEIVER}),
    ],
)
def test_a_bundled_scenario_meets_its_own_expectations(name: str, found: set[str]) -> None:
    """Each asks a question with its bounds; none is broken, and each is listed with its value."""
    scenario = load_scenario(SCENARIOS / f"{name}.yaml")
    record = simulate(scenario)
    assert {finding.id for finding in record.findings} == found
    expectations = [check for check in record.checks or () if check.rule.startswith("expect.")]
    assert [(check.subject, check.expected, check.result) for check in expectations] == [
        (expectation.name, expectation.bound, Result.PASSED) for expectation in scenario.expect
    ]
    assert scenario.expect
    assert all(check.actual for check in expectations)


@pytest.mark.parametrize("overhead_bytes", [82, 0])
def test_the_incast_ends_when_the_closed_form_says(overhead_bytes: int) -> None:
    """8 x 1 MB in 245 packets each at 400 Gbps: 163.2 us with 82 B a packet, 160 us without, and the way there.

    The port to the receiver is never idle once the first packet has reached it: that packet takes its own time over the
    sender's link (83.56 ns with headers), and each of two cables of 3 m takes 15 ns.
    """
    scenario = load_scenario(SCENARIOS / "incast.yaml")
    engine = replace(scenario.engine, spec=replace(scenario.packet_config(), wire_overhead_bytes=overhead_bytes))
    transfers = simulate(replace(scenario, engine=engine, expect=())).tables["transfers"]

    num_packets = -(-1_000_000 // 4096)
    ps_per_byte = 8 * 10**12 // (400 * 10**9)
    wire_ps = 8 * (1_000_000 + num_packets * overhead_bytes) * ps_per_byte
    way_ps = (4096 + overhead_bytes) * ps_per_byte + 2 * 3_000 * 5
    assert transfers["finish_ps"].max() == wire_ps + way_ps
    assert round(wire_ps / 1e6, 1) == (163.2 if overhead_bytes else 160.0)


def test_a_run_repeats_to_the_byte() -> None:
    """The same scenario gives the same tables: every column is equal."""
    scenario = load_scenario(SCENARIOS / "permutation.yaml")
    first, second = simulate(scenario), simulate(scenario)
    for name, columns in first.tables.items():
        for column, values in columns.items():
            assert np.array_equal(values, second.tables[name][column]), f"{name}.{column}"


def test_a_record_can_be_run_again_from_its_own_text(tmp_path: Path) -> None:
    """run.json holds the scenario word for word; a file made of it is the same scenario."""
    scenario = load_scenario(SCENARIOS / "permutation.yaml")
    text = simulate(scenario).run["scenario"]
    (tmp_path / "again.yaml").write_text(text)
    assert load_scenario(tmp_path / "again.yaml") == scenario


def test_another_seed_is_another_permutation() -> None:
    """The workload draws its partners from the scenario's seed."""
    scenario = load_scenario(SCENARIOS / "permutation.yaml")
    partners = [simulate(replace(scenario, seed=seed)).tables["transfers"]["destination"].tolist() for seed in (0, 1)]
    assert partners[0] != partners[1]
