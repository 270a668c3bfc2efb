"""A fit as a run record, kind `validate fit`: parameters with verdicts, segments, times, losses and counters."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fabrictune.foundation.checks import join_reports, run_check
from fabrictune.foundation.finding_rules.calibration import NOT_DETERMINED, POOR_FIT
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.findings import Finding
from fabrictune.foundation.records import Confidence, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import num_rows, to_columns
from fabrictune.foundation.units import BITS_PER_BYTE, NS_PER_S, PS_PER_NS, format_bytes, format_fraction
from fabrictune.validate.fit.fit import Fit
from fabrictune.validate.fit.terms import PARAMETERS
from fabrictune.validate.fit.verdicts import Judged, Verdict

KIND = "validate fit"
SEED = 0  # nothing here is drawn at random
_BIT_NS = BITS_PER_BYTE * NS_PER_S


def make_fit_record(fit: Fit, *, profile: Path, started: float, rules: RuleSettings = CATALOG_SETTINGS) -> RunRecord:
    """Return the record of a fit; `started` is what `time.perf_counter` said at the start."""
    times = _times(fit)
    tables = {
        "fitted_parameters": [parameter_row(one) for one in fit.judged],
        "fitted_correlations": [
            {"parameter": one, "other": other, "correlation": value}
            for (one, other), value in fit.calibration.correlations.items()
            if math.isfinite(value)
        ],
        "fitted_segments": list(_segments(fit)),
        "fitted_times": times,
        "fitted_losses": list(_losses(fit)),
        "fitted_counters": [
            {
                "class": one.counter_class,
                "rise": one.amount,
                "per_gb": one.per_gb,
                "is_saturated": int(one.is_saturated),
            }
            for one in fit.counters
        ],
    }
    columns = {name: to_columns(name, rows) for name, rows in tables.items()}
    run = describe_run(seed=SEED, started=started, configuration=_configuration(fit, profile))
    record = RunRecord(
        kind=KIND,
        run={**run, "notes": list(fit.notes)} if fit.notes else run,
        tables={name: table for name, table in columns.items() if num_rows(table)},
    )
    return record.with_checks(
        join_reports(
            run_check(NOT_DETERMINED.id, f"{len(fit.judged)} parameters", map(_undetermined, fit.judged)),
            run_check(POOR_FIT.id, f"{len(fit.calibration.modelled)} series", _poor(times, rules)),
        )
    )


def parameter_row(one: Judged) -> dict[str, Any]:
    """Return a parameter in the units of a record: picoseconds, or bits a second."""
    estimate = one.estimate
    low, high = estimate.low * PS_PER_NS, estimate.high * PS_PER_NS
    value = estimate.value * PS_PER_NS
    is_rate = PARAMETERS[estimate.name].is_rate
    if is_rate:
        value, low, high = (_rate(each) for each in (estimate.value, estimate.high, estimate.low))
    return {
        "parameter": estimate.name,
        "value": value,
        "low": -1.0 if estimate.is_held else low,
        "high": high if math.isfinite(high) else -1.0,
        "unit": "bps" if is_rate else "ps",
        "verdict": one.verdict.value,
        "reason": one.reason,
        "next_step": one.next_step,
        "is_held": int(estimate.is_held),
        "num_points": estimate.num_points,
        "least_bytes": estimate.least_bytes,
        "most_bytes": estimate.most_bytes,
    }


def _rate(byte_ns: float) -> float:
    return _BIT_NS / byte_ns if byte_ns > 0 else math.inf


def _configuration(fit: Fit, profile: Path) -> dict[str, Any]:
    return {
        "base": fit.base.name,
        "profile": str(profile),
        "algorithm": fit.algorithm,
        "files": {str(file.path): file.digest for file in fit.files},
        "values": {one.key: one.source for one in fit.values},
        "spread": fit.calibration.spread,
        "autocorrelation": fit.calibration.autocorrelation,
        "num_points": fit.calibration.num_points,
        "num_free": fit.calibration.num_free,
    }


def _segments(fit: Fit) -> Iterator[dict[str, Any]]:
    for one, lines in zip(fit.calibration.modelled, fit.calibration.lines, strict=True):
        for segment, line in zip(one.segments, lines, strict=True):
            yield {
                "series": one.series.key.label,
                "from_bytes": line.from_bytes,
                "intercept_ps": line.intercept_ns * PS_PER_NS,
                "rate_bps": _BIT_NS / line.byte_ns if line.byte_ns > 0 else -1.0,
                "num_points": len(segment),
            }


def _times(fit: Fit) -> list[dict[str, Any]]:
    rows = []
    for number, one in enumerate(fit.calibration.modelled):
        for size, time_ns in zip(one.series.size_bytes, one.series.time_ns, strict=True):
            modelled_ns = fit.calibration.time_ns(number, size)
            rows.append(
                {
                    "series": one.series.key.label,
                    "size_bytes": size,
                    "measured_ps": time_ns * PS_PER_NS,
                    "modelled_ps": modelled_ns * PS_PER_NS,
                    "error_fraction": modelled_ns / time_ns - 1,
                }
            )
    return rows


def _losses(fit: Fit) -> Iterator[dict[str, Any]]:
    for loss in fit.losses:
        yield {
            "series": loss.label,
            "of": loss.of,
            "counts": ", ".join(map(str, loss.counts)),
            "loss_fraction": loss.loss_fraction,
            "low_fraction": loss.low_fraction,
            "high_fraction": loss.high_fraction,
            "verdict": loss.verdict.value,
            "next_step": loss.next_step,
        }


def _undetermined(one: Judged) -> Finding | None:
    if one.verdict != Verdict.NOT:
        return None
    return NOT_DETERMINED.finding(
        entity=one.estimate.name,
        expected="times of which it has a part of its own",
        actual=one.reason,
        next_step=one.next_step,
        confidence=Confidence.MEASURED,
        evidence=("table fitted_parameters",),
    )


def _poor(rows: list[dict[str, Any]], rules: RuleSettings) -> Iterator[Finding]:
    limit = rules.threshold(POOR_FIT, "error")
    for series in dict.fromkeys(row["series"] for row in rows):
        own = [row for row in rows if row["series"] == series]
        error = float(np.median([abs(row["error_fraction"]) for row in own]))
        if error > limit:
            worst = max(own, key=lambda row: abs(row["error_fraction"]))
            shown = f"{worst['error_fraction']:+.0%} at {format_bytes(worst['size_bytes'])}"
            yield POOR_FIT.finding(
                entity=series,
                expected=f"a median error of at most {format_fraction(limit)}",
                actual=f"{format_fraction(error)}, {shown}",
                confidence=Confidence.PREDICTED,
                evidence=("table fitted_times",),
            )
