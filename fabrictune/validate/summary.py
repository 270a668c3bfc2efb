"""Summary of a validation: medians with their spread."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.records import Columns, RunRecord


@dataclass(frozen=True, kw_only=True)
class SummaryRow:
    """Collectives of one kind and size, or the whole communication of a step."""

    what: str  # an operation, or "step"
    num_bytes: int
    count: int
    measured_ps: float  # median
    measured_low_ps: float  # quartiles
    measured_high_ps: float
    simulated_ps: float  # median
    ratio: float  # median of simulated over measured
    ratio_low: float  # quartiles
    ratio_high: float


@dataclass(frozen=True, kw_only=True)
class ValidationSummary:
    """The calibration, and the predictions from it."""

    latency_ps: int
    rate_bps: int
    exchange_bytes: tuple[int, ...]
    rows: tuple[SummaryRow, ...]


def summarize_validation(record: RunRecord) -> ValidationSummary:
    """Return the summary of a record of kind "validate local"."""
    calibration = record.run["calibration"]
    table = record.tables["comparison"]
    return ValidationSummary(
        latency_ps=calibration["latency_ps"],
        rate_bps=calibration["rate_bps"],
        exchange_bytes=tuple(calibration["exchange_bytes"]),
        rows=(*_collective_rows(table), *_step_rows(table)),
    )


def _collective_rows(table: Columns) -> Iterator[SummaryRow]:
    for operation, size in sorted(set(zip(table["operation"].tolist(), table["bytes"].tolist(), strict=True))):
        chosen = (table["operation"] == operation) & (table["bytes"] == size)
        yield _row(operation, size, table["measured_ps"][chosen], table["simulated_ps"][chosen])


def _step_rows(table: Columns) -> Iterator[SummaryRow]:
    """Yield a row for each size of step: those of one model move the same bytes."""
    step_C, place_C = np.unique(table["step"], return_inverse=True)
    bytes_S, measured_ps_S, simulated_ps_S = (  # S steps
        np.bincount(place_C, weights=table[name], minlength=len(step_C))
        for name in ("bytes", "measured_ps", "simulated_ps")
    )
    for size in np.unique(bytes_S).tolist():
        is_own_S = bytes_S == size
        yield _row("step", int(size), measured_ps_S[is_own_S], simulated_ps_S[is_own_S])


def _row(what: str, num_bytes: int, measured_ps: NDArray[np.generic], simulated_ps: NDArray[np.generic]) -> SummaryRow:
    ratio = np.asarray(simulated_ps, np.float64) / np.asarray(measured_ps, np.float64)
    measured_low, measured_high = percentiles(measured_ps, (0.25, 0.75)).tolist()
    ratio_low, ratio_high = percentiles(ratio, (0.25, 0.75)).tolist()
    return SummaryRow(
        what=what,
        num_bytes=num_bytes,
        count=len(ratio),
        measured_ps=float(np.median(np.asarray(measured_ps, np.float64))),
        measured_low_ps=measured_low,
        measured_high_ps=measured_high,
        simulated_ps=float(np.median(np.asarray(simulated_ps, np.float64))),
        ratio=float(np.median(ratio)),
        ratio_low=ratio_low,
        ratio_high=ratio_high,
    )
