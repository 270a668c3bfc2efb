"""Findings on a terminal: the first of each rule beside their true number, and what was checked."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.framework.findings import print_findings
from fabrictune.cli.main import run
from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.records import Confidence, Finding, RunRecord, Severity


def finding(rule: str, severity: Severity, entity: str) -> Finding:
    """Return a finding with a line of evidence."""
    return Finding(
        id=rule,
        severity=severity,
        entity=entity,
        expected="at most 400 Gbps",
        actual="800 Gbps",
        next_step="move it",
        confidence=Confidence.PREDICTED,
        evidence=(f"seen at {entity}",),
    )


def collisions(num: int) -> CheckReport:
    """Return the check of a rule with that many errors."""
    rule = "ecmp.link-overloaded"
    return run_check(rule, "links", [finding(rule, Severity.ERROR, f"link {place}") for place in range(num)])


def test_twenty_of_a_rule_are_shown_beside_their_true_number(capsys: pytest.CaptureFixture[str]) -> None:
    """The 21st is counted, and so are those that a record does not keep; evidence is for the first three."""
    print_findings(collisions(10_003))
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("error: link ")]) == 20
    assert [line for line in lines if line.startswith("    seen")] == [
        f"    seen at link {place}" for place in range(3)
    ]
    assert lines[-4:] == [
        "... and 9,983 more of ecmp.link-overloaded, 10,003 in total; --all-findings prints them",
        "next: move it",
        "about a rule: fabrictune rules ID",
        "1 check: 1 found something",
    ]


def test_no_rule_hides_another(capsys: pytest.CaptureFixture[str]) -> None:
    """A hundred warnings of one rule come after the single error of another, and behind them a third is shown too."""
    hosts = run_check("a.b", "hosts", [finding("a.b", Severity.WARNING, f"host {place}") for place in range(100)])
    leaf = run_check("c.d", "leaves", [finding("c.d", Severity.ERROR, "leaf 3")])
    last = run_check("e.f", "rails", [finding("e.f", Severity.WARNING, "rail 2")])
    print_findings(join_reports(hosts, leaf, last))
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("    ")]
    assert lines[0].startswith("error: leaf 3:")
    assert any(line.startswith("warning: rail 2:") for line in lines)


def test_bounds_that_are_met_are_printed_with_their_values(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside those that are broken; what did not run says why."""
    met = run_check("expect.drops", "drops", [], expected="at most 0 packets", actual="0 packets")
    print_findings(join_reports(met, skip_check("netsim.pause-storm", "ports", "no watchdog is set")))
    assert capsys.readouterr().out == (
        "met: drops: 0 packets; expected at most 0 packets\n"
        "2 checks: 1 passed, 1 not run\n"
        "    not run: netsim.pause-storm: no watchdog is set\n"
    )


def test_an_older_record_does_not_say_what_was_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """No findings, and no checks: that is not the same as none that found something."""
    print_findings(RunRecord(kind="sim run", run={}))
    assert capsys.readouterr().out == "this record does not say what was checked\n"


def test_all_findings_are_printed_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Thirty idle spares: twenty by name, thirty with --all-findings, thirty as JSON."""
    monkeypatch.chdir(tmp_path)
    rows = [f"h{place},nic0,host,t{place},1,leaf,400G\n" for place in range(31)]
    head = "a_device,a_port,a_role,b_device,b_port,b_role,rate\n"
    Path("islands.csv").write_text(head + "".join(rows))
    command = ["topo", "validate", "islands.csv", "--fail-on", "never"]
    shown = {}
    for option in ("", "--all-findings", "--json"):
        assert run([*command, *([option] if option else [])]) == 0
        shown[option] = capsys.readouterr().out
    assert shown[""].count("error: ") == 20
    assert "... and 10 more of fabric.partition, 30 in total; --all-findings prints them" in shown[""]
    assert shown["--all-findings"].count("error: ") == 30
    assert len(json.loads(shown["--json"])["findings"]) == 30
