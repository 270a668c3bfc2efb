"""Sampling: all counters at a fixed interval, settings and alerts once a second, and what the sampling itself costs.

A sample that would be late by an interval or more is missed, and counted: no burst of samples makes up for it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fabrictune.foundation.checks import CheckReport
from fabrictune.foundation.finding_rules.counters import SETTING_CHANGED
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.foundation.units import PS_PER_S
from fabrictune.rdma_bench.counters.checks import check_counters
from fabrictune.rdma_bench.counters.differences import compare_snapshots
from fabrictune.rdma_bench.monitor.history import History, rates
from fabrictune.rdma_bench.monitor.sources import NicSources

MAX_CHANGES, MAX_ALERTS = 1000, 1000


@dataclass(kw_only=True)
class SamplingCost:
    """How well the interval was kept, and what the sampling took."""

    num_samples: int = 0
    num_missed: int = 0
    worst_late_s: float = 0.0
    elapsed_s: float = 0.0
    processor_s: float = 0.0

    @property
    def mean_interval_s(self) -> float:
        """The interval that was achieved."""
        return self.elapsed_s / max(1, self.num_samples)

    @property
    def processor_fraction(self) -> float:
        """Time of one processor that sampling took."""
        return self.processor_s / max(1e-9, self.elapsed_s)


@dataclass(kw_only=True)
class Monitor:
    """A monitor of this host; `run` may be stopped from another thread by `stop`."""

    sources: NicSources
    interval_s: float
    rules: RuleSettings = CATALOG_SETTINGS
    on_alert: Callable[[Finding], None] = lambda finding: None
    history: History = field(init=False)
    cost: SamplingCost = field(default_factory=SamplingCost)
    changes: list[Finding] = field(default_factory=list)  # of settings
    alerts: list[tuple[float, Finding]] = field(default_factory=list)  # with the time of the monotonic clock
    began_s: float = field(init=False)  # by it
    is_stopped: bool = False

    def __post_init__(self) -> None:
        self.history = History(len(self.sources.counters))
        self.first = self.last = self.sources.read()
        self.began_s = time.monotonic()
        self.history.samples.extend(np.array([self.began_s]), np.array([self.first], np.int64))
        self.factor_C = np.array([counter.meaning.factor for counter in self.sources.counters], np.int64)
        self._settings = self.sources.settings()
        self._alerted: set[tuple[str, str]] = set()

    def run(self, duration_s: float) -> None:
        """Sample for a time; each second is added to the history, and looked at for alerts."""
        began_s, began_thread_s = time.monotonic(), time.thread_time()
        samples = [(began_s, self.last)]
        due_s = began_s
        while not self.is_stopped and due_s - began_s < duration_s:
            due_s += self.interval_s
            time.sleep(max(0.0, due_s - time.monotonic()))
            now_s = time.monotonic()
            samples.append((now_s, self.sources.read()))
            self.cost.num_samples += 1
            self.cost.worst_late_s = max(self.cost.worst_late_s, now_s - due_s)
            missed = int((now_s - due_s) / self.interval_s)
            self.cost.num_missed += missed
            due_s += missed * self.interval_s
            if now_s - samples[0][0] >= 1.0:
                self._end_second(samples)
                samples = samples[-1:]
            self.cost.elapsed_s = now_s - began_s
            self.cost.processor_s = time.thread_time() - began_thread_s
        if len(samples) > 1:
            self._end_second(samples)

    def settings(self) -> dict[tuple[str, str], str]:
        """Return the settings of the last second, by device and name."""
        return dict(self._settings)

    def stop(self) -> None:
        """Let `run` end after the next sample."""
        self.is_stopped = True

    def report(self) -> CheckReport:
        """Return the checks of all that rose since the start."""
        interval_ps = int(self.cost.elapsed_s * PS_PER_S)
        comparison = compare_snapshots(self.sources.snapshot(self.first), self.sources.snapshot(self.last))
        return check_counters(comparison, interval_ps=interval_ps, settings=self.rules)

    def _end_second(self, samples: list[tuple[float, list[int]]]) -> None:
        times = [time_s for time_s, _ in samples]
        value_KC = np.array([values for _, values in samples], np.int64)
        mean_C, peak_C = rates(times, value_KC, self.factor_C)
        self.history.add_second(times[-1], mean_C, peak_C)
        self.history.samples.extend(np.array(times[1:]), value_KC[1:])
        before, self.last = samples[0][1], samples[-1][1]
        if before != self.last:
            comparison = compare_snapshots(self.sources.snapshot(before), self.sources.snapshot(self.last))
            interval_ps = int((times[-1] - times[0]) * PS_PER_S)
            self._alert(check_counters(comparison, interval_ps=interval_ps, settings=self.rules).findings)
        self._look_at_settings()

    def _look_at_settings(self) -> None:
        settings = self.sources.settings()
        for (device, name), value in settings.items():
            earlier = self._settings.get((device, name), value)
            if value != earlier and len(self.changes) < MAX_CHANGES:
                change = SETTING_CHANGED.finding(
                    entity=device,
                    actual=f"{name}: {value or 'none'}",
                    expected=f"{earlier or 'none'}, as before",
                    confidence=Confidence.MEASURED,
                )
                self.changes.append(change)
                self._tell(change)
        self._settings = settings

    def _alert(self, findings: tuple[Finding, ...]) -> None:
        """Report each finding of a device once."""
        for finding in findings:
            if (finding.id, finding.entity) not in self._alerted:
                self._alerted.add((finding.id, finding.entity))
                self._tell(finding)

    def _tell(self, finding: Finding) -> None:
        if len(self.alerts) < MAX_ALERTS:
            self.alerts.append((time.monotonic(), finding))
        self.on_alert(finding)
