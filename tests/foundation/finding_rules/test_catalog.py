"""The catalog has every rule, and every rule has findings somewhere."""

import ast
import re
from pathlib import Path

import pytest

from fabrictune.foundation.finding_rules import catalog, collectives, fabric, paths, rdma, simulation
from fabrictune.foundation.finding_rules.catalog import RULES, check_rules, find_rule
from fabrictune.foundation.finding_rules.schema import FAMILY, Rule
from fabrictune.foundation.findings import Confidence, Finding, Severity

MODULES = (collectives, fabric, paths, rdma, simulation)
ROOT = Path(__file__).parents[3]
ROOMS = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "foundation"]
SENTENCE = re.compile(r"[A-Z].*[.]")


def test_two_lists_of_one_rule_share_no_id() -> None:
    """An id names one rule."""
    assert len(RULES) == sum(map(len, catalog.SUBJECTS.values()))


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_the_texts_of_a_rule_are_whole(rule: Rule) -> None:
    """Sentences where the page prints sentences; a next step that completes `next:`."""
    for text in (rule.meaning, rule.impact, rule.evidence, *(threshold.source for threshold in rule.thresholds)):
        assert SENTENCE.fullmatch(text), text
    assert re.fullmatch(r"[a-z].*[^.]", rule.next_step) or rule.next_step.startswith("NCCL_"), rule.next_step
    assert re.fullmatch(r"[A-Z].*[^.]", rule.title), rule.title


def test_a_family_has_the_findings_that_begin_like_it() -> None:
    """`expect.makespan` is a finding of `expect.*`."""
    rule = RULES[f"expect.{FAMILY}"]
    assert find_rule("expect.makespan") is rule
    assert find_rule("expectation") is None
    finding = rule.finding(member="makespan", entity="e", actual="a", expected="x", confidence=Confidence.PREDICTED)
    assert finding.id == "expect.makespan"


def test_an_id_outside_the_catalog_is_a_mistake_of_ours() -> None:
    """As with tables: what is not listed is not written."""
    finding = Finding(
        id="no.such-rule",
        severity=Severity.INFO,
        entity="",
        expected="",
        actual="",
        next_step="",
        confidence=Confidence.MEASURED,
    )
    with pytest.raises(AssertionError, match=r"findings of no rule of the catalog: no\.such-rule"):
        check_rules([finding.id])


def test_a_finding_has_a_severity_of_its_rule() -> None:
    """A page that lists the severities of a rule lists all."""
    with pytest.raises(AssertionError, match=r"fabric\.partition has no severity info"):
        RULES["fabric.partition"].finding(
            entity="", actual="", expected="", confidence=Confidence.MEASURED, severity=Severity.INFO
        )


def test_every_rule_builds_findings_and_nothing_else_does() -> None:
    """Severity and next step are written once; a rule that nothing uses explains nothing."""
    sources = [path.read_text() for room in ROOMS for path in room.rglob("*.py")]
    names = {name for module in MODULES for name, value in vars(module).items() if isinstance(value, Rule)}
    used = {node.id for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    assert names - used == set(), "rules without findings"
    assert not [source[:80] for source in sources if re.search(r"\bFinding\(", source)], "findings without a rule"


def test_every_threshold_is_read_from_the_sites_settings() -> None:
    """One that a site sets without effect would be worse than none."""
    sources = [path.read_text() for room in ROOMS for path in room.rglob("*.py")]
    literals = {
        node.value
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    names = {threshold.name for rule in RULES.values() for threshold in rule.thresholds}
    assert names - literals == set(), "thresholds that nothing reads"
