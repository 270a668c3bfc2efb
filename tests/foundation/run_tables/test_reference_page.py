"""docs/reference/record-tables.md says what the schema says."""

from fabrictune.foundation.run_tables.catalog import TABLES
from fabrictune.foundation.run_tables.reference_page import PATH, reference_page


def test_the_page_is_up_to_date() -> None:
    """`make reference` writes it."""
    assert PATH.read_text() == reference_page()


def test_every_table_has_its_section() -> None:
    """With what a row is, and the records that have it."""
    page = reference_page()
    for table in TABLES.values():
        assert f"### {table.name}\n\nA row is {table.row}. Records: `{table.kinds[0]}`" in page
