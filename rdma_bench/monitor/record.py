"""A monitor's history as a run record."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.checks import run_check
from fabrictune.foundation.finding_rules.counters import SETTING_CHANGED
from fabrictune.foundation.records import RunRecord, describe_run
from fabrictune.foundation.run_tables.rows import to_columns
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.rdma_bench.counters.catalog import CounterClass
from fabrictune.rdma_bench.monitor.history import rises
from fabrictune.rdma_bench.monitor.monitoring import Monitor
from fabrictune.rdma_bench.monitor.phases import DIRECTIONS, Phase, device_rises, find_phases, link_rates

KIND = "rdma monitor"
MAX_ROWS = 200_000
MAX_PHASES = 10_000
NO_ETHTOOL = "counters that only `ethtool -S` has, as pauses by priority, are not read: rdma counters compares them"


def make_monitor_record(monitor: Monitor, *, started: float) -> RunRecord:
    """Return a record of kind "rdma monitor"; `started` is `time.perf_counter` at the start."""
    cost, report = monitor.cost, monitor.report()
    time_K, value_KC = monitor.history.samples.rows()
    rise_KC = rises(value_KC, monitor.factor_C)
    rates_bps = link_rates(monitor.settings())
    phases = find_phases(monitor.sources.counters, time_K, rise_KC, rates_bps)
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
            "notes": [NO_ETHTOOL, *_notes(monitor, rates_bps, phases)],
        },
        tables={
            "nic_devices": to_columns("nic_devices", list(_device_rows(monitor, rates_bps))),
            "nic_seconds": to_columns("nic_seconds", list(_rows(monitor))),
            "nic_samples": to_columns("nic_samples", list(_sample_rows(monitor, time_K, rise_KC))),
            "nic_phases": to_columns("nic_phases", [_phase_row(monitor, phase) for phase in phases[-MAX_PHASES:]]),
            "nic_alerts": to_columns("nic_alerts", list(_alert_rows(monitor))),
        },
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
                    "time_s": float(time_s - monitor.began_s),
                    "device": counter.device,
                    "counter": counter.name,
                    "class": counter.meaning.counter_class.value,
                    "mean_rate": float(mean_SC[second, number]),
                    "peak_rate": float(peak_SC[second, number]),
                }


def _device_rows(monitor: Monitor, rates_bps: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Yield what each device carried since the start, and the signals of congestion and loss that it counted."""
    counters = monitor.sources.counters
    rise_C = rises(np.array([monitor.first, monitor.last], np.int64), monitor.factor_C)[0]
    _, _, peak_SC = monitor.history.seconds.rows(MAX_ROWS)
    for device in dict.fromkeys(counter.device for counter in counters):
        places = {
            direction: [
                place
                for place, counter in enumerate(counters)
                if (counter.device, counter.meaning.counter_class) == (device, counter_class)
            ][:1]
            for direction, counter_class in DIRECTIONS.items()
        }
        peak_bps = 8 * max((float(peak_SC[:, own].max(initial=0.0)) for own in places.values()), default=0.0)
        rate_bps = rates_bps.get(device, UNKNOWN)
        yield {
            "device": device,
            "rate_bps": rate_bps,
            **{f"{direction}_bytes": int(rise_C[own].sum()) for direction, own in places.items()},
            "peak_fraction": peak_bps / rate_bps if rate_bps > 0 else float(UNKNOWN),
            **device_rises(counters, device, rise_C),
            "link_downs": sum(
                int(rise)
                for counter, rise in zip(counters, rise_C.tolist(), strict=True)
                if (counter.device, counter.meaning.counter_class) == (device, CounterClass.LINK_DOWN)
            ),
        }


def _sample_rows(monitor: Monitor, time_K: FloatArray, rise_KC: IntArray) -> Iterator[dict[str, Any]]:
    """Yield the newest rates between two samples, of the counters that rose in any of them."""
    rising = np.flatnonzero(rise_KC.any(axis=0)).tolist()
    for place in range(max(0, len(rise_KC) - MAX_ROWS // max(1, len(rising))), len(rise_KC)):
        step_s = max(float(time_K[place + 1] - time_K[place]), 1e-9)
        for number in rising:
            counter = monitor.sources.counters[number]
            yield {
                "time_s": float(time_K[place + 1] - monitor.began_s),
                "device": counter.device,
                "counter": counter.name,
                "class": counter.meaning.counter_class.value,
                "rate": float(rise_KC[place, number]) / step_s,
            }


def _phase_row(monitor: Monitor, phase: Phase) -> dict[str, Any]:
    return {
        "device": phase.device,
        "direction": phase.direction,
        "begin_s": phase.begin_s - monitor.began_s,
        "duration_s": phase.duration_s,
        "num_samples": phase.num_samples,
        "num_bytes": phase.num_bytes,
        "rate_bps": phase.rate_bps,
        "share_fraction": phase.share_fraction,
        **phase.signals,
    }


def _alert_rows(monitor: Monitor) -> Iterator[dict[str, Any]]:
    for time_s, finding in monitor.alerts:
        yield {
            "time_s": time_s - monitor.began_s,
            "rule": finding.id,
            "entity": finding.entity,
            "actual": finding.actual,
        }


def _notes(monitor: Monitor, rates_bps: dict[str, int], phases: list[Phase]) -> Iterator[str]:
    """Yield what is assumed or left out."""
    unknown = sorted({counter.device for counter in monitor.sources.counters} - set(rates_bps))
    if unknown:
        names = ", ".join(unknown[:8]) + (f" and {len(unknown) - 8} more" if len(unknown) > 8 else "")
        yield f"devices without a link rate, whose transfer phases are not known: {names}"
    if phases:
        num_samples = len(monitor.history.samples.rows()[0])
        yield (
            f"transfer phases are of the newest {num_samples:,} samples; their ends are known to one sample each, and "
            "their rates may be higher"
        )
    if len(phases) > MAX_PHASES:
        yield f"earlier transfer phases that are left out: {len(phases) - MAX_PHASES:,}"
