"""Summary of a validation: medians with their spread, the parts of the predictions, and verdicts."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.validate.resampling import median_bounds

PARTS = ("call_ps", "exchange_ps", "copy_ps", "sum_ps", "page_ps", "work_ps")
STEP, OVERLAPPED_STEP = "step", "overlapped step"
BAND = 0.15  # that a prediction is held to


@dataclass(frozen=True, kw_only=True)
class SummaryRow:
    """Collectives of one kind and size, or steps that move the same bytes."""

    what: str  # an operation, STEP or OVERLAPPED_STEP
    num_bytes: int
    count: int
    measured_ps: float  # median
    measured_low_ps: float  # quartiles
    measured_high_ps: float
    simulated_ps: float  # median
    simulated_low_ps: float  # 90 % interval, from the calibration's spread
    simulated_high_ps: float
    ratio: float  # median of simulated over median of measured
    ratio_low: float  # 90 % interval, of both medians' spread
    ratio_high: float
    parts_ps: Mapping[str, float]  # medians
    unexplained_ps: float  # of measured, beyond the simulated

    @property
    def verdict(self) -> str:
        """Return whether the prediction is within its band, off, or not known for the spread."""
        if self.ratio_low >= 1 - BAND and self.ratio_high <= 1 + BAND:
            return f"within {BAND:.0%}"
        return "off" if self.is_outside(1 - BAND, 1 + BAND) else "unclear"

    def is_outside(self, low: float, high: float) -> bool:
        """Return whether the whole interval of the ratio lies outside a band."""
        return self.ratio_high < low or self.ratio_low > high


@dataclass(frozen=True, kw_only=True)
class ValidationSummary:
    """The calibration, and the predictions from it."""

    calibration: Mapping[str, Any]
    processors: Mapping[str, Any] | None
    intervals_of: str  # "medians", or "single collectives" on a busy machine
    rows: tuple[SummaryRow, ...]


def summarize_validation(record: RunRecord) -> ValidationSummary:
    """Return the summary of a record of kind "validate local"."""
    return ValidationSummary(
        calibration=record.run["calibration"],
        processors=record.run["processors"],
        intervals_of=record.run["intervals_of"],
        rows=tuple(_rows(record.tables["comparison"])),
    )


def _rows(table: Columns) -> Iterator[SummaryRow]:
    """Yield a row for each kind and size, steps last."""
    kinds = set(zip(table["operation"].tolist(), table["bytes"].tolist(), strict=True))
    for what, size in sorted(kinds, key=lambda kind: (kind[0] in (STEP, OVERLAPPED_STEP), kind)):
        chosen = (table["operation"] == what) & (table["bytes"] == size)
        yield _row(what, size, {name: column[chosen] for name, column in table.items()})


def _row(what: str, num_bytes: int, rows: Columns) -> SummaryRow:
    measured_low, measured_high = percentiles(rows["measured_ps"], (0.25, 0.75)).tolist()
    columns = ("measured_ps", "simulated_ps", "simulated_low_ps", "simulated_high_ps")
    measured, simulated, low, high = (float(np.median(rows[name])) for name in columns)
    least, most = median_bounds(rows["measured_ps"])
    ratio = simulated / measured
    return SummaryRow(
        what=what,
        num_bytes=num_bytes,
        count=len(rows["measured_ps"]),
        measured_ps=measured,
        measured_low_ps=measured_low,
        measured_high_ps=measured_high,
        simulated_ps=simulated,
        simulated_low_ps=low,
        simulated_high_ps=high,
        ratio=ratio,
        ratio_low=ratio * math.exp(-math.hypot(_log(simulated, low), _log(most, measured))),
        ratio_high=ratio * math.exp(math.hypot(_log(high, simulated), _log(measured, least))),
        parts_ps={name: float(np.median(rows[name])) for name in PARTS},
        unexplained_ps=measured - simulated,
    )


def _log(above_ps: float, below_ps: float) -> float:
    """Return the logarithm of a ratio of times, of which none is taken to be under a picosecond."""
    return math.log(max(above_ps, 1.0) / max(below_ps, 1.0))
