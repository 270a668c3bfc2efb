"""Results of a sweep, as tables of its record.

Points are in the order in which the search proposed them, so the tables do not depend on the executor. A point has
objectives only if every one of its runs gave every one of them.

Shapes: P points, O objectives.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.checks import CheckReport, join_reports, run_check
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.finding_rules.simulation import ONE_SEED, POINT_FAILED, POINT_UNFINISHED
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.records import Columns, Confidence, Finding, RunRecord
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.sweeps.pareto import is_on_front, is_surely_dominated
from fabrictune.sweeps.points import Point
from fabrictune.sweeps.schema import Sweep
from fabrictune.sweeps.search import PointCosts
from fabrictune.sweeps.sensitivity import grouped, rank_correlation, variance_share
from fabrictune.topology.ecmp.estimates import Estimate, estimate_mean, exactly_known

UNGUIDED = ("grid", "random")  # searches that do not look at results


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A point and its runs."""

    point: Point
    runs: tuple[RunRecord, ...]

    @property
    def failure(self) -> str:
        """The reason for a lack of results, "" if there are results."""
        return self.point.refusal or next((str(run.run["failure"]) for run in self.runs if "failure" in run.run), "")

    def estimates(self, sweep: Sweep) -> tuple[Estimate, ...] | None:
        """Return each objective over the seeds, None where a run has not every one."""
        if self.failure:
            return None
        values_by_measure = [[run.run["metrics"][name]["value"] for run in self.runs] for name in sweep.measures]
        if any(value is None for values in values_by_measure for value in values):
            return None
        return tuple(
            estimate_mean(values) if len(values) > 1 else exactly_known(values[0]) for values in values_by_measure
        )

    def costs(self, sweep: Sweep) -> PointCosts:
        """Return each objective's mean so that less is better, None where there is none."""
        estimates = self.estimates(sweep)
        if estimates is None:
            return None
        return tuple(
            objective.cost(estimate.value) for objective, estimate in zip(sweep.objectives, estimates, strict=True)
        )


def settings_text(point: Point, sweep: Sweep) -> str:
    """Return a point's values for people: `law.parameters.rpg_ai_rate = 50 Mbps; ...`."""
    return "; ".join(f"{axis.key} = {value}" for axis, value in zip(sweep.vary, point.values, strict=True))


def result_tables(sweep: Sweep, measured: Sequence[Measured]) -> dict[str, Columns]:
    """Return the tables of a sweep's record."""
    whole = [
        (row, estimates) for row, result in enumerate(measured) if (estimates := result.estimates(sweep)) is not None
    ]
    return {
        "points": _points_table(sweep, measured, whole),
        "objectives": _objectives_table(sweep, whole),
        "sensitivity": _sensitivity_table(sweep, measured, whole),
    }


def best_first(record: RunRecord) -> list[int]:
    """Return the points of a sweep's record that have results, the best in the first objective first."""
    objectives = record.tables["objectives"]
    metric, goal = next(iter(record.run["objectives"].items()))
    rows = np.flatnonzero(objectives["metric"] == metric)
    order = np.argsort(objectives["value"][rows] * (-1 if goal == "maximise" else 1), kind="stable")
    points: list[int] = objectives["point"][rows][order].tolist()
    return points


def result_report(sweep: Sweep, measured: Sequence[Measured]) -> CheckReport:
    """Return the checks of a sweep: that every point has results, and that its seeds tell points apart."""
    subject = f"{len(measured)} points"
    failed = [result for result in measured if result.failure]
    unfinished = [result for result in measured if not result.failure and result.estimates(sweep) is None]
    return join_reports(
        run_check(POINT_FAILED.id, subject, (_without_results(POINT_FAILED, result, sweep) for result in failed)),
        run_check(
            POINT_UNFINISHED.id, subject, (_without_results(POINT_UNFINISHED, result, sweep) for result in unfinished)
        ),
        run_check(
            ONE_SEED.id, subject, _of_one_seed(sweep), expected="more than one seed", actual=f"{sweep.seeds} seeds each"
        ),
    )


def _without_results(rule: Rule, result: Measured, sweep: Sweep) -> Finding:
    """Return the finding of a point that was refused, failed, or has an objective that is unknown."""
    return rule.finding(
        entity=settings_text(result.point, sweep),
        expected=f"a result for {', '.join(sweep.measures)}",
        actual=result.failure or "a run has no value for an objective, since transfers never completed",
        confidence=Confidence.PREDICTED,
        evidence=tuple(f"points/{task.id}" for task in result.point.tasks),
    )


def _of_one_seed(sweep: Sweep) -> Iterator[Finding]:
    if sweep.seeds == 1:
        yield ONE_SEED.finding(
            entity=f"sweep {sweep.name}",
            expected="an interval for every point, from two seeds or more",
            actual="one seed: the Pareto front and the sensitivities are unfounded",
            confidence=Confidence.CONFIGURED,
            evidence=("table objectives",),
        )


def _points_table(
    sweep: Sweep, measured: Sequence[Measured], whole: Sequence[tuple[int, Sequence[Estimate]]]
) -> Columns:
    rows = [row for row, _ in whole]
    signs = [objective.cost(1) for objective in sweep.objectives]
    ends_PO2 = np.array(
        [
            [
                sorted((sign * estimate.low, sign * estimate.high))
                for sign, estimate in zip(signs, estimates, strict=True)
            ]
            for _, estimates in whole
        ]
    ).reshape(len(rows), len(signs), 2)
    cost_PO = np.array(
        [[sign * estimate.value for sign, estimate in zip(signs, estimates, strict=True)] for _, estimates in whole]
    )
    on_front, dominated = np.zeros(len(measured), np.int64), np.zeros(len(measured), np.int64)
    if rows:
        on_front[rows] = is_on_front(cost_PO)
        if sweep.seeds > 1:
            dominated[rows] = is_surely_dominated(ends_PO2[:, :, 0], ends_PO2[:, :, 1])
    varied = {
        f"vary.{axis.key}": np.array([_text(result.point.values[place]) for result in measured], object)
        for place, axis in enumerate(sweep.vary)
    }
    return {
        "point": np.arange(len(measured)),
        "settings": np.array([settings_text(result.point, sweep) for result in measured], object),
        **varied,
        "num_seeds": np.array([len(result.runs) for result in measured], np.int64),
        "is_on_front": on_front,
        "is_surely_dominated": dominated,
    }


def _objectives_table(sweep: Sweep, whole: Sequence[tuple[int, Sequence[Estimate]]]) -> Columns:
    rows = [
        {
            "point": row,
            "metric": objective.name,
            "unit": METRICS[objective.metric].unit,
            "is_maximised": objective.is_maximised,
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
        }
        for row, estimates in whole
        for objective, estimate in zip(sweep.objectives, estimates, strict=True)
    ]
    return to_columns("objectives", rows)


def _sensitivity_table(
    sweep: Sweep, measured: Sequence[Measured], whole: Sequence[tuple[int, Sequence[Estimate]]]
) -> Columns:
    rows = []
    for place, axis in enumerate(sweep.vary if sweep.search.name in UNGUIDED else ()):
        position_P = np.array([axis.position(measured[row].point.values[place]) for row, _ in whole])
        for order, metric in enumerate(sweep.measures):
            value_P = np.array([estimates[order].value for _, estimates in whole])
            share = variance_share(grouped(position_P) if axis.is_range else position_P, value_P)
            rank = rank_correlation(position_P, value_P) if axis.has_order else math.nan
            rows += [
                {"key": axis.key, "metric": metric, "measure": measure, "value": value}
                for measure, value in (("variance_share", share), ("rank_correlation", rank))
                if not math.isnan(value)
            ]
    return to_columns("sensitivity", rows)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
