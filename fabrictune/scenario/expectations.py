"""Expectations of a scenario: metrics of its record, each with a bound; a broken bound is a finding.

A metric that is unknown breaks its bound: unknown never passes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.errors import InputError, Mistake, UnitError, require_one_of
from fabrictune.foundation.finding_rules.simulation import EXPECTATION
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.measures import measure_name
from fabrictune.foundation.metrics.transfers import FLUID_ENGINE, estimator, of_part
from fabrictune.foundation.records import Confidence, RunRecord


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A metric of a whole run, or of the transfers of one part of a mixture."""

    metric: str = field(metadata={"help": "name of a number in the run's summary", "one_of": tuple(METRICS)})
    part: str | None = field(default=None, metadata={"help": "of a mixture, whose transfers alone are measured"})

    def __post_init__(self) -> None:
        require_one_of(self.metric, tuple(METRICS), where="metric", what="metric", error=InputError)
        if self.part is not None and not METRICS[self.metric].is_of_transfers:
            allowed = f"with {self.metric}, no part: it is known of the whole run alone"
            raise InputError(Mistake(where="part", found=self.part, allowed=allowed))

    @property
    def name(self) -> str:
        """Its name in tables: `slowdown.p99`, or `slowdown.p99 of bystanders`."""
        return measure_name(self.metric, self.part)

    def value(self, record: RunRecord) -> float:
        """Return its value in a record of a simulated run."""
        return METRICS[self.metric].measure(self.measured(record))

    def measured(self, record: RunRecord) -> RunRecord:
        """Return the record with the transfers that are measured."""
        return record if self.part is None else of_part(record, self.part)


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

    @property
    def bound(self) -> str:
        """The bound for people: "at most 1 ms"."""
        shown = METRICS[self.metric].show(self.limit)
        return f"at most {shown}" if self.at_least is None else f"at least {shown}"

    def check(self, record: RunRecord) -> CheckReport:
        """Return the check of the bound, with the value of the record and a finding if that breaks it.

        Where skip estimates the value, its whole interval must keep the bound; without one nothing is checked.
        """
        metric, estimated_by = METRICS[self.metric], estimator(record)
        values: tuple[float, ...] = (self.value(record),)
        shown = metric.show(values[0])
        interval = metric.interval(self.measured(record)) if estimated_by else None
        if interval is not None:
            values, shown = interval, f"{shown}, between {metric.show(interval[0])} and {metric.show(interval[1])}"
        finding = EXPECTATION.finding(
            member=self.metric,
            entity=self.name,
            expected=self.bound,
            actual=shown,
            confidence=Confidence.PREDICTED,
        )
        if estimated_by and interval is None:
            estimate = f"estimates {shown}, without an interval" if shown != "unknown" else "does not know it"
            engine = "packet" if estimated_by == FLUID_ENGINE else "{skip: exact}"
            reason = f"{estimated_by} {estimate}; engine: {engine} measures it"
            return skip_check(finding.id, self.name, reason)
        is_met = all(map(self._is_met_by, values))
        return run_check(finding.id, self.name, [] if is_met else [finding], expected=self.bound, actual=shown)

    def _is_met_by(self, value: float) -> bool:
        return value <= self.limit if self.at_least is None else value >= self.limit


def check_expectations(expectations: Sequence[Expectation], record: RunRecord) -> CheckReport:
    """Return the check of each expectation; without any, one that did not run."""
    if not expectations:
        reason = "the scenario has no `expect`, so no time, throughput or slowdown has a bound"
        return skip_check(EXPECTATION.id, "expectations of the scenario", reason)
    return join_reports(*(expectation.check(record) for expectation in expectations))


def _limit(expectation: Expectation) -> float:
    """Return the bound in the metric's base unit; raises InputError at the key that holds it."""
    name = "at_least" if expectation.at_most is None else "at_most"
    value = getattr(expectation, name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(Mistake(where=name, found=f"{value!r} where a number with its unit is needed"))
    try:
        return METRICS[expectation.metric].quantity.parse(str(value))
    except UnitError as error:
        raise InputError(replace(error.mistakes[0], where=name)) from error
