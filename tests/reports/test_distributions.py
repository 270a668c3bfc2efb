"""Distributions and their tails: every percentile is where the formulas have it, and the highest value is in sight."""

from itertools import pairwise

import numpy as np
import pytest

from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.reports.charts import LineChart
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.distributions import (
    COMPLETION,
    MAX_STEPS,
    MAX_TAIL_STEPS,
    SLOWDOWN,
    cumulative_chart,
    tail_chart,
)


def marked(chart: LineChart, label: str) -> list[tuple[float, float, str]]:
    """Return the marks of a curve."""
    return [(mark.across, round(mark.up, 6), mark.hint) for mark in chart.marks[label]]


def test_percentiles_are_marked_on_the_staircase() -> None:
    """Of 1 to 1,000 us p50 is 500 us at 50 %, p95 and p99 likewise; each is a corner of the curve."""
    times_ps = 1e6 * np.arange(1, 1001, dtype=np.float64)
    chart = cumulative_chart(COMPLETION, {"run": times_ps}, "CDF.")
    assert marked(chart, "run") == [(5e8, 50, "p50 500 us"), (9.5e8, 95, "p95 950 us"), (9.9e8, 99, "p99 990 us")]
    assert {(mark.across, mark.up) for mark in chart.marks["run"]} <= set(chart.curves["run"])
    assert chart.caption == "CDF. Circles: p50, p95, p99."
    assert str(draw_curves(chart)).count("<circle") == 3


def test_a_tail_has_one_in_a_thousand_in_sight() -> None:
    """A tenth of 1,000 takes longer than the 900th value, one longer than the 999th: 10 % and 0.1 %, equally apart."""
    slowdowns = np.arange(1, 1001, dtype=np.float64)
    chart = tail_chart(SLOWDOWN, {"run": slowdowns}, "Tail.")
    points = chart.curves["run"]
    assert marked(chart, "run") == [(950, 5, "p95 950"), (990, 1, "p99 990"), (999, 0.1, "p99.9 999")]
    assert points[0] == pytest.approx((0.8, 100))
    assert points[-1] == pytest.approx((1000, 0.1))
    assert all(one[1] >= other[1] for one, other in pairwise(points))
    assert chart.up.is_logarithmic
    assert "transfers that take longer, %, logarithmic" in draw_curves(chart)


@pytest.mark.parametrize("num_values", [1, 7, 100, 12_345])
def test_curves_are_bounded_and_hold_both_ends(num_values: int) -> None:
    """Thinned as they are, the lowest and the highest value and all marks are corners."""
    values = np.random.default_rng(num_values).pareto(1.2, num_values) + 1
    for make, limit in ((cumulative_chart, MAX_STEPS), (tail_chart, MAX_TAIL_STEPS)):
        chart = make(SLOWDOWN, {"run": values}, "")
        drawn = [value for value, _ in chart.curves["run"]]
        assert len(drawn) <= 2 * (limit + 3) + 1
        assert drawn[-1] == values.max()
        assert values.min() in drawn
        for mark in chart.marks["run"]:
            assert mark.across == percentile(values, float(mark.hint.split()[0].removeprefix("p")) / 100)


def test_what_never_finished_stays_above_the_end() -> None:
    """One of 200 never finished: the tail ends at half a percent, p99 is the 198th of 199, and a sentence counts it."""
    values = np.append(np.arange(1.0, 200.0), np.inf)
    chart = tail_chart(SLOWDOWN, {"run": values}, "Tail.")
    assert chart.curves["run"][-1] == pytest.approx((199, 0.5))
    assert [hint for _, _, hint in marked(chart, "run")] == ["p95 190", "p99 198"]
    assert chart.caption == "Tail. Circles: p95, p99. run: 1 of 200 transfers never finished."


def test_a_percentile_that_is_the_highest_value_is_no_mark() -> None:
    """Of ten, p95 and p99 are both the slowest: a circle at the end of the curve says nothing."""
    chart = cumulative_chart(SLOWDOWN, {"run": np.arange(1.0, 11.0)}, "CDF.")
    assert [hint for _, _, hint in marked(chart, "run")] == ["p50 5"]
    assert chart.caption == "CDF. Circles: p50."
