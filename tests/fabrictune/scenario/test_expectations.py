"""Metrics of a record, and the bounds a scenario sets for them."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.checks import Result
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.records import RunRecord, Severity
from fabrictune.scenario.expectations import Expectation, check_expectations
from fabrictune.studies.run_summary import summarize


def record(finish_ps: list[int]) -> RunRecord:
    """Return transfers of 1,000 B over the fabric from NIC 0 to NIC 1, ready at 1 us, and one over NVLink."""
    num = len(finish_ps) + 1
    ones = np.ones(num, np.int64)
    qp = np.append(np.zeros(num - 1, np.int64), -1)
    return RunRecord(
        kind="sim run",
        run={},
        tables={
            "fabric": {
                "nic": np.array([-1, 0, 1]),
                "node_name": np.array(["tor", "host0", "host1"]),
                "port_name": np.array(["p0", "nic0", "nic0"]),
            },
            "transfers": {
                "transfer": np.arange(num),
                "qp": qp,
                "source": 0 * ones,
                "destination": ones,
                "bytes": 1000 * ones,
                "ready_ps": 1_000_000 * ones,
                "finish_ps": np.array([*finish_ps, 50_000_000]),
                "ideal_ps": 200_000 * ones,
                "packets_retransmitted": ones,
                "cnps": 2 * ones,
            },
            "ports": {
                "dropped_packets": np.array([0, 3]),
                "ecn_marked_packets": np.array([5, 0]),
                "pauses": np.array([1, 1]),
                "paused_ps": np.array([10, 20]),
                "max_queue_bytes": np.array([4178, 0]),
            },
        },
    )


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("completion_time.max", 4e6),
        ("completion_time.min", 2e6),
        ("completion_time.mean", 3e6),
        ("completion_time.p99", 4e6),
        ("throughput.min", 2e9),
        ("throughput.mean", 3e9),
        ("slowdown.p50", 10),
        ("slowdown.p99", 20),
        ("makespan", 49e6),
        ("drops", 3),
        ("pauses", 2),
        ("paused_time", 30),
        ("ecn_marks", 5),
        ("retransmissions", 3),
        ("cnps", 6),
        ("queue.max", 4178),
    ],
)
def test_a_metric_is_what_it_says(metric: str, value: float) -> None:
    """1,000 B in 2 us and in 4 us are 4 and 2 Gbps; the transfer over NVLink counts for the makespan only.

    It is ready at 1 us like the others and ends at 50 us; of two slowdowns, 10 and 20, p50 is the lower.
    """
    assert METRICS[metric].measure(record([3_000_000, 5_000_000])) == pytest.approx(value)


def test_what_never_finished_breaks_every_bound() -> None:
    """A finish of -1 is a completion time without end and a throughput of nothing."""
    unfinished = record([3_000_000, -1])
    (slow,) = Expectation(metric="completion_time.max", at_most="10 s").check(unfinished).findings
    (still,) = Expectation(metric="throughput.min", at_least="1 bps").check(unfinished).findings
    assert (slow.actual, still.actual) == ("never", "0 bps")
    assert math.isinf(METRICS["makespan"].measure(unfinished))


def test_what_cannot_be_had_breaks_every_bound() -> None:
    """Without a transfer over the fabric there is no completion time, and unknown never passes."""
    for bound in ({"at_most": "10 s"}, {"at_least": "0 ps"}):
        (finding,) = Expectation(metric="completion_time.max", **bound).check(record([])).findings
        assert finding.actual == "unknown"


def test_a_bound_includes_itself() -> None:
    """4 us is at most 4 us and at least 4 us."""
    ran = record([3_000_000, 5_000_000])
    assert Expectation(metric="completion_time.max", at_most="4 us").check(ran).findings == ()
    assert Expectation(metric="completion_time.max", at_least="4 us").check(ran).findings == ()


def test_a_broken_bound_is_an_error_that_shows_both_numbers() -> None:
    """The slowest transfer took 4 us where 3 us were expected."""
    report = Expectation(metric="completion_time.max", at_most="3 us").check(record([3_000_000, 5_000_000]))
    (finding,) = report.findings
    assert (finding.id, finding.severity) == ("expect.completion_time.max", Severity.ERROR)
    assert (finding.expected, finding.actual) == ("at most 3 us", "4 us")


def test_a_bound_that_is_met_is_listed_with_its_value() -> None:
    """Met and broken bounds stand beside one another, each with what was expected and what came out."""
    bounds = [Expectation(metric="completion_time.max", at_most=limit) for limit in ("5 us", "3 us")]
    met, broken = check_expectations(bounds, record([3_000_000, 5_000_000])).checks
    assert (met.result, met.subject, met.expected, met.actual) == (
        Result.PASSED,
        "completion_time.max",
        "at most 5 us",
        "4 us",
    )
    assert (broken.result, broken.expected) == (Result.FOUND, "at most 3 us")


def test_a_scenario_without_bounds_says_so() -> None:
    """Nothing was checked of its times, which is not the same as good."""
    (check,) = check_expectations((), record([3_000_000])).checks
    assert (check.rule, check.result) == ("expect.*", Result.NOT_RUN)
    assert check.reason == "the scenario has no `expect`, so no time, throughput or slowdown has a bound"


@pytest.mark.parametrize(
    ("bounds", "where"),
    [
        ({}, "metric"),
        ({"at_most": "1 us", "at_least": "1 us"}, "metric"),
        ({"at_most": "1 Gbps"}, "at_most"),
        ({"at_least": "5"}, "at_least"),
        ({"at_least": True}, "at_least"),
        ({"at_most": ["1 us"]}, "at_most"),
    ],
)
def test_a_bound_is_one_quantity_of_the_metrics_unit(bounds: dict[str, Any], where: str) -> None:
    """A completion time is bounded by one duration with its unit."""
    with pytest.raises(InputError) as raised:
        Expectation(metric="completion_time.max", **bounds)
    assert [mistake.where for mistake in raised.value.mistakes] == [where]


def test_a_summary_lists_the_slowest_transfers_first() -> None:
    """Of transfers that took 2 us and 4 us the second comes first, named by host and port."""
    slowest = summarize(record([3_000_000, 5_000_000])).slowest
    assert [(one.transfer, one.source, one.destination) for one in slowest] == [
        (1, "host0:nic0", "host1:nic0"),
        (0, "host0:nic0", "host1:nic0"),
    ]


def test_a_record_without_ideal_times_breaks_bounds_on_slowdown() -> None:
    """Unknown never passes."""
    old = record([2_000_000])
    del old.tables["transfers"]["ideal_ps"]  # type: ignore[attr-defined]
    (finding,) = Expectation(metric="slowdown.p99", at_most="2").check(old).findings
    assert finding.actual == "unknown"


def estimated(low_ps: int, high_ps: int) -> RunRecord:
    """Return a record of bounded skip whose last byte came after 60 us, in its interval."""
    exact = record([2_000_000, 60_000_000])
    bounds = {
        name: np.array([2_000_000, bound_ps, 50_000_000])
        for name, bound_ps in (("finish_low_ps", low_ps), ("finish_high_ps", high_ps))
    }
    tables = {**exact.tables, "transfers": {**exact.tables["transfers"], **bounds}}
    return replace(exact, run={"skip": {"mode": "bounded", "bounded": {"spans": 1}}}, tables=tables)


@pytest.mark.parametrize(
    ("low_ps", "high_ps", "is_met"),
    [(58_000_000, 61_000_000, True), (58_000_000, 61_000_001, False), (61_000_001, 63_000_000, False)],
)
def test_the_whole_interval_of_an_estimate_must_keep_a_bound(low_ps: int, high_ps: int, is_met: bool) -> None:
    """At most 60 us from 1 us on: an interval on both sides of it is no pass."""
    (check,) = Expectation(metric="makespan", at_most="60 us").check(estimated(low_ps, high_ps)).checks
    assert check.result == (Result.PASSED if is_met else Result.FOUND)


def test_throughput_has_its_least_where_the_last_byte_comes_latest() -> None:
    """2,000 B in 60 us are 0.267 Gbps, in 57 us 0.281."""
    expected = Expectation(metric="throughput.total", at_least="0.27 Gbps")
    (check,), (finding,) = (report := expected.check(estimated(58_000_000, 61_000_000))).checks, report.findings
    assert check.result == Result.FOUND
    assert finding.actual == "271.2 Mbps, between 266.7 Mbps and 280.7 Mbps"


def test_an_estimate_without_an_interval_is_not_checked() -> None:
    """A flow's own time has none that holds: it says so, and has not passed."""
    (check,) = Expectation(metric="completion_time.max", at_most="1 s").check(estimated(1, 2)).checks
    assert check.result == Result.NOT_RUN
    assert check.reason == "bounded skip estimates 59 us, without an interval; engine: {skip: exact} measures it"
