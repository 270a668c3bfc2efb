"""A bench as a run record: tables `measurements`, `iterations` and `ranks`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from fabrictune.collectives.measurement.measurements import Measurement, to_table
from fabrictune.collectives.measurement.spec import BenchCase, BenchSpec
from fabrictune.collectives.measurement.timing import TimingSamples, find_straggler
from fabrictune.foundation.checks import join_reports, run_check
from fabrictune.foundation.finding_rules.collectives import STRAGGLER, WRONG_RESULT
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.metrics.formulas import percentiles
from fabrictune.foundation.records import Columns, Confidence, Finding, RunRecord, describe_run
from fabrictune.foundation.units import PS_PER_NS, format_bytes, format_duration

SEED = 0  # nothing here is drawn at random
WAITED_FOR = "each iteration is waited for and no barrier lies between two, as with nccl-tests -z 2"
REDUCE_SCATTER = (
    "reduce_scatter is an all-to-all whose parts each rank adds up: gloo's own is an all-reduce, of twice the bytes"
)


def make_bench_record(
    spec: BenchSpec, samples: TimingSamples, *, backend: str, started: float, rules: RuleSettings = CATALOG_SETTINGS
) -> RunRecord:
    """Return the record of a bench; `started` is what `time.perf_counter` said at the start."""
    cases = spec.cases(len(samples.host_R), is_on_gpus=backend == "nccl")
    record = RunRecord(
        kind="coll bench",
        run=describe_run(
            seed=SEED,
            started=started,
            configuration={
                **asdict(spec),
                "backend": backend,
                "num_ranks": len(samples.host_R),
                "num_hosts": len(np.unique(samples.host_R)),
                "clock_error_ns": int(samples.clock_error_ns_R.max()),
                "conventions": conventions(spec, backend),
            },
        ),
        tables={
            "measurements": _measurements(cases, samples),
            "iterations": _iterations(samples),
            "ranks": _ranks(samples),
        },
    )
    return record.with_checks(
        join_reports(
            run_check(
                WRONG_RESULT.id,
                f"results of {len(cases):,} cases",
                _wrong_results(cases, samples),
                expected="every element right on every rank",
            ),
            run_check(
                STRAGGLER.id,
                f"{len(samples.host_R):,} ranks",
                _stragglers(cases, samples, rules),
                expected="each to come last about as often",
            ),
        )
    )


def conventions(spec: BenchSpec, backend: str) -> list[str]:
    """Return what a reader of the figures must know of how they came about."""
    is_own_way = backend != "nccl" and "reduce_scatter" in spec.names
    return [WAITED_FOR, *([REDUCE_SCATTER] if is_own_way else [])]


def _measurements(cases: Sequence[BenchCase], samples: TimingSamples) -> Columns:
    rows = [
        Measurement(
            name=case.name,
            is_in_place=case.is_in_place,
            size_bytes=case.size_bytes,
            num_ranks=len(samples.host_R),
            mean_ns=mean_ns,
            num_wrong=num_wrong,
        )
        for case, mean_ns, num_wrong in zip(
            cases, samples.mean_ns_C.tolist(), samples.num_wrong_RC.sum(axis=0).tolist(), strict=True
        )
    ]
    p10_ns_C, median_ns_C, p99_ns_C = percentiles(samples.iteration_ns_CK, (0.1, 0.5, 0.99))
    return {
        **to_table(rows),
        "p10_ns": p10_ns_C,
        "median_ns": median_ns_C,
        "p99_ns": p99_ns_C,
        "skew_ns": samples.skew_ns_CK.mean(axis=1),
    }


def _iterations(samples: TimingSamples) -> Columns:
    num_cases, num_iterations = samples.iteration_ns_CK.shape
    return {
        "case": np.repeat(np.arange(num_cases), num_iterations),
        "iteration": np.tile(np.arange(num_iterations), num_cases),
        "duration_ns": samples.iteration_ns_CK.ravel(),
        "skew_ns": samples.skew_ns_CK.ravel(),
        "last_rank": samples.last_rank_CK.ravel(),
    }


def _ranks(samples: TimingSamples) -> Columns:
    num_ranks, num_cases, _ = samples.began_ns_RCK.shape
    is_last_RCK = samples.last_rank_CK == np.arange(num_ranks)[:, None, None]
    by_case: Mapping[str, NDArray[np.generic]] = {
        "late_ns": samples.late_ns_RCK.mean(axis=2),
        "own_ns": (samples.ended_ns_RCK - samples.began_ns_RCK).mean(axis=2),
        "times_last": is_last_RCK.sum(axis=2),
    }
    return {
        "case": np.repeat(np.arange(num_cases), num_ranks),
        "rank": np.tile(np.arange(num_ranks), num_cases),
        "host": np.tile(samples.host_R, num_cases),
        **{name: values_RC.T.ravel() for name, values_RC in by_case.items()},
    }


def _wrong_results(cases: Sequence[BenchCase], samples: TimingSamples) -> Iterator[Finding]:
    for case, num_wrong in zip(cases, samples.num_wrong_RC.sum(axis=0).tolist(), strict=True):
        if num_wrong:
            yield WRONG_RESULT.finding(
                entity=f"{case.name} of {format_bytes(case.size_bytes)}",
                expected="none on any rank",
                actual=f"{num_wrong} wrong elements",
                confidence=Confidence.MEASURED,
                evidence=("table measurements",),
            )


def _stragglers(cases: Sequence[BenchCase], samples: TimingSamples, rules: RuleSettings) -> Iterator[Finding]:
    straggler = find_straggler(samples, cases, rules)
    if straggler is None:
        return
    late_ns_C = samples.late_ns_RCK[straggler.rank].mean(axis=1)
    worst = int(late_ns_C.argmax())
    if late_ns_C[worst] <= samples.clock_error_ns_R.max():
        return
    yield STRAGGLER.finding(
        entity=f"rank {straggler.rank}",
        expected=f"each of {len(samples.host_R)} ranks to be last about equally often",
        actual=f"last in {100 * straggler.last_fraction:.0f} % of the iterations; late by "
        f"{100 * straggler.late_fraction:.0f} % of the time in the median case, at most by "
        f"{format_duration(late_ns_C[worst] * PS_PER_NS)}",
        confidence=Confidence.MEASURED,
        evidence=("table ranks",),
    )
