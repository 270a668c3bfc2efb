"""What a scenario expects of a run: metrics of its record, with a bound each; what breaks a bound is a finding.

A transfer counts if it moved bytes over the fabric. Its *completion time* runs from the instant it was ready to the
arrival of its last byte; its *throughput* is its bytes over that time, its *slowdown* that time over what it would take
alone. A transfer that never finished took for ever, and a metric that cannot be had breaks its bound: unknown never
passes.

Shapes: T transfers.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import BoolArray, FloatArray
from fabrictune.foundation.errors import InputError, Mistake, UnitError, choose
from fabrictune.foundation.fairness import jain_fairness_index
from fabrictune.foundation.records import Confidence, Finding, RunRecord, Severity
from fabrictune.foundation.settings.quantities import COUNT, DURATION, FACTOR, RATE, SIZE, Quantity

BITS_PS = 8e12  # bits of a byte times picoseconds of a second


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number that can be read from every record of a simulated run."""

    unit: Quantity
    measure: Callable[[RunRecord], float]  # nan where the record does not say, infinite for what never ended
    meaning: str
    is_of_transfers: bool = True  # and so of the transfers of one part of a mixture too

    def show(self, value: float) -> str:
        """Return a value of the metric for people."""
        return self.unit.show(value) if math.isfinite(value) else "never" if math.isinf(value) else "unknown"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A metric of a whole run, or of the transfers of one part of a mixture."""

    metric: str = field(metadata={"help": "name of a number in the run's summary"})
    part: str | None = field(default=None, metadata={"help": "of a mixture, whose transfers alone are measured"})

    def __post_init__(self) -> None:
        choose(self.metric, tuple(METRICS), where="metric", what="metric", error=InputError)
        if self.part is not None and not METRICS[self.metric].is_of_transfers:
            allowed = f"with {self.metric}, no part: ports do not tell whose packets they are"
            raise InputError(Mistake(where="part", found=self.part, allowed=allowed))

    @property
    def name(self) -> str:
        """What it is called in tables: `slowdown.p99`, or `slowdown.p99 of bystanders`."""
        return self.metric if self.part is None else f"{self.metric}{_OF}{self.part}"

    def value(self, record: RunRecord) -> float:
        """Return what it comes to in a record of a simulated run."""
        return METRICS[self.metric].measure(record if self.part is None else of_part(record, self.part))


_OF = " of "  # between a metric and a part in a measure's name


def metric_and_part(name: str) -> tuple[str, str | None]:
    """Return what a measure of this name measures, and of which part."""
    metric, _, part = name.partition(_OF)
    return metric, part or None


def metric_of(name: str) -> Metric:
    """Return the metric of the measure of this name."""
    return METRICS[metric_and_part(name)[0]]


def measure_all(record: RunRecord) -> dict[str, float]:
    """Return every measure of a run by its name: each metric, and those of transfers for each part of a mixture."""
    found = {name: metric.measure(record) for name, metric in METRICS.items()}
    for part, values in measure_parts(record).items():
        found |= {Measure(metric=name, part=part).name: value for name, value in values.items()}
    return found


def measure_parts(record: RunRecord) -> dict[str, dict[str, float]]:
    """Return what the transfers of each part came to, in the order of the parts; nothing where there are no parts."""
    of_transfers = {name: metric for name, metric in METRICS.items() if metric.is_of_transfers}
    chosen = {part: of_part(record, part) for part in parts_of(record)}
    return {
        part: {name: metric.measure(transfers) for name, metric in of_transfers.items()}
        for part, transfers in chosen.items()
    }


@dataclass(frozen=True, kw_only=True)
class Expectation(Measure):
    """A bound on one measure."""

    at_most: Any = field(default=None, metadata={"help": "largest value that is good, with its unit"})
    at_least: Any = field(default=None, metadata={"help": "smallest value that is good, with its unit"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.at_most is None) == (self.at_least is None):
            raise InputError(Mistake(where="metric", found="not one bound", allowed="one of at_most and at_least"))
        _limit(self)

    @property
    def limit(self) -> float:
        """The bound as a number in the metric's base unit."""
        return _limit(self)

    def finding(self, record: RunRecord) -> Finding | None:
        """Return what is to be reported if the record breaks the bound."""
        metric, actual = METRICS[self.metric], self.value(record)
        if actual <= self.limit if self.at_least is None else actual >= self.limit:
            return None
        bound = "at most" if self.at_least is None else "at least"
        return Finding(
            id=f"expect.{self.metric}",
            severity=Severity.ERROR,
            entity=self.name,
            expected=f"{bound} {metric.show(self.limit)}",
            actual=metric.show(actual),
            next_step="look at the slowest transfers and the fullest ports in the report, or correct the bound",
            confidence=Confidence.PREDICTED,
        )


def _limit(expectation: Expectation) -> float:
    """Return the bound in the metric's base unit; raises InputError at the key that holds it."""
    name = "at_least" if expectation.at_most is None else "at_most"
    value = getattr(expectation, name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(Mistake(where=name, found=f"{value!r} where a number with its unit is needed"))
    try:
        return METRICS[expectation.metric].unit.parse(str(value))
    except UnitError as error:
        raise InputError(replace(error.mistakes[0], where=name)) from error


def parts_of(record: RunRecord) -> list[str]:
    """Return the names of a mixture's parts in their order; none where there is one kind of traffic."""
    return list(dict.fromkeys(record.tables["transfers"].get("part", np.zeros(0, object)).tolist()))


def of_part(record: RunRecord, part: str) -> RunRecord:
    """Return the record with the transfers of one part of a mixture alone; none where there is no such part."""
    transfers = record.tables["transfers"]
    is_part_T = transfers.get("part", np.array([""], object)) == part
    chosen = {name: column[np.flatnonzero(is_part_T)] for name, column in transfers.items()}
    return replace(record, tables={**record.tables, "transfers": chosen})


def is_flow(record: RunRecord) -> BoolArray:
    """Return which transfers of the record moved bytes over the fabric."""
    transfers = record.tables["transfers"]
    return np.asarray((transfers["qp"] >= 0) & (transfers["bytes"] > 0))


def completion_times_ps(record: RunRecord) -> FloatArray:
    """Return the completion time of every transfer over the fabric, shape (T,); infinite where it never finished."""
    transfers, rows = record.tables["transfers"], is_flow(record)
    finish_ps, ready_ps = transfers["finish_ps"][rows], transfers["ready_ps"][rows]
    return np.where(finish_ps < 0, np.inf, finish_ps - ready_ps).astype(np.float64)


def throughputs_bps(record: RunRecord) -> FloatArray:
    """Return the throughput of every transfer over the fabric, shape (T,); 0 where it never finished."""
    return np.asarray(record.tables["transfers"]["bytes"][is_flow(record)] * BITS_PS / completion_times_ps(record))


def slowdowns(record: RunRecord) -> FloatArray:
    """Return completion over ideal time of every transfer over the fabric, shape (T,); infinite for one never finished.

    nan where the record does not tell of ideal times.
    """
    time_ps, rows = completion_times_ps(record), is_flow(record)
    ideal_ps = record.tables["transfers"].get("ideal_ps", np.full(len(rows), np.nan))
    return np.asarray(time_ps / ideal_ps[rows])


def makespan_ps(record: RunRecord) -> float:
    """Return when the last transfer finished, infinite if one never did."""
    finish_ps = record.tables["transfers"]["finish_ps"]
    return math.inf if (finish_ps < 0).any() else float(finish_ps.max(initial=0))


def _over(values: Callable[[RunRecord], FloatArray], how: Callable[[Any], Any]) -> Callable[[RunRecord], float]:
    def measure(record: RunRecord) -> float:
        found = values(record)
        return float(how(found)) if len(found) else math.nan

    return measure


def _total(table: str, column: str) -> Callable[[RunRecord], float]:
    return lambda record: float(record.tables[table][column].sum())


def _median(values: FloatArray) -> float:
    return float(np.quantile(values, 0.5, method="higher"))


def _percentile_99(values: FloatArray) -> float:
    return float(np.quantile(values, 0.99, method="higher"))


def _fairness(rate_T: FloatArray) -> float:
    return jain_fairness_index(rate_T) if rate_T.any() else math.nan


METRICS: Mapping[str, Metric] = {
    "completion_time.max": Metric(
        unit=DURATION, measure=_over(completion_times_ps, np.max), meaning="the slowest transfer's completion time"
    ),
    "completion_time.p99": Metric(
        unit=DURATION, measure=_over(completion_times_ps, _percentile_99), meaning="99 of 100 transfers took no longer"
    ),
    "completion_time.mean": Metric(
        unit=DURATION, measure=_over(completion_times_ps, np.mean), meaning="mean completion time"
    ),
    "completion_time.min": Metric(
        unit=DURATION, measure=_over(completion_times_ps, np.min), meaning="the fastest transfer's completion time"
    ),
    "slowdown.p50": Metric(
        unit=FACTOR,
        measure=_over(slowdowns, _median),
        meaning="half of the transfers took no longer, over their time alone",
    ),
    "slowdown.p99": Metric(
        unit=FACTOR, measure=_over(slowdowns, _percentile_99), meaning="99 of 100 took no longer, over their time alone"
    ),
    "makespan": Metric(unit=DURATION, measure=makespan_ps, meaning="when the last transfer of the run finished"),
    "throughput.min": Metric(unit=RATE, measure=_over(throughputs_bps, np.min), meaning="the slowest transfer's rate"),
    "throughput.mean": Metric(unit=RATE, measure=_over(throughputs_bps, np.mean), meaning="mean rate of a transfer"),
    "fairness": Metric(
        unit=FACTOR,
        measure=_over(throughputs_bps, _fairness),
        meaning="Jain's index of the transfers' rates, 1 if all are equal",
    ),
    "drops": Metric(
        unit=COUNT, measure=_total("ports", "dropped_packets"), meaning="packets dropped", is_of_transfers=False
    ),
    "pauses": Metric(
        unit=COUNT, measure=_total("ports", "pauses"), meaning="times a port was paused by PFC", is_of_transfers=False
    ),
    "paused_time": Metric(
        unit=DURATION,
        measure=_total("ports", "paused_ps"),
        meaning="time paused, over all ports",
        is_of_transfers=False,
    ),
    "ecn_marks": Metric(
        unit=COUNT,
        measure=_total("ports", "ecn_marked_packets"),
        meaning="packets marked by ECN",
        is_of_transfers=False,
    ),
    "retransmissions": Metric(
        unit=COUNT, measure=_total("transfers", "packets_retransmitted"), meaning="packets sent again"
    ),
    "cnps": Metric(unit=COUNT, measure=_total("transfers", "cnps"), meaning="congestion notification packets"),
    "queue.max": Metric(
        unit=SIZE,
        measure=lambda record: float(record.tables["ports"]["max_queue_bytes"].max(initial=0)),
        meaning="the fullest a queue was",
        is_of_transfers=False,
    ),
}
