"""The catalog has every rule, and every rule has findings somewhere."""

import re

import pytest

from fabrictune.foundation.finding_rules import catalog
from fabrictune.foundation.finding_rules.catalog import RULES, check_rules, find_rule
from fabrictune.foundation.finding_rules.schema import FAMILY, Rule
from fabrictune.foundation.findings import Confidence, Finding, Severity

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
        check_rules([finding])


def test_a_finding_has_a_severity_of_its_rule() -> None:
    """A page that lists the severities of a rule lists all."""
    with pytest.raises(AssertionError, match=r"fabric\.partition has no severity info"):
        RULES["fabric.partition"].finding(
            entity="", actual="", expected="", confidence=Confidence.MEASURED, severity=Severity.INFO
        )
