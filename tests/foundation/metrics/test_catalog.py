"""The table of metrics as a whole; single metrics are tested with expectations and with the page's indicators."""

import math
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.measures import label_of, measure_all, measures_as_json
from fabrictune.foundation.metrics.units import QUANTITIES, format_metric
from fabrictune.foundation.records import RunRecord


def test_labels_are_unique_and_units_known() -> None:
    """A label names one metric, on a terminal as on a page."""
    assert len({metric.label for metric in METRICS.values()}) == len(METRICS)
    assert {metric.unit for metric in METRICS.values()} <= set(QUANTITIES)


def test_nothing_is_known_of_an_empty_record() -> None:
    """A metric whose tables are missing is unknown, never zero."""
    assert all(math.isnan(value) for value in measure_all(RunRecord(kind="sim run", run={})).values())


def test_a_measure_prints_with_its_unit() -> None:
    """Picoseconds of a part; what never ended is null in JSON."""
    values = {"makespan": math.inf, "slowdown.p99 of burst": 1.5}
    assert measures_as_json(values) == {
        "makespan": {"value": None, "unit": "ps"},
        "slowdown.p99 of burst": {"value": 1.5, "unit": "ratio"},
    }
    assert label_of("slowdown.p99 of burst") == "p99 slowdown of burst"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (163_327_960, "ps", "163.3 us"),
        (math.inf, "ps", "never"),
        (math.nan, "bps", "unknown"),
        (12, "packets", "12"),
        (2000, "ppm", "2,000 ppm"),
        (0.004, "fraction", "0.4 %"),
        (0.9996, "index", "1.000"),
        (2.517, "ratio", "2.52"),
        (2.5, "tokens", "2.500"),
    ],
)
def test_values_are_shown_with_their_units(value: float, unit: str, text: str) -> None:
    """The same on every terminal and page."""
    assert format_metric(value, unit) == text


def test_ratios_of_packets_need_packets() -> None:
    """1 of 500 packets dropped is 2,000 ppm; of none sent, unknown."""
    for sent, rate in ((500, 2000), (0, math.nan)):
        tables = {"ports": {"dropped_packets": np.array([1])}, "transfers": {"packets_sent": np.array([sent])}}
        record = RunRecord(kind="sim run", run={}, tables=tables)
        assert METRICS["drop_rate"].measure(record) == pytest.approx(rate, nan_ok=True)


def test_the_documentation_lists_every_metric() -> None:
    """The table of docs/reference/metrics.md is the table of the code, row by row."""
    page = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
    rows = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{name}` | {metric.label} | {metric.unit} | {metric.meaning} |" for name, metric in METRICS.items()
    ]
