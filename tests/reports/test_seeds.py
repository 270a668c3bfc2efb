"""Seeds: each run of a scenario is a circle, beside the mean and its interval."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from fabrictune.foundation.quantiles import student_t_95
from fabrictune.reports.blocks import Figure
from fabrictune.reports.page import open_runs
from fabrictune.reports.seeds import seeds_section
from tests.reports.conftest import RecordMaker, two_flow_tables

TIMES_US = {"none": (100, 110, 120), "dcqcn": (90, 99, 108)}


def seeds_figure(make_record: RecordMaker, times_us: Mapping[str, Sequence[int]]) -> Figure | None:
    """Return the figure of runs of these laws that take so long, each under a seed of its own."""
    transfers = two_flow_tables()["transfers"]
    records = [
        make_record(
            run={"scenario": f"law: {law}\n", "seed": seed},
            tables={"transfers": {**transfers, "finish_ps": np.full(2, 10**6 * time_us)}},
        )
        for law, own in times_us.items()
        for seed, time_us in enumerate(own)
    ]
    section = seeds_section(open_runs(records, list("abcdefgh")[: len(records)]))
    if section is None:
        return None
    (figure,) = section.blocks
    assert isinstance(figure, Figure)
    return figure


def test_each_seed_is_a_circle_beside_the_mean(make_record: RecordMaker) -> None:
    """JCTs of 100, 110 and 120 us: 110 us, and Student's t times 10 us over the root of 3 to either side."""
    figure = seeds_figure(make_record, TIMES_US)
    assert figure is not None
    assert figure.table is not None
    rows = {(row[0].text, row[1].text): [cell.text for cell in row[2:]] for row in figure.table.rows}
    margin_us = student_t_95(2) * 10 / 3**0.5
    assert margin_us == pytest.approx(24.84, abs=0.01)
    assert rows["JCT", "a, b, c"] == ["3", "110 us", "85.16 us", "134.8 us", "100 us", "120 us"]
    assert rows["JCT", "d, e, f"][1] == "99 us"
    assert "<title>mean 110 us \u00b1 24.84 us</title>" in figure.drawing
    for shown in ("100 us", "110 us", "120 us", "90 us", "99 us", "108 us"):
        assert f"<title>{shown}</title></circle>" in figure.drawing


def test_what_no_seed_changes_has_no_panel(make_record: RecordMaker) -> None:
    """The offered load is that of the same paths under each seed here: three circles on one spot say nothing."""
    figure = seeds_figure(make_record, TIMES_US)
    assert figure is not None
    assert figure.table is not None
    assert "Highest offered load" not in {row[0].text for row in figure.table.rows}


def test_a_scenario_alone_shows_how_far_chance_goes(make_record: RecordMaker) -> None:
    """There is nothing to compare it with, and its own spread is worth a look."""
    figure = seeds_figure(make_record, {"none": (100, 110, 120, 130)})
    assert figure is not None
    assert figure.caption.startswith("Runs of the same scenario. Circles: a seed each;")


def test_too_few_seeds_have_no_section(make_record: RecordMaker) -> None:
    """Of two seeds no interval is worth drawing; nor where one scenario has three and the other two."""
    assert seeds_figure(make_record, {"none": (100, 110)}) is None
    assert seeds_figure(make_record, {"none": (100, 110, 120), "dcqcn": (90, 99)}) is None


def test_a_run_that_never_finished_has_no_mean(make_record: RecordMaker) -> None:
    """Its JCT is infinite: the panel is left out rather than drawn without it."""
    figure = seeds_figure(make_record, {"none": (100, 110, -1)})
    assert figure is None or figure.table is None or "JCT" not in {row[0].text for row in figure.table.rows}
