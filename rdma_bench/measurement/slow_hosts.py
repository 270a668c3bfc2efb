"""Hosts of a matrix that are slower than the others, found robustly.

A host's figure is the median over its peers, as a sender and as a receiver, so that one slow peer does not count
against it. A host is slow if its figure lies beyond the median of all hosts by more than a share of that median, and by
more than several standard deviations, which the median absolute deviation estimates: neither is moved by the slow host
itself. A matrix of few hosts cannot tell whose fault a slow pair is.

Source: Iglewicz and Hoaglin, "How to Detect and Handle Outliers", ASQC (1993), modified z-score.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from fabrictune.foundation.checks import CheckReport, run_check, skip_check
from fabrictune.foundation.finding_rules.rdma import SLOW_HOST
from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS, RuleSettings
from fabrictune.foundation.findings import Confidence, Finding
from fabrictune.foundation.units import PS_PER_NS, format_duration, format_fraction, format_rate
from fabrictune.rdma_bench.measurement.transfers import MeasuredTransfer

NORMAL_MAD = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
_ROLES = ("sends", "receives")
Case = tuple[int, int, int]  # queue pairs, bytes, directions
Figures = Mapping[tuple[Case, str], dict[str, float]]  # of each host, by case and role


@dataclass(frozen=True, kw_only=True)
class _Outlier:
    """A host that is slow in one role and case."""

    host: str
    role: str
    own: float
    usual: float
    deviations: float  # from the usual figure, in standard deviations; infinite where the hosts do not differ
    case: Case

    @property
    def deviation_fraction(self) -> float:
        return abs(self.own - self.usual) / self.usual


def check_hosts(
    transfers: Sequence[MeasuredTransfer], *, is_latency: bool, rules: RuleSettings = CATALOG_SETTINGS
) -> CheckReport:
    """Return the check of a matrix for hosts that are slower than the others."""
    num_hosts = len({transfer.sender for transfer in transfers} | {transfer.receiver for transfer in transfers})
    deviation, spread, least = (rules.threshold(SLOW_HOST, name) for name in ("deviation", "spread", "least_hosts"))
    subject = f"{num_hosts} hosts as senders and as receivers"
    if num_hosts < least:
        return skip_check(SLOW_HOST.id, subject, f"it takes {least:g} hosts to tell whose fault a slow pair is")
    worst: dict[tuple[str, str], _Outlier] = {}
    figures = _figures(transfers, is_latency=is_latency, least=least)
    for outlier in _outliers(figures, deviation, spread, is_latency=is_latency):
        key = outlier.host, outlier.role
        if key not in worst or outlier.deviation_fraction > worst[key].deviation_fraction:
            worst[key] = outlier
    return run_check(
        SLOW_HOST.id,
        subject,
        (_finding(outlier, num_hosts, is_latency=is_latency) for outlier in worst.values()),
        expected=f"within {format_fraction(deviation)} of their median",
        actual="all are",
    )


def _outliers(figures: Figures, deviation: float, spread: float, *, is_latency: bool) -> Iterator[_Outlier]:
    for (case, role), own_of_host in figures.items():
        usual = median(own_of_host.values())
        sigma = NORMAL_MAD * median(abs(own - usual) for own in own_of_host.values())
        for host, own in own_of_host.items():
            slower = (own - usual) if is_latency else (usual - own)
            if slower > deviation * usual and slower > spread * sigma:
                deviations = slower / sigma if sigma else float("inf")
                yield _Outlier(host=host, role=role, own=own, usual=usual, deviations=deviations, case=case)


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


def _finding(outlier: _Outlier, num_hosts: int, *, is_latency: bool) -> Finding:
    def show(value: float) -> str:
        return format_duration(value * PS_PER_NS) if is_latency else format_rate(value)

    queue_pairs, size_bytes, _ = outlier.case
    far = f"{outlier.deviations:.1f} standard deviations" if outlier.deviations < 1e6 else "the others do not differ"
    more = "more" if is_latency else "less"
    return SLOW_HOST.finding(
        entity=outlier.host,
        actual=f"{outlier.role} at {show(outlier.own)} in the median, {outlier.deviation_fraction:.0%} {more} ({far})",
        expected=f"{show(outlier.usual)}, the median of {num_hosts} hosts",
        confidence=Confidence.MEASURED,
        evidence=(f"table rdma_transfers: {queue_pairs} queue pairs, {size_bytes} B",),
    )
