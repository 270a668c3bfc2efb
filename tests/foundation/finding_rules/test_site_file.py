"""A site file sets severities and thresholds, and every mistake in it is named at once."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from fabrictune.foundation.checks import Result, run_check
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.finding_rules.fabric import ISOLATED_NODE, PARTITION, UNEQUAL_RATE
from fabrictune.foundation.finding_rules.paths import LINK_OVERLOADED
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.finding_rules.simulation import EXPECTATION, RECEIVER_NOT_READY
from fabrictune.foundation.finding_rules.site_file import read_site_file
from fabrictune.foundation.findings import Confidence, Severity
from fabrictune.foundation.records import RunRecord

LONELY = ISOLATED_NODE.finding(entity="leaf9", actual="no link", expected="one", confidence=Confidence.CONFIGURED)
PARTED = PARTITION.finding(entity="leaf1", actual="no path", expected="one", confidence=Confidence.CONFIGURED)
SLOW = EXPECTATION.finding(
    member="makespan", entity="makespan", actual="2 ms", expected="1 ms", confidence=Confidence.PREDICTED
)


def read(tmp_path: Path, text: str) -> RuleSettings:
    """Return the settings of a file with this text."""
    path = tmp_path / "site.yaml"
    path.write_text(text)
    return read_site_file(path)


def test_severities_and_thresholds_are_read(tmp_path: Path) -> None:
    """Percentages and plain numbers; what a file does not name keeps the catalog's value."""
    rules = read(
        tmp_path,
        "rules:\n"
        "  ecmp.link-overloaded: {severity: error, load: 110 %, error_load: 3}\n"
        "  netsim.receiver-not-ready: {naks: 5}\n"
        "  fabric.partition: {severity: off}\n",
    )
    assert rules.threshold(LINK_OVERLOADED, "load") == 1.1
    assert rules.threshold(LINK_OVERLOADED, "error_load") == 3.0
    assert rules.threshold(RECEIVER_NOT_READY, "naks") == 5
    assert rules.threshold(UNEQUAL_RATE, "majority") == CATALOG_SETTINGS.threshold(UNEQUAL_RATE, "majority") == 0.5
    assert rules.off == ("fabric.partition",)
    assert rules.summary == (
        f"{tmp_path}/site.yaml: fabric.partition is off, ecmp.link-overloaded is error, ecmp.link-overloaded load is "
        "110 %, ecmp.link-overloaded error_load is 300 %, netsim.receiver-not-ready naks is 5"
    )


def test_findings_get_the_sites_severities(tmp_path: Path) -> None:
    """Those of a rule that is off are left out; a family's settings are those of all its findings."""
    rules = read(
        tmp_path,
        "rules:\n"
        "  fabric.isolated-node: {severity: info}\n"
        "  fabric.partition: {severity: off}\n"
        "  expect.*: {severity: info}\n",
    )
    assert rules.apply([LONELY, PARTED, SLOW]) == (
        replace(LONELY, severity=Severity.INFO),
        replace(SLOW, severity=Severity.INFO),
    )
    assert rules.apply(rules.apply([LONELY, PARTED, SLOW])) == rules.apply([LONELY, PARTED, SLOW])


def test_a_record_says_which_file_applied_and_which_rules_were_off(tmp_path: Path) -> None:
    """Silence would look like a check that has passed."""
    rules = read(tmp_path, "rules: {fabric.partition: {severity: off}}")
    report = run_check(PARTITION.id, "7 nodes", [PARTED]) + run_check(ISOLATED_NODE.id, "7 nodes", [])
    record = RunRecord(kind="sim run", run={}, findings=report.findings, checks=report.checks)
    site = rules.apply_to(record)
    assert site.findings == ()
    assert site.run["rules"] == {
        "file": f"{tmp_path}/site.yaml",
        "sha256": sha256((tmp_path / "site.yaml").read_bytes()).hexdigest(),
        "off": ["fabric.partition"],
        "severities": {},
        "thresholds": {},
    }
    assert site.checks is not None
    off, ran = site.checks
    assert (off.result, off.reason) == (Result.NOT_RUN, f"rule switched off by {tmp_path}/site.yaml")
    assert ran.result == Result.PASSED
    assert CATALOG_SETTINGS.apply_to(record) == record


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    """With line, key, what is allowed, and the nearest name."""
    text = (
        "rulez: {}\n"
        "rules:\n"
        "  ecmp.link-overlodaed: {load: 1}\n"
        "  ecmp.link-overloaded: {severity: fatal, lood: 1, load: x, error_load: true}\n"
        "  fabric.unequal-rate: {majority: 20 %}\n"
        "  netsim.receiver-not-ready: {naks: 1.5}\n"
        "  fabric.partition: off\n"
    )
    path = tmp_path / "site.yaml"
    with pytest.raises(InputError) as raised:
        read(tmp_path, text)
    assert str(raised.value) == "\n".join(
        [
            f"{path}:1: rulez: unknown key 'rulez'",
            "  did you mean 'rules'?",
            "  allowed: rules",
            f"{path}:3: rules.ecmp.link-overlodaed: unknown rule 'ecmp.link-overlodaed'",
            "  did you mean 'ecmp.link-overloaded'?",
            "  next: fabrictune rules lists them",
            f"{path}:4: rules.ecmp.link-overloaded.severity: unknown severity 'fatal'",
            "  allowed: info, warning, error, critical, off",
            f"{path}:4: rules.ecmp.link-overloaded.lood: unknown threshold of ecmp.link-overloaded 'lood'",
            "  did you mean 'load'?",
            "  allowed: severity, load, error_load",
            f"{path}:4: rules.ecmp.link-overloaded.load: 'x': expected a ratio",
            '  allowed: a number that is not negative, or a percentage such as "110 %"',
            f"{path}:4: rules.ecmp.link-overloaded.error_load: True where a number is needed",
            f"{path}:5: rules.fabric.unequal-rate.majority: 20 %",
            "  allowed: 50 % to 100 %",
            f"{path}:6: rules.netsim.receiver-not-ready.naks: 1.5",
            "  allowed: a whole number of 0 or more",
            f"{path}:7: rules.fabric.partition: 'off' where a mapping is needed",
            "  next: write it as `{severity: off}`",
        ]
    )
