"""Ticks are round, lie on the scale and share one unit."""

import re

import pytest

from fabrictune.reports import svg
from fabrictune.reports.axes import PlotAxis, axis_of, bytes_axis, draw_bottom, duration_axis
from fabrictune.reports.charts import LineChart, Scale, with_room
from fabrictune.reports.curves import draw_curves


@pytest.mark.parametrize(
    ("high_ps", "unit", "labels"),
    [
        (163_400_000, "us", ["0", "50", "100", "150"]),
        (4_700_000_000, "ms", ["0", "1", "2", "3", "4"]),
        (900, "ps", ["0", "200", "400", "600", "800"]),
    ],
)
def test_ticks_are_round_and_in_the_largest_unit(high_ps: int, unit: str, labels: list[str]) -> None:
    """At most eight steps, each 1, 2 or 5 times a power of ten: 163.4 / 8 is 20.4, so steps of 50."""
    axis = duration_axis(0, high_ps, start=0, end=100)
    assert axis.unit == unit
    assert [axis.label(tick) for tick in axis.ticks(8)] == labels


def test_a_linear_scale_is_linear() -> None:
    """A quarter of 200 KB stands a quarter of the way down from 100 to 20: at 80."""
    assert bytes_axis(200_000, start=100, end=20).at(50_000) == pytest.approx(80)


def test_a_logarithmic_scale_gives_each_decade_the_same_length() -> None:
    """From 10 us to 1 ms are two decades: 100 us stands in the middle; ticks are 1, 2 and 5 times powers of ten."""
    scale = Scale(name="time", low=10_000_000, high=1_000_000_000, unit="ps", is_logarithmic=True)
    axis = axis_of(scale, start=0, end=200)
    assert axis.at(100_000_000) == pytest.approx(100)
    labels = ["10 us", "20 us", "50 us", "100 us", "200 us", "500 us", "1 ms"]
    assert [axis.label(tick) for tick in axis.ticks(8)] == labels
    assert axis.unit == "", "each tick has its own"
    assert ">time, logarithmic</text>" in draw_bottom(axis, 200, 60, "time")


def test_a_logarithmic_axis_of_sizes_reads_from_bytes_to_gigabytes() -> None:
    """8 B to 1 GB: in megabytes the first would be "1e-05"; nine decades leave room for one tick each."""
    scale = Scale(name="size", low=8, high=10**9, unit="bytes", is_logarithmic=True)
    axis = axis_of(scale, start=0, end=976)
    labels = ["10 B", "100 B", "1 KB", "10 KB", "100 KB", "1 MB", "10 MB", "100 MB", "1 GB"]
    assert [axis.label(tick) for tick in axis.ticks(8)] == labels


def test_a_short_logarithmic_axis_labels_its_ends() -> None:
    """64 to 256 ranks hold but two round numbers; from 95 to 205 both are too near to the ends."""
    storm = Scale(name="ranks", low=64, high=256, is_logarithmic=True)
    assert axis_of(storm, start=0, end=976).ticks(8) == [64, 100, 200, 256]
    near = Scale(name="ranks", low=95, high=205, is_logarithmic=True)
    assert axis_of(near, start=0, end=976).ticks(8) == [100, 200]


@pytest.mark.parametrize("low", [0, -5])
def test_a_scale_that_begins_at_zero_is_linear(low: float) -> None:
    """A logarithm has no place for it: log10(0) ended the page."""
    axis = axis_of(Scale(name="time", low=low, high=100, unit="ps", is_logarithmic=True), start=0, end=200)
    assert axis.at(100) == 200
    assert axis.ticks(8)
    assert ">time, ps</text>" in draw_bottom(axis, 200, 60, "time")


def test_what_a_logarithmic_scale_has_no_place_for_is_at_its_start() -> None:
    """A caller's own marks, such as a bound of zero."""
    axis = axis_of(Scale(name="time", low=10, high=1000, is_logarithmic=True), start=0, end=200)
    assert [axis.at(quantity) for quantity in (-1, 0, 1, 100)] == pytest.approx([0, 0, 0, 100])


def line_chart(points: list[tuple[float, float]], *, up_is_logarithmic: bool = False) -> LineChart:
    """A chart whose scales go from the least to the largest value, as those of sections do."""
    x, y = zip(*points, strict=True)
    across = Scale(name="interval", low=min(x), high=max(x), unit="ps", is_logarithmic=True)
    up = Scale(name="share", low=min(y), high=max(y), is_logarithmic=up_is_logarithmic)
    return LineChart(across=across, up=up, curves={"run": points}, caption="c")


def test_points_at_or_below_zero_are_left_out_and_counted() -> None:
    """Of five points two have an interval of 0 or less, and one of the rest a share of 0: each axis says how many."""
    points = [(0.0, 1.0), (-3.0, 1.0), (10.0, 0.0), (100.0, 1.0), (1000.0, 2.0)]
    chart = with_room(line_chart(points, up_is_logarithmic=True))
    assert chart.curves == {"run": [(100.0, 1.0), (1000.0, 2.0)]}
    assert (chart.across.low, chart.up.low) == (10.0, 1.0)
    drawing = draw_curves(line_chart(points, up_is_logarithmic=True))
    assert ">interval, without 2 points at or below 0, logarithmic</text>" in drawing
    assert ">share, without 1 point at or below 0, logarithmic</text>" in drawing


def test_a_chart_without_a_positive_value_is_linear_and_whole() -> None:
    """One save at an interval of 0 is drawn, and so are intervals below it."""
    for points in ([(0.0, 1.0)], [(-2.0, 1.0), (0.0, 2.0)]):
        chart = with_room(line_chart(points))
        assert chart.curves == {"run": points}
        assert ">interval, ps</text>" in draw_curves(line_chart(points))


def test_the_last_label_stays_on_the_page() -> None:
    """The number 120, 8 from the right edge, would be cut to "12(": it ends where the drawing does."""
    drawing = draw_bottom(duration_axis(0, 120_000_000, start=64, end=svg.WIDTH - 8), 200, 60, "time")
    (last,) = re.findall(r'<text x="([\d.]+)" y="216" class="tick" text-anchor="(\w+)">120</text>', drawing)
    assert last == ("1040", "end")


def test_a_scale_of_one_value_puts_it_in_the_middle() -> None:
    """Flows that all take the same time leave no span to divide by."""
    axis = PlotAxis(low=5, high=5, start=0, end=10)
    assert axis.at(5) == 5
    assert axis.ticks(4) == [5]
