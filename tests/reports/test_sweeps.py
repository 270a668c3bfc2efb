"""A sweep on the page: every point where its objectives put it, the best marked, and keys with what they explain."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.page import build_page
from fabrictune.reports.record_view import open_run
from fabrictune.reports.sweeps import sweeps_section


def sweep(metrics: tuple[str, ...] = ("time", "queue")) -> RunRecord:
    """Return two points: 1 ms with 2 MB, and 2 ms with 1 MB, each within a tenth; the first alone is the best."""
    values = {"time": ("ps", (1e9, 2e9)), "queue": ("bytes", (2e6, 1e6))}
    rows: list[tuple[Any, ...]] = [
        (point, metric, values[metric][0], values[metric][1][point]) for point in (0, 1) for metric in metrics
    ]
    point, metric, unit, value = zip(*rows, strict=True)
    tables: dict[str, Any] = {
        "points": {
            "point": np.arange(2),
            "settings": np.array(["k = <1>", "k = 2"], object),
            "num_seeds": np.array([3, 1]),
            "is_on_front": np.array([1, 0]),
        },
        "objectives": {
            "is_maximised": np.zeros(len(point), np.int64),
            "point": np.array(point),
            "metric": np.array(metric, object),
            "unit": np.array(unit, object),
            "value": np.array(value),
            "low": 0.9 * np.array(value),
            "high": 1.1 * np.array(value),
        },
        "sensitivity": {
            "key": np.array(["k", "k"], object),
            "metric": np.array([metrics[0]] * 2, object),
            "measure": np.array(["variance_share", "rank_correlation"], object),
            "value": np.array([0.97, -0.5]),
        },
    }
    return RunRecord(kind="sim sweep", run={"name": "trial"}, tables=tables)


def test_points_stand_with_their_intervals_and_keys_with_their_shares() -> None:
    """1 ms within 0.1 ms; 97 % of the time's variance; what the record does not tell is a dash."""
    section = sweeps_section([open_run(sweep(), "trial")])
    assert section is not None
    figure, table = section.blocks
    assert figure.caption == (
        "trial: 1 of 2 points Pareto-optimal. These are drawn larger. Numbers: 1 <1>; 2 2. "
        "Lines: 95 % intervals over seeds."
    )
    assert re.findall(r'<rect [^>]*width="(\d+)"', figure.drawing) == ["5", "10"]  # type: ignore[union-attr]
    rows = [[cell.text for cell in row] for row in figure.table.rows]  # type: ignore[union-attr]  # it has its table
    assert rows == [
        ["k = <1>", "3", "yes", "1 ms ± 100 us", "2 MB ± 200 KB"],
        ["k = 2", "1", "", "2 ms ± 200 us", "1 MB ± 100 KB"],
    ]
    assert [cell.text for cell in table.rows[0]] == ["k", "97 %", "-0.50"]  # type: ignore[union-attr]  # a table


def test_the_page_shows_settings_and_runs_none() -> None:
    """What a key was set to is text, whatever it looks like."""
    page = build_page([sweep()], title="trial")
    assert "k = &lt;1&gt;" in page
    assert "k = <1>" not in page


def test_one_objective_is_drawn_over_the_points() -> None:
    """The axis across is the point's number."""
    page = build_page([sweep(("time",))], title="trial")
    assert ">point</text>" in page


def test_every_objective_is_drawn_over_the_first_and_what_is_not_is_said() -> None:
    """One seed has no interval; three objectives are two drawings; a point without results has no place."""
    record = sweep()
    points, objectives = record.tables["points"], record.tables["objectives"]
    points |= {name: np.append(values, values[:1]) for name, values in points.items()}  # type: ignore[operator]
    points["is_on_front"][2], points["point"][2] = 0, 2
    third = {name: values[[0, 2]] for name, values in objectives.items()} | {"metric": np.array(["drops"] * 2, object)}
    for name, values in objectives.items():
        objectives[name] = np.concatenate([values, third[name]])  # type: ignore[index]
    objectives["low"] = objectives["high"] = objectives["value"]  # type: ignore[index]
    section = sweeps_section([open_run(record, "trial")])
    assert section is not None
    captions = [block.caption for block in section.blocks[:2]]
    assert (
        captions
        == [
            "trial: 1 of 2 points Pareto-optimal. These are drawn larger. Numbers: 1 <1>; 2 2. "
            "1 point without results not drawn."
        ]
        * 2
    )
    drawings = [str(block.drawing) for block in section.blocks[:2]]  # type: ignore[union-attr]  # figures
    assert [name in drawing for drawing in drawings for name in (">queue, MB<", ">drops")] == [
        True,
        False,
        False,
        True,
    ]


def test_a_point_shows_every_objective_and_its_number() -> None:
    """On request its settings with all values; beside it a number, one label for points that lie together."""
    section = sweeps_section([open_run(sweep(), "trial")])
    assert section is not None
    drawing = str(section.blocks[0].drawing)  # type: ignore[union-attr]  # a figure
    assert "<title>k = 2: time 2 ms, queue 1 MB</title>" in drawing
    assert re.findall(r'class="tick"[^>]*>(\d)</text>', drawing)[-2:] == ["2", "1"]
    record = sweep()
    objectives = record.tables["objectives"]
    for name in ("value", "low", "high"):
        objectives[name][2:] = objectives[name][:2]
    section = sweeps_section([open_run(record, "trial")])
    assert section is not None
    assert ">1 2</text>" in str(section.blocks[0].drawing)  # type: ignore[union-attr]


def test_a_front_of_one_seed_is_said_to_be_unfounded() -> None:
    """Another seed may put other points on it."""
    record = sweep()
    record.tables["points"]["num_seeds"][:] = 1
    section = sweeps_section([open_run(record, "trial")])
    assert section is not None
    assert str(section.blocks[0].caption).startswith(
        "trial: 1 of 2 points Pareto-optimal. One seed: this front is unfounded."
    )


def test_the_laws_of_a_sweep_are_a_table() -> None:
    """Which form of its algorithm each is, and where its parameters are from."""
    record = replace(sweep(), run={"laws": [{"law": "dcqcn", "form": "the paper's", "parameters": "all set"}]})
    section = sweeps_section([open_run(record, "trial")])
    assert section is not None
    (table,) = [block for block in section.blocks if block.caption == "trial: laws as they ran"]
    assert [cell.text for cell in table.rows[0]] == ["dcqcn", "the paper's", "all set"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"point": np.array([0, 0, 1, 7])}, "trial: objectives.point: a point that table 'points' has not"),
        ({"point": np.array([0, 0, 1, 0])}, "trial: objectives.point: not every point once for 'queue'"),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(change: dict[str, Any], message: str) -> None:
    """A value without its point would be drawn at another's place."""
    record = sweep()
    tables = {**record.tables, "objectives": {**record.tables["objectives"], **change}}
    with pytest.raises(RecordError) as caught:
        sweeps_section([open_run(RunRecord(kind="sim sweep", run={}, tables=tables), "trial")])
    assert str(caught.value) == message


def test_half_a_table_is_refused() -> None:
    """By name and column."""
    record = sweep()
    del record.tables["objectives"]["unit"]  # type: ignore[attr-defined]  # a dictionary, made above
    with pytest.raises(RecordError, match=r"trial: objectives\.unit: the column is missing"):
        sweeps_section([open_run(record, "trial")])
