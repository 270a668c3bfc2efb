"""Measures of a run: a metric of the whole run, or of the transfers of one part of a mixture."""

from collections.abc import Mapping
from typing import Any

from fabrictune.foundation.metrics.catalog import METRICS, Metric
from fabrictune.foundation.metrics.transfers import of_part, parts_of
from fabrictune.foundation.metrics.units import as_json
from fabrictune.foundation.records import RunRecord

_OF = " of "  # between a metric and a part in a measure's name


def measure_all(record: RunRecord) -> dict[str, float]:
    """Return every measure of a run by its name: each metric, and those of transfers for each part of a mixture."""
    values = {name: metric.measure(record) for name, metric in METRICS.items()}
    for part, own in measure_parts(record).items():
        values |= {measure_name(name, part): value for name, value in own.items()}
    return values


def measure_parts(record: RunRecord) -> dict[str, dict[str, float]]:
    """Return the metrics of the transfers of each part of a mixture, in the order of the parts."""
    of_transfers = {name: metric for name, metric in METRICS.items() if metric.is_of_transfers}
    records = {part: of_part(record, part) for part in parts_of(record)}
    return {part: {name: metric.measure(own) for name, metric in of_transfers.items()} for part, own in records.items()}


def measures_as_json(values: Mapping[str, float]) -> dict[str, Any]:
    """Return measures by name, each as an object of its value and unit."""
    return {name: as_json(value, metric_of(name).unit) for name, value in values.items()}


def measure_name(metric: str, part: str | None) -> str:
    """Return `slowdown.p99`, or `slowdown.p99 of bystanders`."""
    return metric if part is None else f"{metric}{_OF}{part}"


def metric_and_part(name: str) -> tuple[str, str | None]:
    """Return the metric and the part in a measure's name."""
    metric, _, part = name.partition(_OF)
    return metric, part or None


def measure_keys(name: str) -> dict[str, str]:
    """Return the keys of a measure that is written as its name, `slowdown.p99` or `slowdown.p99 of bystanders`."""
    metric, part = metric_and_part(name)
    return {"metric": metric, "part": part} if part else {"metric": metric}


def metric_of(name: str) -> Metric:
    """Return the metric of the measure of this name."""
    return METRICS[metric_and_part(name)[0]]


def label_of(name: str) -> str:
    """Return `p99 slowdown`, or `p99 slowdown of bystanders`."""
    return measure_name(metric_of(name).label, metric_and_part(name)[1])
