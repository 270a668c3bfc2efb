"""A validation against an earlier one of the same cluster: measurements that changed more than the others did.

Every measurement that both have is a ratio, later to earlier, so that more is worse for times and less for rates. The
median ratio is what all changed by; a measurement that is worse than it by a share and by several standard deviations
(`foundation/outliers.py`) has drifted by itself. Only flows alone, totals and collectives are compared: single flows in
concurrent rounds differ by the hash from run to run.
"""

from collections.abc import Iterator, Mapping

from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.cluster import DRIFTED
from fabrictune.foundation.finding_rules.settings import RuleSettings
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.foundation.outliers import find_outliers
from fabrictune.foundation.units import PS_PER_S, format_duration, format_rate
from fabrictune.validate.cluster.results import Measurement, StageResult

ALONE, TOTAL = "alone", "all flows"
TIMES = ("collectives",)
LEAST = 5  # measurements, of which a median says something

Results = Mapping[str, StageResult]
Key = tuple[str, str, str]  # stage, part, subject


def check_baseline(results: Results, baseline: Results, source: str, rules: RuleSettings) -> CheckReport:
    """Return the check of measurements against a baseline's."""
    now, then = _comparable(results), _comparable(baseline)
    ratios = {key: _worsening(now[key], then[key]) for key in now if key in then}
    subject = f"{len(ratios):,} measurements that {source} has too"
    if len(ratios) < LEAST:
        return skip_check(DRIFTED.id, subject, f"it takes {LEAST} measurements that both validations have")
    deviation, spread = (rules.threshold(DRIFTED, name) for name in ("deviation", "spread"))
    names = {"\n".join(key): ratio for key, ratio in ratios.items()}
    drifted = find_outliers(names, deviation=deviation, spread=spread, is_less_better=True)
    findings = (
        _finding(key, now[key], then[key], outlier.usual)
        for outlier in drifted
        for key in ratios
        if "\n".join(key) == outlier.name
    )
    return run_check(DRIFTED.id, subject, findings, expected="none changed for the worse more than the others")


def _comparable(results: Results) -> dict[Key, Measurement]:
    return {(stage, one.part, one.subject): one for stage, result in results.items() for one in _compared(result)}


def _compared(result: StageResult) -> Iterator[Measurement]:
    for one in result.measurements:
        is_flow = result.name == "matrix" and (one.part == ALONE or one.subject == TOTAL)
        if one.measured > 0 and (is_flow or result.name in TIMES):
            yield one


def _worsening(now: Measurement, then: Measurement) -> float:
    """Return how many times worse it is."""
    return now.measured / then.measured if now.unit == "s" else then.measured / now.measured


def _finding(key: Key, now: Measurement, then: Measurement, usual: float) -> Finding:
    show = _time if now.unit == "s" else format_rate
    return DRIFTED.finding(
        entity=f"{key[2]} ({key[1]})",
        actual=f"{show(now.measured)}, {_worsening(now, then):.2f} times worse",
        expected=f"{show(then.measured)}, as before; the median change is {usual:.2f} times",
        confidence=Confidence.MEASURED,
        evidence=("table cluster_measurements",),
    )


def _time(seconds: float) -> str:
    return format_duration(seconds * PS_PER_S)
