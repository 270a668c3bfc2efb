"""The verdict of a page: green only where all was checked and passed, with true totals and every check listed."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from fabrictune.foundation.checks import Check, CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.records import Finding, RunRecord, Severity
from fabrictune.reports.blocks import Table
from fabrictune.reports.checks import checks_section
from fabrictune.reports.collisions import collisions_section
from fabrictune.reports.page import build_page
from fabrictune.reports.record_view import open_run

MakeRecord = Callable[..., RunRecord]
MakeFinding = Callable[..., Finding]

LINKS = run_check("ecmp.link-overloaded", "12 loaded link directions", [], expected="at most 100 %", actual="90 %")
MET = run_check("expect.drops", "drops", [], expected="at most 0 packets", actual="0 packets")
STORM = skip_check("netsim.pause-storm", "12 ports", "no watchdog is set")


def verdict(html: str) -> tuple[str, str]:
    """Return tone and sentence."""
    found = re.search(r'<p class="verdict (\w+)">(.*?)</p>', html)
    assert found
    return found[1], found[2]


@pytest.mark.parametrize(
    ("checks", "tone", "sentence", "nothing_found"),
    [
        (LINKS + MET, "good", "No findings. 2 checks: 2 passed.", "All checks of this run ran and passed."),
        (
            LINKS + STORM,
            "unknown",
            "No findings. 2 checks: 1 passed, 1 not run.",
            "No check of this run found anything, but not all of them ran.",
        ),
        (CheckReport(), "unknown", "No checks.", "Nothing was checked of this run."),
        (
            None,
            "unknown",
            "This record does not say what was checked.",
            "No findings are recorded, but not every record says what was checked of this run.",
        ),
    ],
)
def test_no_findings_is_green_only_behind_checks_that_passed(
    make_record: MakeRecord, checks: CheckReport | None, tone: str, sentence: str, nothing_found: str
) -> None:
    """Unknown never passes: a check that did not run, none, and a record that does not say."""
    html = build_page([make_record(checks=checks and checks.checks)], title="one")
    assert verdict(html) == (tone, sentence)
    assert nothing_found in html


def test_of_several_runs_each_is_judged(make_record: MakeRecord) -> None:
    """One run passed and one does not say: the page is not green, and says so of each."""
    records = [make_record(checks=LINKS.checks), make_record(checks=None)]
    tone, sentence = verdict(build_page(records, title="two", labels=["new", "old"]))
    assert tone == "unknown"
    assert sentence.endswith("new: 1 check: 1 passed. old: this record does not say what was checked.")
    assert "No findings." not in sentence


def test_counts_are_true_where_a_record_keeps_fewer(make_record: MakeRecord, make_finding: MakeFinding) -> None:
    """10,003 overloaded links were found, two are kept: the other 10,001 are counted everywhere."""
    findings = (make_finding(), make_finding(entity="another"))
    check = Check(rule=findings[0].id, subject="links", num_found=10_003)
    html = build_page([make_record(findings=findings, checks=(check,))], title="one")
    assert verdict(html)[1].startswith("2 error findings, and 10,001 that the record does not keep. 1 check: 1 found")
    assert "10,002 more of this rule" in html
    assert "10,001 more were found that the record does not keep." in html
    assert "10,003 findings" in html


def test_each_check_is_listed_with_its_result(make_record: MakeRecord, make_finding: MakeFinding) -> None:
    """What was found first, then what did not run with its reason, then what passed with its value."""
    found = run_check("ecmp.link-overloaded", "12 links", [make_finding()], expected="at most 100 %")
    report = join_reports(MET, STORM, found)
    section = checks_section([open_run(make_record(findings=report.findings, checks=report.checks), "run")])
    assert section is not None
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert table.caption == "run: 3 checks: 1 passed, 1 found something, 1 not run"
    assert [tuple(cell.text for cell in row) for row in table.rows] == [
        (
            "Oversubscribed link",
            "12 links",
            "at most 100 %",
            "2 queue pairs, 200 Gbps",
            "found",
            "ecmp.link-overloaded",
        ),
        ("PFC pause storm", "12 ports", "\u2013", "no watchdog is set", "not run", "netsim.pause-storm"),
        ("Broken expectation", "drops", "at most 0 packets", "0 packets", "passed", "expect.drops"),
    ]


def test_a_page_of_many_checks_is_bounded(make_record: MakeRecord) -> None:
    """A foreign record may list thousands; a hundred are shown, and the others counted."""
    section = checks_section([open_run(make_record(checks=MET.checks * 5_000), "run")])
    assert section is not None
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert (len(table.rows), table.left_out) == (100, "4,900 checks more in run.json of the record.")


def test_an_incast_is_not_called_a_hash_collision(make_record: MakeRecord) -> None:
    """Port 5 leads from tor0 to h2: two flows into one NIC are an overloaded receiver, not a colliding link."""
    incast = {"port": np.array([5, 5]), "qp": np.array([0, 1])}
    section = collisions_section([open_run(make_record(tables={"collisions": incast}), "run")])
    assert section is not None
    assert section.title == "Oversubscribed links"
    assert [table.caption for table in section.blocks] == [
        "run: no oversubscribed links",
        "run: overloaded receivers (incast)",
    ]


def test_the_worst_severity_is_the_tone(make_record: MakeRecord, make_finding: MakeFinding) -> None:
    """Also beside checks that passed."""
    finding = make_finding(Severity.WARNING)
    report = MET + run_check(finding.id, "links", [finding])
    html = build_page([make_record(findings=report.findings, checks=report.checks)], title="one")
    assert verdict(html) == ("warning", "1 warning finding. 2 checks: 1 passed, 1 found something.")
