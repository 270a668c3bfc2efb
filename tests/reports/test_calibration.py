"""Fits on the page: parameters with verdicts, and errors by size."""

import numpy as np

from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.plot import fit_errors
from fabrictune.reports.blocks import MISSING, Figure, Table
from fabrictune.reports.calibration import calibration_section, error_chart
from fabrictune.reports.record_view import open_run

PARAMETERS: Columns = {
    "parameter": np.array(["nvlink.latency", "network.rate"]),
    "value": np.array([20e6, 300e9]),
    "low": np.array([19e6, 290e9]),
    "high": np.array([21e6, -1.0]),
    "unit": np.array(["ps", "bps"]),
    "verdict": np.array(["well determined", "not determined"]),
    "reason": np.array(["", "2% of a time at most is its bytes'"]),
}
TIMES: Columns = {
    "series": np.array(["all_reduce", "all_reduce", "all_reduce"]),
    "size_bytes": np.array([8, 1024, 0]),
    "measured_ps": np.array([20e6, 30e6, 0.0]),
    "modelled_ps": np.array([21e6, 29e6, 0.0]),
    "error_fraction": np.array([0.05, -1 / 30, 0.0]),
}


def test_parameters_have_their_interval_and_verdict() -> None:
    """An interval without an upper end has none on the page."""
    record = RunRecord(kind="validate fit", run={}, tables={"fitted_parameters": PARAMETERS})
    section = calibration_section([open_run(record, "fit")])
    assert section is not None
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert [[str(cell.text) for cell in row] for row in table.rows] == [
        ["nvlink.latency", "20 us", "19 us", "21 us", "well determined", ""],
        ["network.rate", "300 Gbps", "290 Gbps", MISSING, "not determined", "2% of a time at most is its bytes'"],
    ]


def test_errors_are_a_curve_in_percent_by_size() -> None:
    """A size of 0 has no place on a logarithmic axis; its row stays in the table."""
    assert error_chart("fit", TIMES).curves == {"all_reduce": [(8, 5.0), (1024, -100 / 30)]}
    record = RunRecord(kind="validate fit", run={}, tables={"fitted_times": TIMES})
    section = calibration_section([open_run(record, "fit")])
    assert section is not None
    (figure,) = section.blocks
    assert isinstance(figure, Figure)
    assert figure.table is not None
    assert len(figure.table.rows) == 3
    (axes,) = fit_errors(record).axes
    assert len(axes.lines) >= 1


def test_other_records_have_no_such_section() -> None:
    assert calibration_section([open_run(RunRecord(kind="sim run", run={}), "run")]) is None
