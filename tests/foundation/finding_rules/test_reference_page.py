"""docs/reference/findings.md says what the catalog says."""

from fabrictune.foundation.finding_rules.catalog import RULES
from fabrictune.foundation.finding_rules.reference_page import PATH, reference_page


def test_the_page_is_up_to_date() -> None:
    """`make reference` writes it."""
    assert PATH.read_text() == reference_page()


def test_every_rule_has_its_anchor_and_title() -> None:
    """A finding's page links to it."""
    page = reference_page()
    for rule in RULES.values():
        assert f'### <a id="{rule.id}"></a>{rule.id}\n\n**{rule.title}**' in page
