"""Samples of a run: quantities of which it has many values, so that a difference between two runs has an interval.

Shapes: F flows, K iterations, S steps.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.changes import Change, change_of_means, change_of_pairs, change_of_percentiles
from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.foundation.metrics.transfers import completion_times_ps, estimator, select_flows
from fabrictune.foundation.metrics.units import Unit
from fabrictune.foundation.units import PS_PER_NS, format_bytes
from fabrictune.reports.record_view import TRANSFERS, Run
from fabrictune.reports.selection import select

CASES = select("measurements", "operation", "is_in_place", "num_ranks", "size_bytes")
ITERATIONS = select("iterations", "case", "duration_ns")
STEPS = select("training", "step", "elapsed_ns")
FLOW = ("qp", "source", "destination", "bytes")  # what makes a flow the same in two runs
FLOW_METRICS = {"completion_time.mean": None, "completion_time.p50": 0.5, "completion_time.p99": 0.99}
MEDIAN = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """Values of one quantity, and what stands for them: their mean or a percentile."""

    measure: str
    unit: Unit
    item: str  # what a value is of: "flow"
    values: FloatArray
    fraction: float | None = None  # of the percentile; None for the mean
    items: bytes = b""  # digest of what the values are of; empty where they have no partners in another run

    @property
    def value(self) -> float:
        """The mean or the percentile; nan of no values."""
        if not len(self.values):
            return float("nan")
        return float(self.values.mean()) if self.fraction is None else percentile(self.values, self.fraction)

    def has_partners_in(self, other: "Sample") -> bool:
        """Return whether the values are of the same items as those of another run."""
        return self.fraction is None and bool(self.items) and self.items == other.items

    def change_to(self, other: "Sample") -> Change | None:
        """Return the change to another run's sample of the same measure; None where it has no interval."""
        if self.fraction is not None:
            return change_of_percentiles(self.values, other.values, self.fraction)
        change = change_of_pairs if self.has_partners_in(other) else change_of_means
        return change(self.values, other.values)


def samples_of(run: Run) -> dict[str, Sample]:
    """Return what a run has many values of, by measure; of a run whose times are estimates nothing."""
    makers = (_flows, _iterations, _steps)
    return run.keep("samples", lambda: {sample.measure: sample for make in makers for sample in make(run)})


def _flows(run: Run) -> Iterator[Sample]:
    """Yield completion times of flows; partners are flows between the same NICs, of the same bytes."""
    transfers = run.rows(TRANSFERS)
    if transfers is None or estimator(run.record):
        return
    flows = select_flows(transfers)
    digest = hashlib.blake2b()
    for name in FLOW:
        digest.update(np.ascontiguousarray(flows[name]).data)
    times_ps_F = completion_times_ps(flows)
    for name, fraction in FLOW_METRICS.items():
        metric = METRICS[name]
        yield Sample(
            measure=metric.label,
            unit=metric.unit,
            item="flow",
            values=times_ps_F,
            fraction=fraction,
            items=digest.digest(),
        )


def _iterations(run: Run) -> Iterator[Sample]:
    """Yield the iterations of each case of a bench."""
    cases, iterations = run.rows(CASES), run.rows(ITERATIONS)
    if cases is None or iterations is None:
        return
    columns = (cases[name].tolist() for name in CASES.columns)
    for case, (operation, is_in_place, num_ranks, size_bytes) in enumerate(zip(*columns, strict=True)):
        place = ", in place" if is_in_place else ""
        yield Sample(
            measure=f"{operation}{place}, {num_ranks} ranks, {format_bytes(size_bytes)}: median time",
            unit="ps",
            item="iteration",
            values=PS_PER_NS * iterations["duration_ns"][iterations["case"] == case].astype(np.float64),
            fraction=MEDIAN,
        )


def _steps(run: Run) -> Iterator[Sample]:
    """Yield the steps of a training without the first, which warms up."""
    steps = run.rows(STEPS)
    if steps is not None:
        times_ps_S = PS_PER_NS * steps["elapsed_ns"][1:].astype(np.float64)
        yield Sample(measure="Median step time", unit="ps", item="step", values=times_ps_S, fraction=MEDIAN)
