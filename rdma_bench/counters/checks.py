"""Checks of what rose between two snapshots, by class of counter, whatever the driver calls it."""

from collections.abc import Iterator, Mapping, Sequence

from fabrictune.foundation.checks import CheckReport, join_reports, run_check, skip_check
from fabrictune.foundation.finding_rules import counters as rules
from fabrictune.foundation.finding_rules.schema import Rule
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.findings import Severity
from fabrictune.foundation.records import Confidence, Finding
from fabrictune.foundation.units import PS_PER_US, format_duration, format_fraction, format_number
from fabrictune.rdma_bench.counters.catalog import CounterClass
from fabrictune.rdma_bench.counters.differences import Comparison, Difference

NO_RISE = "no rise"
ONE_SNAPSHOT = "one snapshot: its totals count since an unknown time, and nothing is judged; give an earlier one first"
BYTES_PER_GB = 10**9

# Rules that have a finding for a device as soon as a counter of one of the classes rose.
_RISES: tuple[tuple[Rule, tuple[CounterClass, ...]], ...] = (
    (rules.RETRIES_EXCEEDED, (CounterClass.RETRY_EXCEEDED,)),
    (rules.LINK_DOWNS, (CounterClass.LINK_DOWN,)),
    (rules.PAUSE_STORM, (CounterClass.PAUSE_STORM,)),
    (rules.TIMEOUT_RETRANSMISSIONS, (CounterClass.TIMEOUT_RETRANSMISSION,)),
    (rules.SEQUENCE_ERRORS, (CounterClass.SEQUENCE_ERROR,)),
    (rules.RECEIVER_NOT_READY, (CounterClass.RECEIVER_NOT_READY, CounterClass.OUT_OF_BUFFER)),
    (rules.COMPLETION_ERRORS, (CounterClass.COMPLETION_ERROR,)),
    (rules.DISCARDS, (CounterClass.DISCARD,)),
    (rules.LINK_ERRORS, (CounterClass.PHYSICAL_ERROR,)),
    (rules.CNP_IGNORED, (CounterClass.CNP_IGNORED,)),
)
_PAUSES = (
    CounterClass.TIME_PAUSED,
    CounterClass.TIME_PAUSING,
    CounterClass.PAUSE_RECEIVED,
    CounterClass.PAUSE_SENT,
)

ByClass = Mapping[CounterClass, Sequence[Difference]]


def check_counters(
    comparison: Comparison | None, *, interval_ps: int = 0, settings: RuleSettings = CATALOG_SETTINGS
) -> CheckReport:
    """Return what the rules of counters find, nothing for one snapshot alone; the interval is 0 where it is not known.

    A rule for which no counter of its class was read has not run.
    """
    if comparison is None:
        return CheckReport()
    devices = _by_device(comparison.differences)
    reports = [
        _check(rule, classes, devices, [_rise(rule, classes, device, of) for device, of in devices.items()])
        for rule, classes in _RISES
    ]
    share = settings.threshold(rules.PAUSES, "share")
    paused = [_pauses(device, of, interval_ps, share) for device, of in devices.items()]
    not_sent = [_cnp_not_sent(device, of) for device, of in devices.items()]
    reset = [_reset(device) for device in comparison.reset_devices]
    return join_reports(
        run_check(rules.RESET.id, f"{len(devices)} devices", reset, expected="no counter that fell"),
        *reports,
        _check(rules.PAUSES, _PAUSES, devices, paused),
        _check(rules.CNP_NOT_SENT, (CounterClass.ECN_MARKED,), devices, not_sent),
    )


def _by_device(differences: Sequence[Difference]) -> dict[str, dict[CounterClass, list[Difference]]]:
    devices: dict[str, dict[CounterClass, list[Difference]]] = {}
    for difference in differences:
        classes = devices.setdefault(difference.after.device, {})
        classes.setdefault(difference.counter_class, []).append(difference)
    return devices


def _check(
    rule: Rule, classes: Sequence[CounterClass], devices: Mapping[str, ByClass], found: Sequence[Finding | None]
) -> CheckReport:
    """Return a check over the counters whose rise is known; without any it has not run."""
    known = [
        difference
        for of in devices.values()
        for counter_class in classes
        for difference in of.get(counter_class, ())
        if difference.amount is not None
    ]
    if not known:
        what = " or ".join(counter_class.value for counter_class in classes)
        return skip_check(rule.id, f"{len(devices)} devices", f"no counter of {what}, or all were reset")
    return run_check(rule.id, f"{len(known)} counters", found, expected=NO_RISE, actual=NO_RISE)


def _risen(of: ByClass, classes: Sequence[CounterClass]) -> list[Difference]:
    return [difference for each in classes for difference in of.get(each, ()) if difference.amount]


def _rise(rule: Rule, classes: Sequence[CounterClass], device: str, of: ByClass) -> Finding | None:
    """Return the finding of a device on which counters of the classes rose."""
    risen = _risen(of, classes)
    if not risen:
        return None
    return rule.finding(
        entity=device or "the NIC",
        expected=NO_RISE,
        actual=_shown(risen),
        confidence=Confidence.MEASURED,
        evidence=_evidence(risen, of),
    )


def _shown(risen: Sequence[Difference]) -> str:
    """Return `131 retransmissions after a timeout`, by class."""
    amounts: dict[str, int] = {}
    for difference in risen:
        # Of one class counters overlap: those of single priorities are part of the whole port's.
        name = difference.counter_class.value
        amounts[name] = max(amounts.get(name, 0), difference.amount or 0)
    return ", ".join(f"{name}: {_amount(name, amount)}" for name, amount in amounts.items())


def _amount(counter_class: str, amount: int) -> str:
    is_time = counter_class in (CounterClass.TIME_PAUSED, CounterClass.TIME_PAUSING)
    return format_duration(amount * PS_PER_US) if is_time else f"{amount:,}"


def _evidence(risen: Sequence[Difference], of: ByClass) -> Iterator[str]:
    sent = max((each.amount or 0 for each in of.get(CounterClass.BYTES_SENT, ())), default=0)
    for difference in risen:
        old, new, amount = difference.before, difference.after, difference.amount or 0
        how = " (wrapped)" if difference.has_wrapped else " (at its largest value)" if difference.is_saturated else ""
        per_gb = f", {format_number(amount * BYTES_PER_GB / sent)} per GB sent" if sent else ""
        yield f"{new.name}: {old.value:,} -> {new.value:,}{how}{per_gb} ({new.where})"


def _pauses(device: str, of: ByClass, interval_ps: int, threshold: float) -> Finding | None:
    risen = _risen(of, _PAUSES)
    if not risen:
        return None
    times = [each.amount or 0 for each in _risen(of, (CounterClass.TIME_PAUSED, CounterClass.TIME_PAUSING))]
    share = max(times, default=0) * PS_PER_US / interval_ps if interval_ps else 0.0
    shown = f", {format_fraction(share)} of the interval" if share else ""
    return rules.PAUSES.finding(
        entity=device or "the NIC",
        expected=NO_RISE,
        actual=_shown(risen) + shown,
        confidence=Confidence.MEASURED,
        evidence=_evidence(risen, of),
        severity=Severity.WARNING if share > threshold else Severity.INFO,
    )


def _cnp_not_sent(device: str, of: ByClass) -> Finding | None:
    """Return the finding of a device that received marks and sent no CNP, where it counts CNPs at all."""
    marked = _risen(of, (CounterClass.ECN_MARKED,))
    sent = [each.amount for each in of.get(CounterClass.CNP_SENT, ())]
    if not marked or not sent or any(amount != 0 for amount in sent):
        return None
    return rules.CNP_NOT_SENT.finding(
        entity=device or "the NIC",
        expected="a CNP for marked packets",
        actual=f"{_shown(marked)}, CNPs sent: 0",
        confidence=Confidence.MEASURED,
        evidence=_evidence(marked, of),
    )


def _reset(device: str) -> Finding:
    return rules.RESET.finding(
        entity=device or "the NIC",
        expected="no counter that fell",
        actual="counters fell; nothing is known of their rise",
        confidence=Confidence.MEASURED,
    )
