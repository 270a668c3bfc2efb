"""Pages of several runs say once what several runs have in common."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from markupsafe import Markup

from fabrictune.foundation.checks import Check
from fabrictune.foundation.records import Finding, RunRecord
from fabrictune.reports import svg
from fabrictune.reports.blocks import Figure, Table, merge_alike, words
from fabrictune.reports.page import build_page, make_sections, open_runs
from fabrictune.reports.verdict import make_verdict
from tests.browser.pages import KINDS
from tests.browser.pages import make_record as record_of_kind
from tests.reports.conftest import two_flow_tables

MakeRecord = Callable[..., RunRecord]
LABELS = ("zqa", "zqb", "zqc")


def a_table(caption: str, value: str = "1") -> Table:
    return Table(caption=caption, headings=("Value",), rows=((words(value),),))


def a_figure(caption: str) -> Figure:
    return Figure(caption=caption, drawing=svg.figure(10, caption, Markup("<g/>")))


@pytest.mark.parametrize("kind", KINDS)
def test_three_runs_with_the_same_results_have_no_block_twice(kind: str) -> None:
    """Whatever the kind of record: each table and each figure is there once, but for the label."""
    runs = open_runs([record_of_kind(kind)] * len(LABELS), LABELS)
    for section in make_sections(runs):
        shown = [repr(block) for block in section.blocks]
        for label in LABELS:
            shown = [text.replace(label, "") for text in shown]
        assert len(set(shown)) == len(shown), [block.caption for block in section.blocks]


def test_alike_blocks_are_merged_under_all_labels() -> None:
    """The third table has another value, the last is about all runs, and a label may begin with another."""
    blocks = [a_table("a: links"), a_table("a: 2: links"), a_table("b: links", "2"), a_table("All links")]
    captions = [block.caption for block in merge_alike(blocks, ["a", "a: 2", "b"])]
    assert captions == ["a, a: 2: links", "b: links", "All links"]


def test_the_text_of_a_drawing_is_its_caption() -> None:
    """What a reader who cannot see it hears names all runs, too, and is escaped."""
    (figure,) = merge_alike([a_figure('a: "queues"'), a_figure('b: "queues"')], ["a", "b"])
    assert figure == a_figure('a, b: "queues"')
    assert "a, b: &#34;queues&#34;" in figure.drawing


def test_tables_that_differ_in_one_number_stay_apart(make_record: MakeRecord) -> None:
    """One of three runs is slower: its queue pairs have a table of their own."""
    slower = {**two_flow_tables()["transfers"], "finish_ps": np.array([100_000_000, 250_000_000])}
    records = [make_record(), make_record(tables={"transfers": slower}), make_record()]
    html = build_page(records, title="page", labels=["a", "b", "c"])
    assert "<caption>a, c: queue pairs with the slowest transfers</caption>" in html
    assert "<caption>b: queue pairs with the slowest transfers</caption>" in html


def test_findings_and_counts_of_checks_are_said_once(
    make_record: MakeRecord, make_finding: Callable[..., Finding]
) -> None:
    """Two runs with the same finding, and one with another."""
    check = Check(rule=make_finding().id, subject="12 links", num_found=1)
    first = make_record(findings=(make_finding(),), checks=(check,))
    other = replace(first, findings=(make_finding(entity="tor1"),))
    verdict = make_verdict(open_runs([first, other, first], ["a", "b", "c"]))
    assert [(group.label, group.finding.entity) for group in verdict.groups] == [
        ("a, c", "tor0:swp3 -> tor1:swp3"),
        ("b", "tor1"),
    ]
    assert "a, b, c: 1 check: 1 found something." in verdict.sentence
