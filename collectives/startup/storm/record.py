"""Storms as a run record: what was measured, how it grows, and what a larger job would see.

Tables of a record of kind `coll init storm`:

- `storms`: pattern, ranks, groups, operations and requests_expected (closed forms; the least where `is_exact` is 0),
  requests (counted), is_exact, connect_ns, wall_ns, server_cpu_ns, clients_cpu_ns
- `growth`, where there are four sizes or more: pattern, cost (requests, server_cpu_ns, wall_ns), constant, linear,
  quadratic, exponent, worst_error_fraction (see `growth.py`), extrapolated_ranks, extrapolated, quadratic_fraction
  (of it)
- `gains`, where `legacy` was measured: ranks, pattern, requests_times, server_cpu_ns_times, wall_ns_times: how many
  times less a pattern costs
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fabrictune.collectives.startup.storm.experiment import StormResult, StormSpec
from fabrictune.collectives.startup.storm.growth import MIN_SIZES, fit_growth
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.records import Columns, Confidence, Finding, RunRecord, Severity, describe_run

COSTS = ("requests", "server_cpu_ns", "wall_ns")
BASELINE = "legacy"
ASSUMPTIONS = (
    "a cost is a constant, a part for each rank and a part for each pair of ranks, fitted to the sizes measured",
    "a request costs the server as much among more ranks, and the server holds as many connections",
    "one machine was server and all ranks: the wall time is bounded by its processors, and holds no network's delay",
    "ranks begin together; starting their processes, reading data and making communicators come on top",
)
SEED = 0  # nothing here is drawn at random


def make_record(
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
    return RunRecord(
        kind="coll init storm",
        run=describe_run(seed=SEED, started=started, configuration=configuration),
        tables={name: columns for name, columns in tables.items() if columns},
        findings=tuple(_miscounts(results)),
    )


def _storms(results: Sequence[StormResult]) -> Columns:
    return {
        "pattern": np.array([result.pattern.name for result in results]),
        "ranks": np.array([result.num_ranks for result in results]),
        "groups": np.array([result.num_groups for result in results]),
        "operations": np.array([result.num_operations for result in results]),
        "requests": np.array([result.num_requests for result in results]),
        "requests_expected": np.array([result.num_requests_expected for result in results]),
        "is_exact": np.array([int(result.pattern.is_exact) for result in results]),
        "connect_ns": _ns(result.connect_s for result in results),
        "wall_ns": _ns(result.wall_s for result in results),
        "server_cpu_ns": _ns(result.server_cpu_s for result in results),
        "clients_cpu_ns": _ns(result.clients_cpu_s for result in results),
    }


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
            rows.append(
                {
                    "pattern": pattern,
                    "cost": cost,
                    **asdict(growth),
                    "extrapolated_ranks": extrapolated_ranks,
                    "extrapolated": growth.at(extrapolated_ranks),
                    "quadratic_fraction": growth.quadratic_fraction(extrapolated_ranks),
                }
            )
    return _columns(rows)


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
    return _columns(rows)


def _miscounts(results: Sequence[StormResult]) -> Iterable[Finding]:
    for result in results:
        expected, exact = result.num_requests_expected, result.pattern.is_exact
        if result.num_requests < expected or (exact and result.num_requests != expected):
            yield Finding(
                id="startup.requests",
                severity=Severity.ERROR,
                entity=f"pattern {result.pattern.name}, {result.num_ranks} ranks",
                expected=f"{expected} requests" if exact else f"{expected} requests or more",
                actual=f"{result.num_requests} requests",
                next_step="the protocol and its closed form have come apart: report it",
                confidence=Confidence.MEASURED,
                evidence=("table storms",),
            )


def _ns(times_s: Iterable[float]) -> IntArray:
    return np.array([round(time_s * 1e9) for time_s in times_s], dtype=np.int64)


def _columns(rows: Sequence[dict[str, Any]]) -> Columns:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}
