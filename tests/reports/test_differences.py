"""Pages of several runs begin with the keys that differ, and mark what is better and what is worse than the first."""

from collections.abc import Callable

import numpy as np
import pytest

from fabrictune.foundation.records import RunRecord
from fabrictune.reports.blocks import MISSING, Cell, Table
from fabrictune.reports.differences import MAX_ROWS, MAX_TEXT, differences_section
from fabrictune.reports.kpi_table import kpi_section
from fabrictune.reports.page import build_page, open_runs

Maker = Callable[..., RunRecord]


def rows_of(*records: RunRecord) -> list[tuple[str, ...]]:
    section = differences_section(open_runs(records, ("a", "b", "c")[: len(records)], ()))
    assert section is not None
    return [tuple(str(cell.text) for cell in row) for table in section.blocks for row in table_rows(table)]


def table_rows(table: object) -> tuple[tuple[Cell, ...], ...]:
    assert isinstance(table, Table)
    return table.rows


def test_the_keys_that_differ_are_listed_with_every_run_s_value(make_record: Maker) -> None:
    """A key that one leaves out is its default there; names and questions say nothing; a list is one value."""
    first = make_record(run={"scenario": "name: x\nlaw: none\nfabric: {builder: clos, tiers: 2}\nfaults: [a]\n"})
    text = "name: y\nlaw: swift\nfabric: {builder: clos, tiers: 2}\nfaults: [a, b]\nengine: {ecn: {kmin: 5 KB}}\n"
    second = make_record(run={"scenario": text, "seed": 2})
    assert rows_of(first, second) == [
        ("law", "none", "swift"),
        ("faults", '["a"]', '["a", "b"]'),
        ("seed", "1", "2"),
        ("engine.ecn.kmin", MISSING, "5 KB"),
    ]


def test_the_lead_says_what_may_be_concluded(make_record: Maker) -> None:
    """From one key its effect, from several none of one, from none another cause; seeds are chance."""
    base = {"scenario": "law: none\n", "question": "fast?"}
    record = make_record(run=base)
    others = {
        "The scenarios set the same;": base,
        "One key of the scenarios differs, and what follows is its effect.": {**base, "scenario": "law: swift\n"},
        "Several keys differ; what follows is the effect of all of them together.": {
            **base,
            "scenario": "law: swift\nfabric: x\n",
        },
        "Only the seeds of the scenarios differ, and what follows is chance.": {**base, "seed": 2},
        "One key of the scenarios differs, and what follows is its effect and that of the seeds.": {
            **base,
            "scenario": "law: swift\n",
            "seed": 2,
        },
    }
    for text, run in others.items():
        section = differences_section(open_runs((record, make_record(run=run)), ("a", "b"), ()))
        assert section is not None
        assert section.lead.startswith(text)
        assert "question" not in section.lead
    other = make_record(run={**base, "question": "fair?"})
    section = differences_section(open_runs((record, other), ("a", "b"), ()))
    assert section is not None
    assert section.lead.endswith("The scenarios do not ask the same question.")


@pytest.mark.parametrize("text", [None, "law: [", "x: 1\n" * 300_000])
def test_a_scenario_that_cannot_be_read_is_left_out(make_record: Maker, text: str | None) -> None:
    """With it there is nothing to compare: one has no scenario, a broken one, or one longer than is read."""
    records = (make_record(), make_record(run={"scenario": text}))
    assert differences_section(open_runs(records, ("a", "b"), ())) is None


def test_long_lists_and_values_are_cut_and_counted(make_record: Maker) -> None:
    """The record has them all."""
    texts = ["".join(f"key{number}: {sign * 200}\n" for number in range(MAX_ROWS + 5)) for sign in "ab"]
    runs = open_runs([make_record(run={"scenario": text}) for text in texts], ("a", "b"), ())
    section = differences_section(runs)
    assert section is not None
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert len(table.rows) == MAX_ROWS
    assert "5" in table.left_out
    assert {len(str(row[1].text)) for row in table.rows} == {MAX_TEXT}


def test_ratios_to_the_first_run_are_marked_by_what_is_better(make_record: Maker, record: RunRecord) -> None:
    """Half of the time is better, twice is worse, and half a percent is neither."""
    transfers = record.tables["transfers"]
    tones = {}
    for factor in (0.5, 1.004, 2.0):
        times = {**transfers, "finish_ps": (transfers["finish_ps"] * factor).astype(np.int64)}
        section = kpi_section(open_runs((record, make_record(tables={"transfers": times})), ("a", "b"), ()))
        assert section is not None
        (table,) = section.blocks
        assert isinstance(table, Table)
        tones[factor] = {str(row[0].text): row[3].tone for row in table.rows}
    assert [tones[factor]["JCT"] for factor in tones] == ["better", "", "worse"]
    assert [tones[factor]["Aggregate throughput"] for factor in tones] == ["better", "", "worse"]


def test_the_page_of_one_run_has_no_differences(record: RunRecord) -> None:
    assert "What differs" not in build_page([record], title="t")
    assert "What differs" in build_page([record, record], title="t", labels=("a", "b"))


def test_a_run_that_is_not_compared_is_named(make_record: Maker) -> None:
    """Two of three have a scenario that can be read."""
    runs = open_runs((make_record(), make_record(), make_record(run={"scenario": "law: ["})), ("a", "b", "c"), ())
    section = differences_section(runs)
    assert section is not None
    assert section.lead.endswith("Not compared, without a scenario that could be read: c.")
