"""A site's rules apply to every command with findings, and are said wherever findings are."""

import json
from pathlib import Path

import pytest

from fabrictune.cli.main import run
from fabrictune.foundation.checks import Result
from fabrictune.foundation.finding_rules.catalog import RULES
from fabrictune.foundation.records import RunRecord, Severity

INCAST = str(Path(__file__).parents[3] / "scenarios" / "incast.yaml")
PERMUTATION = str(Path(__file__).parents[3] / "scenarios" / "permutation.yaml")
ONE_SLOW = "a_device,a_port,a_role,b_device,b_port,b_role,rate\n" + "".join(
    f"h{host},nic0,host,t1,{host},leaf,{rate}G\n" for host, rate in enumerate((400, 400, 100))
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a fabric of one slow link."""
    monkeypatch.chdir(tmp_path)
    Path("slow.csv").write_text(ONE_SLOW)


def site(*lines: str) -> str:
    """Return the name of a site file with these rules."""
    Path("site.yaml").write_text("\n".join(["rules:", *(f"  {line}" for line in lines)]) + "\n")
    return "site.yaml"


def test_severities_of_a_site_decide_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """The slow link is off and said to be; the host's uplink, a warning by the catalog, is an error here."""
    assert run(["topo", "validate", "slow.csv"]) == 0
    capsys.readouterr()
    rules = site("fabric.unequal-rate: {severity: off}", "fabric.unequal-uplinks: {severity: error}")
    assert run(["topo", "validate", "slow.csv", "--rules", rules]) == 1
    shown = capsys.readouterr().out
    assert "[fabric.unequal-rate]" not in shown
    assert "error: h2: 1 uplink (100 Gbps)" in shown
    assert "rules: site.yaml: fabric.unequal-rate is off, fabric.unequal-uplinks is error\n" in shown


def test_the_variable_names_the_file_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for a whole site; the JSON value has what it changed and where each rule is documented."""
    monkeypatch.setenv("FABRICTUNE_RULES", site("fabric.unequal-uplinks: {severity: critical}"))
    assert run(["topo", "validate", "slow.csv", "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["rules"]["file"] == "site.yaml"
    assert result["rules"]["severities"] == {"fabric.unequal-uplinks": "critical"}
    assert [finding["reference"] for finding in result["findings"]] == [
        "docs/reference/findings.md#fabric.unequal-rate",
        "docs/reference/findings.md#fabric.unequal-uplinks",
    ]


@pytest.mark.parametrize("command", [["ecmp", "analyze"], ["sim", "run"]], ids=" ".join)
def test_thresholds_of_a_site_decide_what_is_found(command: list[str]) -> None:
    """Two flows offer 200 % of a link, twelve times: an error by the catalog, a warning from 3 on, nothing at 2."""
    quiet = [*command, PERMUTATION, "--quiet", "--out", "run"]
    assert run(quiet) == 1
    assert severities() == [Severity.ERROR] * 12
    assert run([*quiet, "--rules", site("ecmp.link-overloaded: {error_load: 300 %}")]) == 0
    assert severities() == [Severity.WARNING] * 12
    assert run([*quiet, "--rules", site("ecmp.link-overloaded: {load: 2}")]) == 0
    assert severities() == []


def severities() -> list[Severity]:
    """Return the severities of the overloaded links of the record."""
    record = RunRecord.read(Path("run"))
    return [finding.severity for finding in record.findings if finding.id == "ecmp.link-overloaded"]


def test_a_record_says_what_was_off() -> None:
    """In its head, and in its checks: what did not run has not passed."""
    rules = site("ecmp.receiver-overloaded: {severity: off}")
    assert run(["ecmp", "analyze", INCAST, "--quiet", "--out", "run", "--rules", rules]) == 0
    record = RunRecord.read(Path("run"))
    assert record.run["rules"]["off"] == ["ecmp.receiver-overloaded"]
    (check,) = [check for check in record.checks or () if check.rule == "ecmp.receiver-overloaded"]
    assert (check.result, check.reason) == (Result.NOT_RUN, "rule switched off by site.yaml")


def test_an_unknown_rule_is_refused_before_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt rule would be lenient in silence."""
    assert run(["sim", "run", INCAST, "--rules", site("ecmp.reciever-overloaded: {severity: off}")]) == 2
    assert capsys.readouterr().err == (
        "site.yaml:2: rules.ecmp.reciever-overloaded: unknown rule 'ecmp.reciever-overloaded'\n"
        "  did you mean 'ecmp.receiver-overloaded'?\n"
        "  next: fabrictune rules lists them\n"
    )


def test_a_rule_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """By the id of a finding, also one of a family; with the site's severity."""
    assert run(["rules", "expect.makespan"]) == 0
    assert capsys.readouterr().out.startswith("expect.makespan: Broken expectation (error)\nA metric breaks a bound")
    assert run(["rules", "--json", "--rules", site("fabric.partition: {severity: off}")]) == 0
    listed = {rule["id"]: rule for rule in json.loads(capsys.readouterr().out)["catalog"]}
    assert set(listed) == set(RULES)
    assert listed["fabric.partition"]["severity"] == "off"
