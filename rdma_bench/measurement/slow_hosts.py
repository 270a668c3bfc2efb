"""Hosts of a matrix that are slower than the others, found robustly.

A host's figure is the median over its peers, as a sender and as a receiver, so that one slow peer does not count
against it. A host is slow if its figure is an outlier among those of all hosts (`foundation/outliers.py`). A matrix of
few hosts cannot tell whose fault a slow pair is.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.rdma import SLOW_HOST
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.foundation.outliers import Outlier, find_outliers
from fabrictune.foundation.units import PS_PER_NS, format_duration, format_fraction, format_rate
from fabrictune.rdma_bench.measurement.transfers import MeasuredTransfer

_ROLES = ("sends", "receives")
Case = tuple[int, int, int]  # queue pairs, bytes, directions
Figures = Mapping[tuple[Case, str], dict[str, float]]  # of each host, by case and role


@dataclass(frozen=True, kw_only=True)
class _SlowHost:
    """A host that is slow in one role and case."""

    outlier: Outlier
    role: str
    case: Case


def check_hosts(
    transfers: Sequence[MeasuredTransfer], *, is_latency: bool, rules: RuleSettings = CATALOG_SETTINGS
) -> CheckReport:
    """Return the check of a matrix for hosts that are slower than the others."""
    num_hosts = len({transfer.sender for transfer in transfers} | {transfer.receiver for transfer in transfers})
    deviation, spread, least = (rules.threshold(SLOW_HOST, name) for name in ("deviation", "spread", "least_hosts"))
    subject = f"{num_hosts} hosts as senders and as receivers"
    if num_hosts < least:
        return skip_check(SLOW_HOST.id, subject, f"it takes {least:g} hosts to tell whose fault a slow pair is")
    worst: dict[tuple[str, str], _SlowHost] = {}
    figures = _figures(transfers, is_latency=is_latency, least=least)
    for (case, role), own_of_host in figures.items():
        for outlier in find_outliers(own_of_host, deviation=deviation, spread=spread, is_less_better=is_latency):
            key = outlier.name, role
            if key not in worst or outlier.deviation_fraction > worst[key].outlier.deviation_fraction:
                worst[key] = _SlowHost(outlier=outlier, role=role, case=case)
    return run_check(
        SLOW_HOST.id,
        subject,
        (_finding(host, num_hosts, is_latency=is_latency) for host in worst.values()),
        expected=f"within {format_fraction(deviation)} of their median",
        actual="all are",
    )


def _figures(transfers: Sequence[MeasuredTransfer], *, is_latency: bool, least: float) -> Figures:
    """Return the figure of each host by case and role; a case that has fewer hosts than the rule needs is left out."""
    values: dict[tuple[Case, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for transfer in transfers:
        value = transfer.median_ns if is_latency else transfer.bandwidth_bps
        if value <= 0:  # not measured
            continue
        case = transfer.num_queue_pairs, transfer.size_bytes, transfer.num_directions
        for role, host in zip(_ROLES, (transfer.sender, transfer.receiver), strict=True):
            values[case, role][host].append(value)
    return {
        key: {host: median(own) for host, own in of_host.items()}
        for key, of_host in values.items()
        if len(of_host) >= least
    }


def _finding(host: _SlowHost, num_hosts: int, *, is_latency: bool) -> Finding:
    def show(value: float) -> str:
        return format_duration(value * PS_PER_NS) if is_latency else format_rate(value)

    outlier, (queue_pairs, size_bytes, _) = host.outlier, host.case
    own, far = show(outlier.own), f"{outlier.deviation_fraction:.0%} {'more' if is_latency else 'less'}"
    return SLOW_HOST.finding(
        entity=outlier.name,
        actual=f"{host.role} at {own} in the median, {far} ({outlier.distance})",
        expected=f"{show(outlier.usual)}, the median of {num_hosts} hosts",
        confidence=Confidence.MEASURED,
        evidence=(f"table rdma_transfers: {queue_pairs} queue pairs, {size_bytes} B",),
    )
