"""Everything run.json says, as text a person can read."""

from collections.abc import Callable
from typing import Any

from fabrictune.foundation.records import RunRecord
from fabrictune.reports.provenance import MAX_TEXT, Provenance, read_provenance
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
