"""Measured collectives compared with a model of them, and the gap between the two attributed.

Tables: `fits`, a row for each *series* (rows of one operation, place and number of ranks) of two sizes or more; with a
scenario `attribution`, a row for each measurement, its parts named as in `attribution.py`, and for the largest size of
each series `verdicts`, a row, and `verdict_rates`, a row for each usual NIC rate.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabrictune.collectives.bounds import bus_factor
from fabrictune.collectives.measurement.alpha_beta_fit import AlphaBetaLine, fit_line
from fabrictune.collectives.measurement.files import MeasurementFiles
from fabrictune.collectives.measurement.measurements import Measurement
from fabrictune.collectives.measurement.spec import BENCHED
from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.finding_rules.collectives import FASTER_THAN_BOUND, GAP, NO_LINE, WRONG_RESULT
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.progress import Progress
from fabrictune.foundation.records import Columns, Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import num_rows, to_columns
from fabrictune.foundation.units import BITS_PER_BYTE, NS_PER_S, PS_PER_NS, format_bytes, format_duration
from fabrictune.hardware.profile import HardwareProfile
from fabrictune.scenario.provenance import describe_scenario
from fabrictune.scenario.schema import Scenario
from fabrictune.validate.attribution import CAUSES, Attribution, attribute
from fabrictune.validate.collective_model import CollectiveModel, Modelled
from fabrictune.validate.nccl_comparison import nccl_table
from fabrictune.validate.verdict_rates import RateVerdict, Timed, verdicts_by_rate
from fabrictune.validate.verdicts import Verdict, find_verdict

SEED = 0  # nothing here is drawn at random
Series = tuple[str, bool, int]  # operation, whether in place, number of ranks


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A measurement, its model, and where its time goes."""

    measurement: Measurement
    modelled: Modelled
    attribution: Attribution
    verdict: Verdict
    timed: Timed

    @property
    def ratio(self) -> float:
        """Return measured over modelled time."""
        return self.attribution.measured_ps / self.modelled.fair_ps


def compare_measured(
    imported: MeasurementFiles,
    scenario: Scenario | None,
    *,
    profile: HardwareProfile | None = None,
    rules: RuleSettings = CATALOG_SETTINGS,
    progress: Progress | None = None,
) -> RunRecord:
    """Return the record of a comparison; without a scenario, of lines through the measurements alone.

    With a hardware profile NCCL's model of its hosts stands beside them, too. Raises InputError where the scenario's
    groups have another number of ranks than was measured, or NCCL's model cannot be asked.
    """
    started = time.perf_counter()
    lines = _fit(imported.rows)
    models = _models(imported.rows, scenario) if scenario else {}
    compared = _compare(imported.rows, lines, scenario, models, progress) if scenario else []
    largest = _largest(compared)
    tables = {
        "fits": _fits_table(imported.rows, lines),
        "nccl_model": nccl_table(imported, profile) if profile else {},
        "attribution": _attribution_table(compared),
        "verdicts": _verdicts_table(largest),
        "verdict_rates": _rates_table(largest, rules),
    }
    assumed = (note for model in models.values() for note in model.notes)
    description = describe_scenario(scenario, assumed) if scenario else {}
    notes = {"notes": [*imported.notes, *description.get("notes", ())]} if imported.notes else {}
    report = join_reports(
        imported.report, _check_measurements(imported.rows, lines), _check_against_model(compared, largest, rules)
    )
    return RunRecord(
        kind="coll compare",
        run={
            **describe_run(seed=scenario.seed if scenario else SEED, started=started),
            **description,
            **notes,
            "configuration": {
                "source": imported.source,
                "num_hosts": imported.num_hosts,
                **({"hardware": profile.name} if profile else {}),
            },
        },
        tables={name: table for name, table in tables.items() if num_rows(table)},
        findings=report.findings,
        checks=report.checks,
    )


def _check_measurements(rows: Sequence[Measurement], lines: Mapping[Series, AlphaBetaLine]) -> CheckReport:
    checked = sum(row.num_wrong >= 0 for row in rows)
    wrong = f"results of {len(rows)} measurements"
    return join_reports(
        run_check(WRONG_RESULT.id, wrong, _wrong(rows), actual=f"{checked} checked, none wrong")
        if checked
        else skip_check(WRONG_RESULT.id, wrong, "the measurement did not check its results"),
        run_check(NO_LINE.id, f"lines through {len(lines)} series", _no_lines(lines)),
    )


def _check_against_model(compared: Sequence[Compared], largest: Sequence[Compared], rules: RuleSettings) -> CheckReport:
    subject = f"{len(compared)} measurements beside the model" if compared else "measurements beside a model"
    if not compared:
        reason = "no scenario was given (--scenario)"
        return join_reports(*(skip_check(rule.id, subject, reason) for rule in (FASTER_THAN_BOUND, GAP)))
    return join_reports(
        run_check(FASTER_THAN_BOUND.id, subject, _too_fast(compared, rules)),
        run_check(GAP.id, f"largest sizes of {len(largest)} series", _gaps(largest, rules)),
    )


def _series(row: Measurement) -> Series:
    return row.name, bool(row.is_in_place), row.num_ranks


def _fit(rows: Sequence[Measurement]) -> Mapping[Series, AlphaBetaLine]:
    """Return a line in nanoseconds for each series that has two sizes."""
    series: dict[Series, list[Measurement]] = {}
    for row in rows:
        series.setdefault(_series(row), []).append(row)
    return {
        key: fit_line([row.size_bytes for row in own], [row.mean_ns for row in own])
        for key, own in series.items()
        if len({row.size_bytes for row in own}) > 1
    }


def _models(rows: Sequence[Measurement], scenario: Scenario) -> dict[str, CollectiveModel]:
    """Return the model of each collective that was measured; raises InputError."""
    return {name: CollectiveModel(scenario, BENCHED[name]) for name in dict.fromkeys(row.name for row in rows)}


def _compare(
    rows: Sequence[Measurement],
    lines: Mapping[Series, AlphaBetaLine],
    scenario: Scenario,
    models: Mapping[str, CollectiveModel],
    progress: Progress | None,
) -> list[Compared]:
    modelled: dict[tuple[str, int], Modelled] = {}
    compared = []
    for number, row in enumerate(rows):
        model, key = models[row.name], (row.name, row.size_bytes)
        if row.num_ranks != model.num_ranks:
            raise InputError(_other_ranks(row, model.num_ranks, scenario))
        modelled[key] = modelled.get(key) or model.at(row.size_bytes)
        measured_ps, late_ps = row.mean_ns * PS_PER_NS, row.skew_ns * PS_PER_NS
        alpha_ps = max(0.0, lines[_series(row)].alpha) * PS_PER_NS if _series(row) in lines else 0.0
        timed = Timed(measured_ps=measured_ps, alpha_ps=alpha_ps, late_ps=late_ps)
        compared.append(
            Compared(
                measurement=row,
                modelled=modelled[key],
                attribution=attribute(measured_ps, modelled[key], alpha_ps=alpha_ps, late_ps=late_ps),
                verdict=find_verdict(
                    row,
                    modelled[key],
                    measured_ps=measured_ps,
                    alpha_ps=alpha_ps,
                    late_ps=late_ps,
                    rate_bps=model.line_rate_bps,
                ),
                timed=timed,
            )
        )
        if progress:
            progress((number + 1) / len(rows))
    return compared


def _other_ranks(row: Measurement, num_ranks: int, scenario: Scenario) -> Mistake:
    return Mistake(
        where=scenario.where("traffic", "layout"),
        found=f"groups of {num_ranks} ranks, where {row.num_ranks} ranks were measured",
        next_step="describe the job that was measured, or name the axis of its groups (traffic.axis)",
    )


def _fits_table(rows: Sequence[Measurement], lines: Mapping[Series, AlphaBetaLine]) -> Columns:
    table: list[dict[str, Any]] = []
    for key, line in lines.items():
        own = [row for row in rows if _series(row) == key]
        errors = [abs(line.at(row.size_bytes) / row.mean_ns - 1) for row in own]
        table.append(
            {
                "operation": key[0],
                "is_in_place": int(key[1]),
                "num_ranks": key[2],
                "num_sizes": len(own),
                **_fitted(line, bus_factor(BENCHED[key[0]], key[2])),
                "worst_error_fraction": max(errors),
            }
        )
    return to_columns("fits", table)


def _fitted(line: AlphaBetaLine, factor: float) -> dict[str, float]:
    """Return a line's parameters in a record's units; a bandwidth that more bytes do not lower is -1."""

    def busbw_bps(beta: float, otherwise: float) -> float:
        return factor * BITS_PER_BYTE * NS_PER_S / beta if beta > 0 else otherwise

    low_ns, high_ns = (end if math.isfinite(end) else math.nan for end in line.alpha_interval)
    least_beta, most_beta = line.beta_interval
    return {
        "alpha_ns": line.alpha,
        "alpha_low_ns": low_ns,
        "alpha_high_ns": high_ns,
        "busbw_bps": busbw_bps(line.beta, -1.0),
        "busbw_low_bps": busbw_bps(most_beta, math.nan) if math.isfinite(most_beta) else math.nan,
        "busbw_high_bps": busbw_bps(least_beta, math.nan),
    }


def _attribution_table(compared: Sequence[Compared]) -> Columns:
    return to_columns(
        "attribution",
        [
            {
                "operation": row.measurement.name,
                "is_in_place": int(row.measurement.is_in_place),
                "num_ranks": row.measurement.num_ranks,
                "size_bytes": row.measurement.size_bytes,
                "measured_ps": row.attribution.measured_ps,
                "bound_ps": row.modelled.bound_ps,
                "fair_ps": row.modelled.fair_ps,
                "ratio": row.ratio,
                **{f"{name}_ps": row.attribution.parts_ps[name] for name in CAUSES},
            }
            for row in compared
        ],
    )


def _verdicts_table(largest: Sequence[Compared]) -> Columns:
    return to_columns(
        "verdicts",
        [
            {
                "operation": row.measurement.name,
                "is_in_place": int(row.measurement.is_in_place),
                "num_ranks": row.measurement.num_ranks,
                "size_bytes": row.measurement.size_bytes,
                "cause": row.verdict.cause,
                "share_fraction": row.verdict.share,
                "rate_bps": row.verdict.rate_bps,
                "below_bps": row.verdict.below.rate_bps if row.verdict.below else -1.0,
                "below_cause": row.verdict.below.cause if row.verdict.below else "",
                "above_bps": row.verdict.above.rate_bps if row.verdict.above else -1.0,
                "above_cause": row.verdict.above.cause if row.verdict.above else "",
            }
            for row in largest
        ],
    )


def _rates_table(largest: Sequence[Compared], rules: RuleSettings) -> Columns:
    least = rules.threshold(FASTER_THAN_BOUND, "least_of_bound")
    rows: list[tuple[Compared, RateVerdict]] = [
        (row, verdict)
        for row in largest
        for verdict in verdicts_by_rate(row.timed, row.modelled, rate_bps=row.verdict.rate_bps, least_of_bound=least)
    ]
    return to_columns(
        "verdict_rates",
        [
            {
                "operation": row.measurement.name,
                "is_in_place": int(row.measurement.is_in_place),
                "num_ranks": row.measurement.num_ranks,
                "size_bytes": row.measurement.size_bytes,
                "rate_bps": float(verdict.rate_bps),
                "cause": verdict.cause,
                "share_fraction": verdict.share,
                "is_possible": int(verdict.is_possible),
                "turn_bps": verdict.turn_bps,
            }
            for row, verdict in rows
        ],
    )


def _entity(row: Measurement) -> str:
    return f"{row.name} of {format_bytes(row.size_bytes)}{' in place' if row.is_in_place else ''}"


def _wrong(rows: Sequence[Measurement]) -> Iterator[Finding]:
    for row in rows:
        if row.num_wrong > 0:
            yield WRONG_RESULT.finding(
                entity=_entity(row),
                expected="none on any rank",
                actual=f"{row.num_wrong} wrong elements",
                confidence=Confidence.MEASURED,
            )


def _no_lines(lines: Mapping[Series, AlphaBetaLine]) -> Iterator[Finding]:
    """Yield a finding for each series whose line costs less than nothing, whatever its errors."""
    for (name, is_in_place, num_ranks), line in lines.items():
        if line.may_be_physical:
            continue
        parameter, value, ends = ("alpha", line.alpha, line.alpha_interval)
        if value >= 0:
            parameter, value, ends = ("time per byte", line.beta, line.beta_interval)
        shown, low, high = (format_duration(time_ns * PS_PER_NS) for time_ns in (value, *ends))
        yield NO_LINE.finding(
            entity=f"{name} of {num_ranks} ranks{' in place' if is_in_place else ''}",
            expected=f"{parameter} of 0 or more",
            actual=f"{parameter} {shown}, 95 % interval {low} to {high}",
            confidence=Confidence.PREDICTED,
            evidence=("table fits",),
        )


def _too_fast(compared: Sequence[Compared], rules: RuleSettings) -> Iterator[Finding]:
    """Yield a finding for the measurement that beats its bound by most, if one does."""
    worst = min(compared, key=lambda row: row.attribution.measured_ps / row.modelled.bound_ps)
    fraction = worst.attribution.measured_ps / worst.modelled.bound_ps
    if fraction < rules.threshold(FASTER_THAN_BOUND, "least_of_bound"):
        yield FASTER_THAN_BOUND.finding(
            entity=_entity(worst.measurement),
            expected=f"at least {format_duration(worst.modelled.bound_ps)}, the lower bound of the scenario's links",
            actual=f"{format_duration(worst.attribution.measured_ps)}, {fraction:.2f} of the bound",
            confidence=Confidence.MEASURED,
            evidence=("table attribution",),
        )


def _largest(compared: Sequence[Compared]) -> list[Compared]:
    """Return the largest size of each series."""
    largest: dict[Series, Compared] = {}
    for row in compared:
        key = _series(row.measurement)
        if key not in largest or row.measurement.size_bytes > largest[key].measurement.size_bytes:
            largest[key] = row
    return list(largest.values())


def _gaps(largest: Sequence[Compared], rules: RuleSettings) -> Iterator[Finding]:
    """Yield a finding for each largest size: the largest cause but the NIC, where it is worth a word."""
    for row in largest:
        name = row.attribution.largest_avoidable
        measured_ps, part_ps = row.attribution.measured_ps, row.attribution.parts_ps[name]
        if part_ps < rules.threshold(GAP, "least_share") * measured_ps:
            continue
        yield GAP.finding(
            entity=_entity(row.measurement),
            expected=f"{format_duration(row.attribution.parts_ps['nic'])} for the NICs alone",
            actual=f"{format_duration(measured_ps)}, of which {name.replace('_', ' ')} {part_ps / measured_ps:.0%}",
            next_step=f"{name.replace('_', ' ')}: {CAUSES[name].test}; most of the time is "
            f"{'the NICs' if row.verdict.cause == 'nic' else row.verdict.cause.replace('_', ' ')}'s, which "
            f"{row.verdict.caveat}",
            confidence=Confidence.PREDICTED,
            evidence=("table attribution", "table verdicts"),
        )
