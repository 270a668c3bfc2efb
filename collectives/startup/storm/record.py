"""Storms as a run record: measurements, their growth, and the extrapolation to a larger job.

Tables: `storms`; `growth` with four sizes or more of a pattern; `gains` where `legacy` is among the patterns.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fabrictune.collectives.startup.storm.experiment import StormResult, StormSpec
from fabrictune.collectives.startup.storm.growth import MIN_SIZES, fit_growth
from fabrictune.foundation.checks import run_check
from fabrictune.foundation.finding_rules.collectives import REQUESTS
from fabrictune.foundation.records import Columns, Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import num_rows, to_columns
from fabrictune.foundation.units import NS_PER_S

COSTS = ("requests", "server_cpu_ns", "wall_ns")
FITTED = ("constant", "linear", "quadratic", "exponent", "worst_error_fraction")
BASELINE = "legacy"
ASSUMPTIONS = (
    "a cost is a constant, a part for each rank and a part for each pair of ranks, fitted to the sizes measured",
    "a request costs the server as much among more ranks, and the server holds as many connections",
    "one machine was server and all ranks: the wall time is bounded by its processors, and holds no network's delay",
    "ranks begin together; starting their processes, reading data and making communicators come on top",
)
SEED = 0  # nothing here is drawn at random


def make_storm_record(
    spec: StormSpec, results: Sequence[StormResult], *, extrapolated_ranks: int, started: float
) -> RunRecord:
    """Return the record of a storm experiment; `started` is what `time.perf_counter` said at the start."""
    storms = _storms(results)
    configuration: dict[str, Any] = {
        "tp": spec.tp,
        "pp": spec.pp,
        "num_ranks": list(spec.num_ranks),
        "patterns": {pattern.name: pattern.what for pattern in spec.patterns},
        "extrapolated_ranks": extrapolated_ranks,
        "assumptions": list(ASSUMPTIONS),
    }
    tables = {"storms": storms, "growth": _growth(storms, extrapolated_ranks), "gains": _gains(storms)}
    record = RunRecord(
        kind="coll init storm",
        run=describe_run(seed=SEED, started=started, configuration=configuration),
        tables={name: columns for name, columns in tables.items() if num_rows(columns)},
    )
    return record.with_checks(
        run_check(
            REQUESTS.id,
            f"{len(results):,} storms",
            _miscounts(results),
            expected="as many requests as the closed form has",
        )
    )


def _storms(results: Sequence[StormResult]) -> Columns:
    rows = [
        {
            "pattern": result.pattern.name,
            "ranks": result.num_ranks,
            "groups": result.num_groups,
            "operations": result.num_operations,
            "requests": result.num_requests,
            "requests_expected": result.num_requests_expected,
            "is_exact": result.pattern.is_exact,
            "connect_ns": round(result.connect_s * NS_PER_S),
            "wall_ns": round(result.wall_s * NS_PER_S),
            "server_cpu_ns": round(result.server_cpu_s * NS_PER_S),
            "clients_cpu_ns": round(result.clients_cpu_s * NS_PER_S),
        }
        for result in results
    ]
    return to_columns("storms", rows)


def _growth(storms: Columns, extrapolated_ranks: int) -> Columns:
    """Return one row for each pattern and cost that was measured at enough sizes."""
    rows: list[dict[str, Any]] = []
    for pattern in dict.fromkeys(storms["pattern"].tolist()):
        is_of_pattern_S = storms["pattern"] == pattern
        num_ranks_N = storms["ranks"][is_of_pattern_S]
        if len(num_ranks_N) < MIN_SIZES:
            continue
        for cost in COSTS:
            growth = fit_growth(num_ranks_N, storms[cost][is_of_pattern_S].astype(np.float64))
            low, high = growth.interval(extrapolated_ranks)
            is_supported = growth.is_supported(extrapolated_ranks)
            rows.append(
                {
                    "pattern": pattern,
                    "cost": cost,
                    **{part: getattr(growth, part) for part in FITTED},
                    "extrapolated_ranks": extrapolated_ranks,
                    "extrapolated": growth.at(extrapolated_ranks) if is_supported else -1.0,
                    "extrapolated_low": low,
                    "extrapolated_high": high,
                    "quadratic_fraction": growth.quadratic_fraction(extrapolated_ranks) if is_supported else -1.0,
                }
            )
    return to_columns("growth", rows)


def _gains(storms: Columns) -> Columns:
    """Return how many times less each pattern costs than the baseline at the same size."""
    rows: list[dict[str, Any]] = []
    cases = {
        (name, ranks): row for row, (name, ranks) in enumerate(zip(storms["pattern"], storms["ranks"], strict=True))
    }
    for (name, ranks), row in cases.items():
        baseline = cases.get((BASELINE, ranks))
        if baseline is not None and name != BASELINE:
            times = {f"{cost}_times": float(storms[cost][baseline] / storms[cost][row]) for cost in COSTS}
            rows.append({"ranks": int(ranks), "pattern": str(name), **times})
    return to_columns("gains", rows)


def _miscounts(results: Sequence[StormResult]) -> Iterable[Finding]:
    for result in results:
        expected, exact = result.num_requests_expected, result.pattern.is_exact
        if result.num_requests < expected or (exact and result.num_requests != expected):
            yield REQUESTS.finding(
                entity=f"pattern {result.pattern.name}, {result.num_ranks} ranks",
                expected=f"{expected} requests" if exact else f"{expected} requests or more",
                actual=f"{result.num_requests} requests",
                confidence=Confidence.MEASURED,
                evidence=("table storms",),
            )
