"""Collectives, where their time goes, and storms on the page: curves and bars as the records have them."""

import re
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.attribution import PARTS, attribution_section
from fabrictune.reports.blocks import Figure
from fabrictune.reports.charts import LineChart, Scale
from fabrictune.reports.collectives import MODELS, bandwidth_charts, collectives_section
from fabrictune.reports.curves import NUM_STYLES, draw_curves
from fabrictune.reports.late_ranks import LateRanks, late_chart
from fabrictune.reports.page import TEMPLATES, build_page
from fabrictune.reports.record_view import Run, open_run
from fabrictune.reports.startup import storm_chart, storms_section
from fabrictune.validate.attribution import CAUSES
from fabrictune.validate.model_record import TIMES


def opened(**tables: Any) -> Run:
    """Return a record of these tables, opened."""
    return open_run(RunRecord(kind="coll bench", run={"name": "trial"}, tables=tables), "trial")


def measurements() -> dict[str, Any]:
    """Return 1, 2 and 3 GB/s of an all-reduce in place, and one size of a broadcast."""
    return {
        "operation": np.array(["all_reduce"] * 3 + ["broadcast"], object),
        "is_in_place": np.array([1, 1, 1, 0]),
        "num_ranks": np.full(4, 16),
        "size_bytes": np.array([8, 8000, 8_000_000, 8]),
        "bus_bandwidth_bps": np.array([8e9, 16e9, 24e9, 8e9]),
    }


def model() -> dict[str, Any]:
    """Return 5 GB/s of an all-reduce by bound, 4 by fairness, and no engine."""
    return {
        "operation": np.array(["all_reduce"], object),
        "num_ranks": np.array([16]),
        "size_bytes": np.array([8000]),
        "bound_busbw_bps": np.array([40_000_000_000]),
        "fair_busbw_bps": np.array([32_000_000_000]),
        "engine_busbw_bps": np.array([-1]),
    }


def test_every_operation_has_a_figure_and_every_source_a_curve() -> None:
    """At 8 kB: measured 2, bound 5 and max-min 4; where a curve has no such size, a dash."""
    section = collectives_section([opened(measurements=measurements(), model=model())])
    assert section is not None
    all_reduce, broadcast = section.blocks
    assert all_reduce.table.headings == ("Size", "trial, in place", "trial: bound", "trial: max-min")  # type: ignore[union-attr]
    rows = [[cell.text for cell in row] for row in all_reduce.table.rows]  # type: ignore[union-attr]
    assert rows == [["8 B", "1", "\u2013", "\u2013"], ["8 KB", "2", "5", "4"], ["8 MB", "3", "\u2013", "\u2013"]]
    assert broadcast.table.headings == ("Size", "trial")  # type: ignore[union-attr]


def fits(**changes: Any) -> dict[str, Any]:
    """Return the line of an all-reduce of 16 ranks: 1 us and 10 GB/s of each further byte."""
    line = {
        "operation": ["all_reduce"],
        "is_in_place": [1],
        "num_ranks": [16],
        "alpha_ns": [1000.0],
        "busbw_bps": [8e10],
    }
    return {name: np.array(values) for name, values in {**line, **changes}.items()}


def test_a_fitted_line_is_drawn_over_the_points_of_a_bench() -> None:
    """15 KB are sent of 8 KB: 1.5 us at 10 GB/s, and 1 us before it: 6 GB/s; the bench's points are circles."""
    compared = open_run(RunRecord(kind="coll compare", run={}, tables={"fits": fits()}), "compare")
    chart, broadcast = bandwidth_charts([opened(measurements=measurements()), compared])
    assert list(chart.curves) == ["trial, in place", "compare: fitted line, in place"]
    assert dict(chart.curves["compare: fitted line, in place"])[8000] == pytest.approx(6)
    assert [mark.up for mark in chart.marks["trial, in place"]] == [1, 2, 3]
    assert chart.caption == "all reduce: bus bandwidth by message size. Circles: measured."
    assert list(broadcast.curves) == ["trial"], "nothing was fitted to it"
    assert "fits" not in compared.tables_read, "the page still lists the line with its intervals"


def test_without_a_bench_a_line_is_over_its_own_points() -> None:
    """A comparison with a scenario has the times: 8 KB in 3 us are 15 KB sent, 5 GB/s."""
    times = attribution(nic=3) | {"operation": np.array(["all_reduce"], object), "size_bytes": np.array([8000])}
    times["measured_ps"] = np.array([3e6])
    tables = {"fits": fits(is_in_place=[0]), "attribution": times}
    (chart,) = bandwidth_charts([open_run(RunRecord(kind="coll compare", run={}, tables=tables), "compare")])
    assert list(chart.curves) == ["compare: measured", "compare: fitted line"]
    assert [points[0] for points in chart.curves.values()] == [pytest.approx((8000, 5)), pytest.approx((8000, 6))]


@pytest.mark.parametrize("changes", [{"alpha_ns": [-5.0]}, {"busbw_bps": [-1.0]}, {"operation": ["scan"]}])
def test_what_no_line_fits_has_none(changes: dict[str, Any]) -> None:
    """A negative start, no rate, or an operation without a bus bandwidth: a curve would be invented."""
    compared = open_run(RunRecord(kind="coll compare", run={}, tables={"fits": fits(**changes)}), "compare")
    chart, _ = bandwidth_charts([opened(measurements=measurements()), compared])
    assert list(chart.curves) == ["trial, in place"]


def test_groups_of_several_sizes_are_curves_of_their_own() -> None:
    """8 and 16 ranks at 1 MB: one curve through both would be the bandwidth of no group."""
    table = {
        "operation": np.array(["all_reduce"] * 3, object),
        "is_in_place": np.zeros(3, np.int64),
        "num_ranks": np.array([8, 16, 16]),
        "size_bytes": np.full(3, 1_000_000),
        "bus_bandwidth_bps": np.array([8e9, 16e9, 24e9]),
    }
    section = collectives_section([opened(measurements=table)])
    assert section is not None
    (figure,) = section.blocks
    assert figure.table.headings == ("Size", "trial, 8 ranks", "trial, 16 ranks")  # type: ignore[union-attr]
    ((_, eight, sixteen),) = figure.table.rows  # type: ignore[union-attr]
    assert (eight.text, sixteen.text) == ("1", "2 to 3"), "two measurements at one size are both in the table"


def test_measurements_of_no_bytes_are_no_curve_and_no_crash() -> None:
    """A barrier's size 0 has no place on a logarithmic axis: its table stands among the others."""
    table = {**measurements(), "size_bytes": np.zeros(4, np.int64)}
    page = build_page([RunRecord(kind="coll bench", run={"name": "trial"}, tables={"measurements": table})], title="t")
    assert 'id="collectives"' not in page
    assert "trial: measurements, 4 rows" in page


def attribution(**parts: float) -> dict[str, Any]:
    """Return one measurement of 1 ms, its parts in microseconds, the others 0."""
    values = {name: np.array([parts.get(name.removesuffix("_ps"), 0.0) * 1e6]) for name in PARTS}
    return {
        "operation": np.array(["all_to_all"], object),
        "is_in_place": np.array([0]),
        "num_ranks": np.array([16]),
        "size_bytes": np.array([1_000_000]),
        "measured_ps": np.array([1e9]),
        "ratio": np.array([2.0]),
        **values,
    }


def test_parts_are_bars_one_behind_the_other() -> None:
    """A quarter for the NIC, three quarters not the network: the second bar begins where the first ends."""
    section = attribution_section([opened(attribution=attribution(nic=250, not_the_network=750))])
    assert section is not None
    (figure,) = section.blocks
    bars = re.findall(
        r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="14" class="fill-([06])"',
        figure.drawing,  # type: ignore[union-attr]
    )
    assert bars == [("300", "170", "0"), ("470", "510", "6")]  # of 680
    (row,) = figure.table.rows  # type: ignore[union-attr]
    assert [cell.text for cell in row][:4] == ["all to all, 1 MB", "1 ms", "2", "25 %"]


def test_bars_of_some_measurements_count_all() -> None:
    """Of 100 measurements 64 have a bar."""
    many = {name: np.repeat(values, 100) for name, values in attribution(nic=250).items()}
    section = attribution_section([opened(attribution=many)])
    assert section is not None
    assert section.blocks[0].caption == "trial: the first 64 of 100 measurements, each attributed to its causes."


def storms() -> dict[str, Any]:
    """Return two patterns at two sizes."""
    return {
        "pattern": np.array(["legacy", "legacy", "ordered", "ordered"], object),
        "ranks": np.array([64, 128, 64, 128]),
        "requests": np.array([4096, 16384, 640, 1280]),
        "wall_ns": np.array([10**9, 4 * 10**9, 10**8, 2 * 10**8]),
        "server_cpu_ns": np.array([10**9, 4 * 10**9, 0, 2 * 10**8]),
    }


def test_a_storm_has_a_figure_for_each_cost() -> None:
    """Requests, wall time and the server's processor time; what a clock did not see is no point at minus infinity."""
    section = storms_section([opened(storms=storms())])
    assert section is not None
    assert [figure.caption.split(" of ")[0] for figure in section.blocks] == [
        "trial: requests",
        "trial: wall time",
        "trial: server CPU",
    ]
    assert all("nan" not in figure.drawing and "inf" not in figure.drawing for figure in section.blocks)  # type: ignore[union-attr]


def test_a_wall_time_beyond_whole_numbers_of_picoseconds_is_drawn() -> None:
    """2^62 ns are no number of ps in 64 bits: the product was negative and had no logarithm."""
    table = {**storms(), "wall_ns": np.array([10**9, 2**62, 10**8, 10**8])}
    chart = storm_chart("trial", table, "wall_ns")
    assert chart.up.high == pytest.approx(2**62 * 1000)


def test_all_stand_on_one_page() -> None:
    """Each under its heading, and none where no record has its table."""
    tables = {"measurements": measurements(), "attribution": attribution(nic=1), "storms": storms()}
    record = RunRecord(kind="coll bench", run={"name": "trial"}, tables=tables)
    page = build_page([record], title="trial")
    for anchor in ("collectives", "attribution", "storms"):
        assert f'id="{anchor}"' in page
    assert 'id="storms"' not in build_page([RunRecord(kind="coll bench", run={"name": "trial"})], title="trial")


def test_a_broken_table_is_refused() -> None:
    """With its name and column."""
    broken = {name: column for name, column in measurements().items() if name != "size_bytes"}
    with pytest.raises(RecordError, match=r"trial: measurements\.size_bytes: the column is missing"):
        collectives_section([opened(measurements=broken)])


def test_keys_that_find_no_room_stand_below() -> None:
    """Five labels of fifty letters: the drawing grows, and nothing runs over the page's width."""
    scale = Scale(name="x", low=0, high=1)
    labels = [f"{letter * 50}" for letter in "abcde"]
    curves = {label: [(0, 0)] for label in labels}
    drawing = draw_curves(LineChart(across=scale, up=scale, curves=curves, caption="c"))
    places = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="tick">([a-e])\3+</text>', drawing)
    assert len(places) == 5
    assert max(float(x) for x, _, _ in places) + 330 <= 1040
    assert float(re.findall(r'viewBox="0 0 1040 ([\d.]+)"', drawing)[0]) >= max(float(y) for _, y, _ in places)


def test_no_two_of_32_curves_look_alike() -> None:
    """The fifth pattern of a storm looked like the first; every pair of colour and dashes is in the style sheet."""
    scale = Scale(name="x", low=0, high=1)
    curves = {f"run{index:02}": [(0, 0), (1, 1)] for index in range(33)}
    drawing = draw_curves(LineChart(across=scale, up=scale, curves=curves, caption="c"))
    styles = re.findall(r'<path d="[^"]*" class="([^"]+)"', drawing)
    assert len(styles) == len(set(styles)) == NUM_STYLES == 32
    assert "1 more curve is not drawn" in drawing
    css = (TEMPLATES / "page.css").read_text()
    colours = [dict(re.findall(r"--(series-\d): (#\w+);", theme)) for theme in css.split("prefers-color-scheme: dark")]
    used = {name for style in styles for name in style.split()[1:]}
    assert len(colours) == 2
    for colour in colours:
        assert len(set(colour.values())) == len(colour) == 8
    for name in used:
        assert f".{name} {{" in css


def test_the_page_knows_every_part_and_model() -> None:
    """The page reads records and not the code that wrote them: the names are held together here."""
    assert tuple(f"{name}_ps" for name in CAUSES) == PARTS
    assert set(MODELS) <= set(TIMES)


def test_ranks_that_begin_last_are_named_with_how_often_and_how_late() -> None:
    """Rank 1 is last in 14 of 20 iterations, 2 us after the first at 8 kB and 4 us at 8 MB."""
    cases = {name: column[1:3] for name, column in measurements().items()}
    ranks = {
        "case": np.array([0, 0, 1, 1]),
        "rank": np.array([0, 1, 0, 1]),
        "host": np.array([0, 1, 0, 1]),
        "late_ns": np.array([100.0, 2000.0, 200.0, 4000.0]),
        "own_ns": np.array([9000.0, 7000.0, 9000.0, 7000.0]),
        "times_last": np.array([3, 7, 3, 7]),
    }
    run = opened(measurements=cases, ranks=ranks)
    late = LateRanks.of(run)
    assert late is not None
    chart = late_chart(late)
    assert chart is not None
    assert chart.curves == {"rank 1": [(8000, 2e6), (8_000_000, 4e6)], "rank 0": [(8000, 1e5), (8_000_000, 2e5)]}
    section = collectives_section([run])
    assert section is not None
    figure = section.blocks[-1]
    assert isinstance(figure, Figure)
    table = figure.table
    assert table is not None
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["1", "1", "70 %", "3 us", "7 us"],
        ["0", "0", "30 %", "150 ns", "9 us"],
    ]
    assert table.hints[2] == "of 20 iterations; an even share is 50 %"


def test_a_bench_of_one_rank_has_nobody_to_be_last() -> None:
    ranks: dict[str, Any] = {name: np.zeros(1, np.int64) for name in ("case", "rank", "host", "times_last")}
    ranks |= {name: np.zeros(1) for name in ("late_ns", "own_ns")}
    assert LateRanks.of(opened(measurements=measurements(), ranks=ranks)) is None
