"""Counters as a run record: table `nic_counters`, settings and notes in its head."""

from typing import Any

from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.rdma_bench.counters.checks import ONE_SNAPSHOT, check_counters
from fabrictune.rdma_bench.counters.differences import Comparison, compare_snapshots
from fabrictune.rdma_bench.counters.snapshots import Counter, Snapshot

TABLE = "nic_counters"
KIND = "rdma counters"
SEED = 0  # nothing here is drawn at random
UNKNOWN = -1.0


def make_counter_record(
    before: Snapshot,
    after: Snapshot | None,
    *,
    interval_ps: int = 0,
    sources: tuple[str, ...],
    started: float,
    rules: RuleSettings = CATALOG_SETTINGS,
) -> RunRecord:
    """Return the record of one snapshot, or of the difference of two; `interval_ps` is 0 where it is not known.

    `started` is what `time.perf_counter` said at the start.
    """
    comparison = compare_snapshots(before, after) if after else None
    report = check_counters(comparison, interval_ps=interval_ps, settings=rules)
    configuration = {
        "sources": list(sources),
        "interval_ps": interval_ps,
        "settings": [
            {"device": device, "name": name, "value": value}
            for (device, name), value in (after or before).settings.items()
        ],
    }
    run: dict[str, Any] = describe_run(seed=SEED, started=started, configuration=configuration)
    notes = list(comparison.notes) if comparison else [*before.notes, ONE_SNAPSHOT]
    return RunRecord(
        kind=KIND,
        run={**run, **({"notes": notes} if notes else {})},
        tables={TABLE: to_columns(TABLE, _rows(before, comparison))},
        findings=report.findings,
        checks=report.checks,
    )


def _rows(before: Snapshot, comparison: Comparison | None) -> list[dict[str, Any]]:
    if comparison is None:
        return [
            _row(
                counter,
                old=UNKNOWN,
                rise=float(counter.value * counter.meaning.factor),
                has_wrapped=False,
                is_saturated=_is_at_its_end(counter),
            )
            for counter in before.counters.values()
        ]
    return [
        _row(
            difference.after,
            old=float(difference.before.value),
            rise=UNKNOWN if difference.amount is None else float(difference.amount),
            has_wrapped=difference.has_wrapped,
            is_saturated=difference.is_saturated,
        )
        for difference in comparison.differences
    ]


def _row(counter: Counter, *, old: float, rise: float, has_wrapped: bool, is_saturated: bool) -> dict[str, Any]:
    return {
        "device": counter.device,
        "counter": counter.name,
        "class": counter.meaning.counter_class.value,
        "unit": counter.meaning.unit,
        "before": old,
        "after": float(counter.value),
        "rise": rise,
        "has_wrapped": int(has_wrapped),
        "is_saturated": int(is_saturated),
    }


def _is_at_its_end(counter: Counter) -> bool:
    return counter.meaning.saturates and counter.value == 2**counter.meaning.bits - 1
