"""docs/reference/laws.md says what the laws say."""

from fabrictune.cc.reference_page import PATH, reference_page


def test_the_page_is_up_to_date():
    """No default and no range changes unnoticed; `make reference` writes the page."""
    assert PATH.read_text() == reference_page()


def test_a_number_is_shown_to_its_last_digit():
    """A share as it is written, and a whole number with its thousands."""
    assert "| `max_decrease_fraction` | 0.5 | 0 | 0.99 | max_mdf: no cut takes more" in reference_page()
    assert "| `base_target_ps` | 25,000,000 | 0 | 1,000,000,000,000 | target of" in reference_page()
