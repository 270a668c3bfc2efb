"""A monitor's history as a run record."""

from collections.abc import Iterator
from typing import Any

from fabrictune.foundation.checks import run_check
from fabrictune.foundation.finding_rules.counters import SETTING_CHANGED
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.rdma_bench.monitor.monitoring import Monitor

KIND = "rdma monitor"
MAX_ROWS = 200_000
NO_ETHTOOL = "counters that only `ethtool -S` has, as pauses by priority, are not read: rdma counters compares them"


def make_monitor_record(monitor: Monitor, *, started: float) -> RunRecord:
    """Return a record of kind "rdma monitor"; `started` is `time.perf_counter` at the start."""
    cost, report = monitor.cost, monitor.report()
    changes = run_check(
        SETTING_CHANGED.id, "settings of the devices", monitor.changes, expected="no change", actual="no change"
    )
    return RunRecord(
        kind=KIND,
        run={
            "configuration": {"interval_s": monitor.interval_s},
            "outcome": {
                "num_counters": len(monitor.sources.counters),
                "num_samples": cost.num_samples,
                "num_missed": cost.num_missed,
                "mean_interval_s": cost.mean_interval_s,
                "worst_late_s": cost.worst_late_s,
                "elapsed_s": cost.elapsed_s,
                "processor_fraction": cost.processor_fraction,
                "history_bytes": monitor.history.num_bytes,
            },
            **describe_run(seed=0, started=started),
            "notes": [NO_ETHTOOL],
        },
        tables={"nic_seconds": to_columns("nic_seconds", list(_rows(monitor)))},
        findings=(*report.findings, *changes.findings),
        checks=(*report.checks, *changes.checks),
    )


def _rows(monitor: Monitor) -> Iterator[dict[str, Any]]:
    """Yield the last seconds of the counters that rose in any of them."""
    counters = monitor.sources.counters
    times_S, mean_SC, peak_SC = monitor.history.seconds.rows(MAX_ROWS // max(1, len(counters)))
    for second, time_s in enumerate(times_S):
        for number, counter in enumerate(counters):
            if peak_SC[:, number].any():
                yield {
                    "time_s": float(time_s - times_S[0]),
                    "device": counter.device,
                    "counter": counter.name,
                    "class": counter.meaning.counter_class.value,
                    "mean_rate": float(mean_SC[second, number]),
                    "peak_rate": float(peak_SC[second, number]),
                }
