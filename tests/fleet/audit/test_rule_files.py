"""Rules of a site are data: what they can say, and what is refused with every mistake at once."""

from pathlib import Path

import pytest

from fabrictune.fleet.audit.report import judge_all
from fabrictune.fleet.audit.rule_files import profile_names, read_profile, read_rules
from fabrictune.fleet.facts.derived import fleet_facts
from fabrictune.foundation.errors import InputError
from tests.fleet.site import clean_site

SITE = """\
rules:
- id: two-nics
  severity: critical
  title: Host without both NICs
  check: {count: rdma.state, of_nodes_with: gpu.model, is: at_least, to: 3}
  next: see the host
expect:
  nic.mtu: 4200
  switch.pfcwd_action: [drop, forward]
"""
WRONG = """\
rules:
- id: a
  severity: eror
  title: x
  check: {compare: nic.mtu, is: equal, to: 1, to_fact: y}
  nxt: do
"""


def test_a_site_has_rules_and_values_of_its_own(tmp_path: Path) -> None:
    """A count that no host meets, a value that no NIC has, and one that all have."""
    (tmp_path / "site.yaml").write_text(SITE)
    report, _ = judge_all(read_rules(tmp_path / "site.yaml"), fleet_facts(clean_site().readings()))
    counts = {check.rule: check.num_found for check in report.checks}
    assert counts == {"audit.two-nics": 4, "audit.expected-nic.mtu": 8, "audit.expected-switch.pfcwd_action": 0}
    assert report.findings[0].actual == "2 of rdma.state"
    assert report.findings[0].severity.value == "critical"


def test_every_mistake_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line, key, nearest name and what is allowed."""
    monkeypatch.chdir(tmp_path)
    Path("site.yaml").write_text(WRONG)
    with pytest.raises(InputError) as raised:
        read_rules(Path("site.yaml"))
    assert [(mistake.where, mistake.found, mistake.nearest) for mistake in raised.value.mistakes] == [
        ("site.yaml:6: rules[0].nxt", "'nxt'", "next"),
        ("site.yaml:2: rules[0]", "no next", ""),
        ("site.yaml:3: rules[0].severity", "'eror'", "error"),
        ("site.yaml:5: rules[0].check.is", "'equal'", "equals"),
        ("site.yaml:5: rules[0].check", "to and to_fact, or neither", ""),
    ]


def test_vendors_defaults_are_asked_for_by_name() -> None:
    """They are no defaults of ours: two vendors' CNPs have different DSCPs, and a site may have a third."""
    assert profile_names() == ("broadcom-thor2", "nvidia-roce-optimized")
    report, _ = judge_all(
        read_profile("nvidia-roce-optimized", where="--profile"), fleet_facts(clean_site().readings())
    )
    assert {finding.id for finding in report.findings} == {"audit.expected-nic.cnp_dscp"}
