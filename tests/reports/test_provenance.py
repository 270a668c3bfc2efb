"""Everything run.json says, as text a person can read."""

from collections.abc import Callable
from typing import Any

from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page
from fabrictune.reports.provenance import MAX_NOTES, MAX_TEXT, Provenance, read_provenance
from fabrictune.reports.record_view import open_run


def described(make_record: Callable[..., RunRecord], **run: Any) -> Provenance:
    (found,) = read_provenance([open_run(make_record(run=run), "run")])
    return found


def test_the_scenario_stands_first_among_the_texts(make_record: Callable[..., RunRecord]) -> None:
    """It is what one needs to run again; the law's source, with its lines kept, comes after it."""
    law = {"name": "dcqcn", "source": "def on_start():\n    pass\n"}
    found = described(make_record, law=law, configuration={"ecn": {"enabled": True}})
    assert [name for name, _ in found.texts] == ["scenario", "configuration", "law.source"]
    assert found.texts[2][1] == law["source"]


def test_short_facts_stand_in_lines(make_record: Callable[..., RunRecord]) -> None:
    """A flat mapping reads as its keys and values."""
    found = described(make_record, machine={"processor": "EPYC", "cores": 2}, is_partial=False)
    assert dict(found.facts)["machine"] == "cores 2, processor EPYC"
    assert dict(found.facts)["is_partial"] == "false"


def test_a_long_scenario_is_cut_and_says_so(make_record: Callable[..., RunRecord]) -> None:
    """100 characters beyond the limit are counted."""
    found = described(make_record, scenario="x" * (MAX_TEXT + 100))
    assert found.texts[0][1].endswith("\n… 100 more characters in run.json")


def test_notes_are_a_list_of_their_own_with_their_true_number(make_record: Callable[..., RunRecord]) -> None:
    """What the run assumes is no fact among versions; past the limit the rest is counted."""
    found = described(make_record, notes=[f"note {number}" for number in range(MAX_NOTES + 7)])
    assert (found.notes[:2], len(found.notes), found.num_more_notes) == (("note 0", "note 1"), MAX_NOTES, 7)
    assert "notes" not in {name for name, _ in (*found.facts, *found.texts)}
    page = build_page([make_record(run={"notes": ["2 links have no speed; assuming <100 Gbps>"]})], title="run")
    assert "<li>2 links have no speed; assuming &lt;100 Gbps&gt;</li>" in page


def test_a_text_that_an_earlier_run_has_is_named_by_its_label(make_record: Callable[..., RunRecord]) -> None:
    """Three runs, two of one law: its source is there once for each law, and every head says where."""
    laws = ("def on_start():\n    pass\n", "def on_ack():\n    pass\n", "def on_start():\n    pass\n")
    records = [
        make_record(run={"scenario": f"law: {name}\n", "law": {"source": laws[row]}}) for row, name in enumerate("xyz")
    ]
    heads = read_provenance([open_run(record, label) for record, label in zip(records, "abc", strict=True)])
    assert [dict(head.texts).get("law.source") for head in heads] == [laws[0], laws[1], None]
    assert dict(heads[2].facts)["law.source"] == "as of a"
    assert all("scenario" in dict(head.texts) for head in heads)
