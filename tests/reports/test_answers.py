"""Answers: every kind of record has one, and each says its result with the interval and what to apply."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.checks import run_check, skip_check
from fabrictune.foundation.records import Confidence, Finding, RunRecord, Severity
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.reports.answers.answer import Answer
from fabrictune.reports.answers.catalog import ANSWERS, NO_RESULTS, answer_of
from fabrictune.reports.page import build_page
from fabrictune.reports.record_view import open_run
from tests.browser.pages import KINDS
from tests.browser.pages import make_record as record_of_kind
from tests.reports.conftest import two_flow_tables

MakeRecord = Callable[..., RunRecord]
ENDS = ("", "_low", "_high")


def answer(record: RunRecord) -> Answer:
    found = answer_of(open_run(record, "run"))
    assert found is not None
    return found


def record_with(kind: str, run: dict[str, Any] | None = None, **rows: list[dict[str, Any]]) -> RunRecord:
    return RunRecord(kind=kind, run=run or {}, tables={name: to_columns(name, own) for name, own in rows.items()})


def test_every_kind_of_record_has_an_answer() -> None:
    """The kinds are those of the catalog of tables: one that is added there and not here fails."""
    assert sorted(ANSWERS) == sorted(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_says_its_answer_below_the_title(kind: str) -> None:
    """A sentence of a few words, ended, before the verdict; also where a table has no row."""
    html = build_page([record_of_kind(kind)], title="page")
    found = re.search(r'<h1>page</h1>\n<div class="answer">\n<p>(.*?)</p>', html)
    assert found
    assert len(found[1].split()) > 2
    assert found[1].endswith(".")
    assert found[1] != NO_RESULTS.sentence
    empty = RunRecord(kind=kind, run={}, tables={})
    assert answer(empty) == NO_RESULTS
    assert NO_RESULTS.sentence in build_page([empty], title="page")


def test_a_kind_of_another_version_has_a_page_without_an_answer() -> None:
    """It is shown by its tables as before."""
    assert answer_of(open_run(RunRecord(kind="next", run={}, tables={}), "run")) is None
    assert '<div class="answer">' not in build_page([RunRecord(kind="next", run={}, tables={})], title="page")


def test_a_table_without_a_column_has_no_answer_and_says_which() -> None:
    """A record of another version still has its page."""
    record = RunRecord(kind="coll compare", run={}, tables={"fits": {"operation": np.array(["all_reduce"])}})
    assert answer(record).sentence == "No answer from this record: run: fits.num_ranks: the column is missing."


def outcomes(name: str, throughput: tuple[float, float, float], slowest: float) -> dict[str, Any]:
    """Return a row of outcomes over seeds."""
    shares = ("overload_probability", "worst_load_fraction", "mean_nic_bps", "slowest_connection_bps")
    row: dict[str, Any] = {f"{share}{end}": 1.0 for share in shares for end in ENDS}
    row |= {f"slowest_fraction{end}": slowest for end in ENDS}
    row |= dict(zip((f"throughput_fraction{end}" for end in ENDS), throughput, strict=True))
    return {"variant": name, "num_seeds": 5, "worst_load_fraction_p99": 2.0, **row}


def test_a_whatif_names_the_best_variant_its_gain_and_its_settings() -> None:
    """From 60 % to 90 %, +30 points; what it sets stands below, and the bars are sorted."""
    rows = [
        outcomes("as it is", (0.6, 0.58, 0.62), 0.25),
        outcomes("two", (0.7, 0.69, 0.71), 0.5),
        outcomes("four", (0.9, 0.88, 0.92), 0.5),
    ]
    changes = {"as it is": {}, "four": {"traffic.qps": 4, "fail": ["agg0-0"]}}
    record = record_with("ecmp whatif", {"changes": changes}, variants=rows)
    found = answer(record)
    assert found.sentence == (
        "Best of 2 variants: four, flow throughput 90 % (95 % interval 88 % to 92 %), slowest flow 50 %. "
        "Over the scenario as it is: +30.0 points and +25.0 points."
    )
    (settings,) = found.settings
    assert settings.caption == "To apply in the scenario for four"
    assert settings.lines == ("traffic.qps: 4", 'fail: ["agg0-0"]')
    html = build_page([record], title="page")
    assert html.index(">four</text>") < html.index(">two</text>") < html.index(">as it is</text>")


def test_a_gain_within_the_intervals_is_not_sold() -> None:
    """61 % against 60 %, both plus or minus 2 points, and the same slowest flow."""
    rows = [outcomes("as it is", (0.6, 0.58, 0.62), 0.5), outcomes("two", (0.61, 0.59, 0.63), 0.5)]
    assert answer(record_with("ecmp whatif", variants=rows)).sentence.endswith(
        "Over the scenario as it is: +1.0 points and +0.0 points; the intervals overlap, so it may be chance."
    )
    assert answer(record_with("ecmp whatif", variants=rows[:1])).sentence.startswith(
        "None of 0 variants lets more through than the scenario as it is: flow throughput 60 %"
    )


def test_a_plan_is_judged_over_seeds_and_for_its_own_apart() -> None:
    """Steps over unknown seeds are not compared with those for known ones."""
    names = ("as it is", "placement: contiguous", "4 QPs", "own seeds", "source ports")
    shares = (0.6, 0.8, 0.8, 0.9, 1.0)
    rows = []
    for row, (name, share) in enumerate(zip(names, shares, strict=True)):
        own = outcomes("", (share, share, share), share)
        del own["variant"]
        rows.append({"step": name, "knows_seeds": int(row > 2), "is_taken": int(row != 2), **own})
    found = answer(record_with("ecmp plan", {"changes": {"traffic.qps": 2}}, steps=rows))
    assert found.sentence == (
        "Over unknown hash seeds the plan raises flow throughput from 60 % to 80 %, of the slowest flow from 60 % to "
        "80 %, by: placement: contiguous. With the scenario's own hash seeds the plan raises flow throughput from 90 % "
        "to 100 %, of the slowest flow from 90 % to 100 %, by: source ports."
    )
    assert found.settings[0].lines[0] == "traffic.qps: 2"
    nothing = answer(record_with("ecmp plan", steps=rows[:1]))
    assert nothing.sentence == "No step that was tried lets more of the traffic through."


def sweep_rows() -> dict[str, list[dict[str, Any]]]:
    """Return two points and two objectives: the second point is faster and has the deeper queue."""
    points = [
        {"point": at, "settings": f"law.gain = {at}", "num_seeds": 3, "is_on_front": 1, "is_surely_dominated": 0}
        for at in range(2)
    ]
    values = {"makespan": ("ps", (2e9, 1e9)), "queue.max": ("bytes", (1e6, 2e6))}
    objectives = [
        {"point": at, "metric": metric, "unit": unit, "is_maximised": 0}
        | {"value": value, "low": 0.9 * value, "high": 1.1 * value}
        for metric, (unit, of_points) in values.items()
        for at, value in enumerate(of_points)
    ]
    return {"points": points, "objectives": objectives}


def test_a_sweep_names_the_best_point_its_cost_and_the_lines_for_devices() -> None:
    """The fastest point, what its queues cost, its settings in the scenario and on a NIC; the table begins with it."""
    nic = [{"settings": "law.gain = 1", "lines": ["mlxconfig set G=1"], "needs": "a reset", "since": "the defaults"}]
    switch = {"settings": "law.gain = 1", "since": "x", "groups": [{"switches": ["s0"], "commands": ["ecnconfig"]}]}
    record = record_with("sim sweep", {"nic_settings": nic, "switch_settings": [switch]}, **sweep_rows())
    found = answer(record)
    assert found.sentence == (
        "Best in makespan of 2 points: law.gain = 1, with 1 ms (95 % interval 900 us to 1.1 ms). The worst has 2 ms "
        "(95 % interval 1.8 ms to 2.2 ms). Its queue.max: 2 MB (95 % interval 1.8 MB to 2.2 MB); the best has 1 MB "
        "(95 % interval 900 KB to 1.1 MB)."
    )
    assert [(settings.caption, settings.lines) for settings in found.settings] == [
        ("To apply in the scenario", ("law.gain: 1",)),
        ("To apply on a NIC, changed from the defaults", ("mlxconfig set G=1", "# needs a reset")),
        ("To apply on the switches, changed from x", ("# on s0", "ecnconfig")),
    ]
    html = build_page([record], title="page")
    assert html.index(">law.gain = 1</t") < html.index(">law.gain = 0</t")


def test_foreign_settings_in_a_head_are_left_out() -> None:
    """A head of another shape is not an error of the page."""
    record = record_with("sim sweep", {"nic_settings": ["x"], "switch_settings": {"a": 1}}, **sweep_rows())
    assert [settings.caption for settings in answer(record).settings] == ["To apply in the scenario"]
    assert answer(record_with("ecmp whatif", {"changes": [1]}, variants=[outcomes("x", (1, 1, 1), 1)])).settings == ()


def test_a_run_lists_its_expectations_broken_ones_first(make_record: MakeRecord) -> None:
    """200 us; one bound is met, one broken, one could not be checked; all are listed."""
    broken = Finding(
        id="expect.drops",
        severity=Severity.ERROR,
        entity="drops",
        expected="at most 0",
        actual="1",
        next_step="",
        confidence=Confidence.MEASURED,
    )
    report = (
        run_check("expect.makespan", "makespan", [], expected="at most 1 ms", actual="200 us")
        + run_check("expect.drops", "drops", [broken], expected="at most 0")
        + skip_check("expect.fairness", "fairness", "no flow")
    )
    record = make_record(findings=report.findings, checks=report.checks)
    found = answer(record)
    assert found.sentence == "The job takes 200 us. Of 3 expectations 1 met, 1 broken, 1 not checked."
    assert [(bound.text, bound.is_met) for bound in found.bounds] == [
        ("drops: 1, expected at most 0", False),
        ("fairness: no flow", None),
        ("makespan: 200 us, expected at most 1 ms", True),
    ]
    html = build_page([record], title="page")
    assert '<li><span class="bad">Broken</span> drops: 1, expected at most 0</li>' in html
    assert '<li><span class="good">Met</span> makespan' in html


def test_a_run_without_expectations_has_no_bounds(make_record: MakeRecord) -> None:
    """The check that says that there is none is no bound."""
    report = skip_check("expect.*", "the scenario", "the scenario has no `expect`")
    assert answer(make_record(checks=report.checks)) == Answer(sentence="The job takes 200 us.")


def test_a_run_that_does_not_end_says_so(make_record: MakeRecord) -> None:
    """One of two transfers is left."""
    transfers = {**make_record().tables["transfers"], "finish_ps": np.array([1, -1])}
    found = answer(make_record(tables={"transfers": transfers}))
    assert found.sentence == "The job does not end: 1 of 2 transfers are left."


def test_an_analysis_counts_its_oversubscribed_links(make_record: MakeRecord) -> None:
    """Port 8 carries both flows: one of five loaded directions, at twice its rate."""
    tables = make_record().tables
    record = RunRecord(kind="ecmp analyze", run={}, tables={name: tables[name] for name in ("fabric", "loads")})
    assert answer(record).sentence == (
        "1 of 5 loaded link directions oversubscribed, the worst tor0:swp3 \u2192 tor1:swp3 at 200 % of its rate."
    )


def test_timers_say_which_setting_survives_the_flap() -> None:
    """A flap of 1 s: the longer timer survives it with a stall of 1.5 s, the shorter gives up after 0.5 s."""
    shared = {"profile": "cx6", "confidence": "measured", "retries": 7, "flap_ns": 1e9, "measured_stall_ns": -1.0}
    shared |= {"simulated_gives_up_ns": -1.0, "measured_gives_up_ns": -1.0, "simulated_stall_ns": -1.0}
    rows = [
        {**shared, "timeout": 14, "gives_up_ns": 5e8, "stall_ns": -1.0},
        {**shared, "timeout": 18, "gives_up_ns": 8e9, "stall_ns": 1.5e9},
    ]
    assert answer(record_with("rdma timers simulate", timers=rows)).sentence == (
        "A flap of 1 s is survived by 1 of 2 settings, with the shortest stall, 1.5 s, by cx6 timeout 18, retries 7. "
        "Queue pairs fail, after 500 ms at the latest: cx6 timeout 14, retries 7."
    )


def test_of_several_runs_each_answer_has_its_label(make_record: MakeRecord) -> None:
    """And settings are folded, for there are several."""
    slower = {**two_flow_tables()["transfers"], "finish_ps": np.array([100_000_000, 250_000_000])}
    records = [make_record(), make_record(tables={"transfers": slower}), make_record()]
    html = build_page(records, title="page", labels=["a", "b", "c"])
    assert "<p><b>a, c</b> The job takes 200 us.</p>" in html
    assert "<p><b>b</b> The job takes 250 us.</p>" in html
