"""What measurements say of congestion: the rate lost with each doubling of hosts or of flows, and events a gigabyte.

The rate of each series is fitted by itself. Its logarithm falls along a line of the logarithm of the number of hosts,
or of queue pairs: the slope is the loss. Thresholds of marking, buffers and gains of a law are not determined by rates
and counts: many of them give the same.

Source: the form is that of SimAI's table of shares by number of hosts (aliyun/SimAI, nic_ratio.csv), which falls about
evenly with each doubling.

Shapes: S series.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.quantiles import NORMAL_90, student_t_90
from fabrictune.rdma_bench.counters.catalog import CounterClass
from fabrictune.rdma_bench.counters.differences import Comparison
from fabrictune.validate.fit.calibration import Known, Modelled, calibrate
from fabrictune.validate.fit.verdicts import Verdict, judge

NOT_DETERMINED = (
    "thresholds and probability of marking, buffer sizes, gains and timers of congestion control: not determined by "
    "rates and counts, which many of them give; `sim sweep` shows which do"
)
WITHIN = 0.05  # half of the interval of a loss, as a share of the rate, that is well determined
BYTES_PER_GB = 10**9
_SPREAD_OF = {"hosts": "num_hosts", "queue pairs": "num_queue_pairs"}
_EVENTS = (
    CounterClass.ECN_MARKED,
    CounterClass.CNP_SENT,
    CounterClass.CNP_HANDLED,
    CounterClass.TIMEOUT_RETRANSMISSION,
    CounterClass.ADAPTIVE_RETRANSMISSION,
    CounterClass.SEQUENCE_ERROR,
    CounterClass.DISCARD,
    CounterClass.PAUSE_RECEIVED,
    CounterClass.TIME_PAUSED,
)


@dataclass(frozen=True, kw_only=True)
class SeriesRate:
    """Rate of one series, fitted by itself."""

    label: str
    group: tuple[str, ...]  # of what it is compared within
    count: int  # of hosts, or of queue pairs
    rate_bps: float
    margin_fraction: float


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Share of the rate that each doubling of hosts or queue pairs takes."""

    label: str
    of: str  # hosts, or queue pairs
    counts: tuple[int, ...]
    loss_fraction: float
    low_fraction: float
    high_fraction: float
    verdict: Verdict
    next_step: str = ""


@dataclass(frozen=True, kw_only=True)
class CounterRate:
    """Rise of a class of counters, summed over devices; of each gigabyte sent where bytes are counted, else -1."""

    counter_class: str
    amount: int
    per_gb: float
    is_saturated: bool = False


def fit_losses(modelled: Sequence[Modelled], base: Mapping[str, Known]) -> list[Loss]:
    """Return the loss of every group of series that differ in their number of hosts, or of queue pairs, alone."""
    losses = []
    for of in _SPREAD_OF:
        groups = defaultdict[tuple[str, ...], list[SeriesRate]](list)
        for rate in _rates(modelled, base, of):
            groups[rate.group].append(rate)
        losses += [_loss(group, rates, of) for group, rates in groups.items() if len({one.count for one in rates}) > 1]
    return losses


def counter_rates(comparison: Comparison) -> list[CounterRate]:
    """Return what rose of the classes that tell of congestion, and 0 for what is counted and did not."""
    by_device: dict[CounterClass, dict[str, int]] = defaultdict(dict)
    saturated: set[CounterClass] = set()
    for difference in comparison.differences:
        of_class = by_device[difference.counter_class]
        # Of one class counters overlap: those of single priorities are part of the whole port's.
        of_class[difference.after.device] = max(of_class.get(difference.after.device, 0), difference.amount or 0)
        if difference.is_saturated:
            saturated.add(difference.counter_class)
    sent = sum(by_device[CounterClass.BYTES_SENT].values())
    return [
        CounterRate(
            counter_class=one.value,
            amount=sum(by_device[one].values()),
            per_gb=sum(by_device[one].values()) * BYTES_PER_GB / sent if sent else -1.0,
            is_saturated=one in saturated,
        )
        for one in _EVENTS
        if one in by_device
    ]


def _rates(modelled: Sequence[Modelled], base: Mapping[str, Known], of: str) -> Iterator[SeriesRate]:
    """Yield the rates of the series over the network of which their own sizes determine one."""
    for one in modelled:
        key = one.series.key
        if (key.kind != "collective" or key.num_hosts < 2) if of == "hosts" else key.kind != "bandwidth":
            continue
        try:
            judged = judge(calibrate([one], base))
        except InputError:  # of one size, or of times that fall: the fit of all says so
            continue
        for each in judged:
            if each.estimate.name.endswith(".rate") and each.verdict != Verdict.NOT:
                name, local = _SPREAD_OF[of], str(key.num_ranks // key.num_hosts)
                yield SeriesRate(
                    label=key.label,
                    group=(key.operation, local if of == "hosts" else key.device),
                    count=getattr(key, name),
                    rate_bps=8e9 / each.estimate.value,
                    margin_fraction=each.estimate.relative_margin,
                )


def _loss(group: tuple[str, ...], rates: Sequence[SeriesRate], of: str) -> Loss:
    """Return the slope of log rate over log2 count, weighted by the margins of the rates.

    Its interval is at least that of the margins, and that of the rates' distances from the line where there are three
    counts or more.
    """
    doublings_S = np.log2([one.count for one in rates])
    log_S = np.log([one.rate_bps for one in rates])
    deviation_S = np.maximum([one.margin_fraction / NORMAL_90 for one in rates], 1e-3)
    weight_S = 1 / deviation_S**2
    centre = float((weight_S * doublings_S).sum() / weight_S.sum())
    spread = float((weight_S * (doublings_S - centre) ** 2).sum())
    slope = float((weight_S * (doublings_S - centre) * log_S).sum() / spread)
    margin = NORMAL_90 / math.sqrt(spread)
    num_free = len(rates) - 2
    if num_free > 0:
        level = float((weight_S * log_S).sum() / weight_S.sum())
        left_S = log_S - level - slope * (doublings_S - centre)
        chi = float((weight_S * left_S**2).sum()) / num_free
        margin = max(margin, student_t_90(num_free) * math.sqrt(chi / spread))
    low, high = (1 - math.exp(slope + side * margin) for side in (1, -1))
    is_well = (high - low) / 2 <= WITHIN and num_free > 0
    counts = tuple(sorted({one.count for one in rates}))
    return Loss(
        label=", ".join(part for part in group[:1]),
        of=of,
        counts=counts,
        loss_fraction=1 - math.exp(slope),
        low_fraction=low,
        high_fraction=high,
        verdict=Verdict.WELL if is_well else Verdict.WEAK,
        next_step="" if is_well else f"add runs on {counts[-1] * 2} and {counts[-1] * 4} {of}",
    )
