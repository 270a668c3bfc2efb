"""Outcomes over hash seeds on the page: rows, intervals and effects as the record has them, and nothing more."""

from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page
from fabrictune.reports.record_view import open_run
from fabrictune.reports.seed_studies import outcomes_section


def outcomes(what: str, *names: str) -> dict[str, Any]:
    """Return a table in which row k lets (k + 1) tenths through, within a twentieth."""
    share = (np.arange(len(names)) + 1) / 10
    table: dict[str, Any] = {what: np.array(names, object)}
    for column in ("overload_probability", "throughput_fraction", "slowest_fraction"):
        table |= {column: share, f"{column}_low": share - 0.05, f"{column}_high": share + 0.05}
    table["num_seeds"] = np.full(len(names), 50)
    if what == "step":
        table |= {"knows_seeds": np.arange(len(names)) == 2, "is_taken": np.arange(len(names)) != 1}
    loads = {"worst_load_fraction": 1 / share, "worst_load_fraction_p99": 2 / share}
    return table | loads | {"slowest_connection_bps": share * 200e9}


def effects() -> dict[str, Any]:
    """Return one factor that raises throughput by 40 points and lowers the worst load by 2."""
    return {
        "effect": np.array(["split"] * 2, object),
        "metric": np.array(["throughput_fraction", "worst_load_fraction"], object),
        "value": np.array([0.4, -2.0]),
        "low": np.array([0.38, -2.5]),
        "high": np.array([0.42, -1.5]),
    }


def record(**tables: Any) -> RunRecord:
    """Return a record of these tables."""
    return RunRecord(kind="ecmp factorial", run={"name": "trial"}, tables=tables)


def test_every_row_has_its_figures_and_its_interval() -> None:
    """The better of two designs: 20 % from 15 to 25, worst load 5, 40 Gbps."""
    section = outcomes_section([open_run(record(designs=outcomes("design", "none", "split")), "trial")])
    assert section is not None
    (figure,) = section.blocks
    assert [cell.text for cell in figure.table.rows[0]] == [  # type: ignore[union-attr]  # a figure has its table
        "split",
        "50",
        "20.0 % (15.0 to 25.0)",
        "5.00",
        "10.00",
        "20.0 % (15.0 to 25.0)",
        "20.0 % (15.0 to 25.0)",
        "40 Gbps",
    ]


def test_a_row_says_how_many_seeds_it_is_of_and_whether_the_plan_has_it() -> None:
    """Fifty tried, none needed, or the scenario's own: "each row covers many of them" held for the first alone."""
    steps = outcomes("step", "as it is", "placement", "own seeds") | {"num_seeds": np.array([50, 0, 1])}
    section = outcomes_section([open_run(record(steps=steps), "trial")])
    assert section is not None
    table = section.blocks[0].table  # type: ignore[union-attr]  # a figure has its table
    assert table is not None
    assert table.headings[:3] == ("Step", "In the plan", "Hash seeds")
    assert [[cell.text for cell in row[:3]] for row in table.rows] == [
        ["as it is", "yes", "50"],
        ["placement", "no", "exact"],
        ["own seeds", "yes", "the scenario's own"],
    ]


def test_effects_stand_with_their_signs_and_what_is_missing_is_a_dash() -> None:
    """In points of a share, or in the load's own unit."""
    section = outcomes_section([open_run(record(effects=effects()), "trial")])
    assert section is not None
    (table,) = section.blocks
    assert [cell.text for cell in table.rows[0]] == [  # type: ignore[union-attr]  # a table has rows
        "split",
        "\u2013",
        "+40.0 ± 2.0 points",
        "\u2013",
        "-2.00 ± 0.50",
    ]


def test_variants_designs_and_steps_are_all_shown_and_names_are_escaped() -> None:
    """A page of three tables; a variant's name is the user's text."""
    page = build_page(
        [
            record(
                variants=outcomes("variant", "<script>alert(1)</script>"),
                designs=outcomes("design", "none"),
                steps=outcomes("step", "as it is"),
                effects=effects(),
            )
        ],
        title="trial",
    )
    assert all(f"trial: 1 {what}. Upper bar" in page for what in ("variant", "design", "step"))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_a_figure_of_some_rows_counts_all() -> None:
    """A hundred variants, 64 drawn: the caption does not call them 64 variants."""
    one = outcomes("variant", "as it is")
    section = outcomes_section([open_run(record(variants={name: np.repeat(one[name], 100) for name in one}), "trial")])
    assert section is not None
    assert section.blocks[0].caption.startswith("trial: the first 64 of 100 variants. Upper bar")


def test_a_run_without_outcomes_has_no_section() -> None:
    """Nor has one whose tables are empty."""
    assert outcomes_section([open_run(record(), "trial")]) is None
    assert outcomes_section([open_run(record(variants=outcomes("variant")), "trial")]) is None


def test_a_table_without_its_interval_is_refused() -> None:
    """A figure without its uncertainty is half a figure."""
    broken = outcomes("variant", "as it is")
    del broken["throughput_fraction_low"]
    with pytest.raises(RecordError, match=r"trial: variants.throughput_fraction_low: the column is missing"):
        outcomes_section([open_run(record(variants=broken), "trial")])
