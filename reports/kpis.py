"""Key performance indicators of a run: its metrics (foundation/metrics) and link loads, with the draft's bounds.

An indicator whose inputs a record lacks is left out, never shown as zero. Two need to know what the job was: JCT ratio
reads `run["ideal_ps"]`, the job's time on an ideal fabric, and BusBW reads `run["collective"]`, a mapping with
`bytes` (nccl-tests' size), `busbw_factor` (2 (n - 1)/n for an all-reduce over n ranks) and `line_rate_bps`.

Shapes: L links.

Source: draft-calabria-bmwg-ai-fabric-training-bench-04 (names, indicative bounds).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.metrics.catalog import METRICS, Metric
from fabrictune.foundation.metrics.formulas import max_to_mean_ratio
from fabrictune.foundation.metrics.transfers import estimator
from fabrictune.foundation.metrics.units import Unit
from fabrictune.foundation.records import RunRecord
from fabrictune.reports.link_load import carried_load, offered_load
from fabrictune.reports.record_view import THROUGHPUT, Run, open_run

BOUNDS = {"makespan_ratio": "≤ 1.05", "bus_bandwidth": "≥ 90 % of line rate", "drop_rate": "0 ppm"}


@dataclass(frozen=True, kw_only=True)
class Kpi:
    """One indicator of one run."""

    name: str
    value: float  # infinite where something never finished
    unit: Unit
    formula: str
    bound: str = ""  # the draft's indicative bound, for people
    is_within: bool | None = None  # None where the draft gives no bound
    is_better_more: bool | None = None  # None where more is neither better nor worse


def kpis(record: RunRecord) -> list[Kpi]:
    """Return every indicator the record has the numbers for; raises RecordError on a malformed table."""
    return run_kpis(open_run(record, record.kind))


def run_kpis(run: Run) -> list[Kpi]:
    """Return every indicator a checked run has the numbers for."""
    return run.keep("kpis", lambda: _kpis(run))


def kpis_by_name(run: Run) -> dict[str, Kpi]:
    """Return the same by their names."""
    return {kpi.name: kpi for kpi in run_kpis(run)}


def _kpis(run: Run) -> list[Kpi]:
    with np.errstate(all="ignore"):  # a flow that took no time has no rate
        return [*_metrics(run.record), *_links(run)]


def _metrics(record: RunRecord) -> Iterator[Kpi]:
    estimated_by = estimator(record)
    for name, metric in METRICS.items():
        value = metric.measure(record)
        if math.isnan(value):
            continue
        interval = metric.interval(record) if estimated_by else (value, value)
        verdicts = {_is_within(name, bound, record) for bound in interval or ()}
        yield Kpi(
            name=metric.label,
            value=value,
            unit=metric.unit,
            formula=f"{metric.meaning}; {_estimate_words(metric, estimated_by, interval)}"
            if estimated_by
            else metric.meaning,
            bound=BOUNDS.get(name, ""),
            is_within=verdicts.pop() if len(verdicts) == 1 else None,
            is_better_more=metric.is_better_more,
        )


def _estimate_words(metric: Metric, estimated_by: str, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return f"estimated by {estimated_by}, without an interval"
    low, high = map(metric.show, interval)
    return f"estimated by {estimated_by}, 95 %: {low} to {high}"


def _is_within(name: str, value: float, record: RunRecord) -> bool | None:
    match name:
        case "makespan_ratio":
            return value <= 1.05
        case "drop_rate":
            return value == 0
        case "bus_bandwidth":
            line_rate_bps = _line_rate_bps(record)
            return None if math.isnan(line_rate_bps) else value >= 0.9 * line_rate_bps
        case _:
            return None


def _line_rate_bps(record: RunRecord) -> float:
    """Return the line rate of the job's NICs, nan where the record does not say."""
    collective = record.run.get("collective")
    rate_bps = collective.get("line_rate_bps") if isinstance(collective, Mapping) else None
    return float(rate_bps) if isinstance(rate_bps, int | float) else math.nan


def _links(run: Run) -> Iterator[Kpi]:
    throughput = run.rows(THROUGHPUT)
    if throughput is not None:
        yield Kpi(
            name="Expected throughput",
            value=float(throughput["throughput_fraction"].mean()),
            unit="fraction",
            formula="mean throughput of a queue pair over its demand; not in the draft",
            is_better_more=True,
        )
    for load in (offered_load(run), carried_load(run)):
        if load is None:
            continue
        load_L = load.load_P[load.fabric.compared_ports]
        yield Kpi(
            name=f"Highest {load.measure}",
            value=float(load.load_P.max()),
            unit="fraction",
            formula="maximum over all links, host links included; not in the draft",
        )
        if load_L.mean() > 0:
            yield Kpi(
                name=f"MMR, {load.measure}",
                value=max_to_mean_ratio(load_L),
                unit="ratio",
                formula=f"highest ÷ mean {load.measure} of the links between switches",
            )
