"""The table of metrics: name, unit, label, meaning and formula of each number that a simulated run is judged by.

A metric whose tables or columns a record lacks is nan, never zero. What a transfer that never finished took is
infinite, and so is what depends on it.

Source: draft-calabria-bmwg-ai-fabric-training-bench-04 for the names JCT, FCT, BusBW and JFI and for what is counted.
Left out: convergence time and out-of-order rate, which need rates and arrivals over time.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.metrics import formulas, replay, transfers
from fabrictune.foundation.metrics.units import QUANTITIES, Unit, format_metric
from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.foundation.settings.quantities import Quantity

TIMES = ("transfers.qp", "transfers.bytes", "transfers.ready_ps", "transfers.finish_ps")
SENT = "transfers.packets_sent"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number of a simulated run, or of the transfers of one part of a mixture."""

    label: str  # what people see, on a terminal and on a page
    unit: Unit
    meaning: str
    columns: tuple[str, ...]  # "table.column" of the record that the formula needs
    formula: Callable[[RunRecord], float]
    is_of_transfers: bool = True  # or of replayed steps, so that a part of a mixture has one, too
    is_better_more: bool = False
    follows_makespan: bool = False  # of the transfers' times it depends on the makespan alone

    @property
    def quantity(self) -> Quantity:
        """The quantity of its values, as written in a file."""
        return QUANTITIES[self.unit]

    def measure(self, record: RunRecord) -> float:
        """Return its value in a record: nan where it is unknown, infinite where a time never ended."""
        names = (name.split(".") for name in self.columns)
        is_known = all(column in record.tables.get(table, {}) for table, column in names)
        return float(self.formula(record)) if is_known else math.nan

    def interval(self, record: RunRecord) -> tuple[float, float] | None:
        """Return its least and largest value in a record of estimates; None where their distance is unknown."""
        if not self.follows_makespan or "transfers" not in record.tables:
            return None
        if record.tables["transfers"].keys() >= set(transfers.FINISH_BOUNDS):
            bounds = [transfers.with_finish(record, column) for column in transfers.FINISH_BOUNDS]
        else:
            bounds = [transfers.with_makespan(record, factor) for factor in transfers.makespan_factors(record)]
        if not bounds:
            return None
        low, high = sorted(map(self.measure, bounds))
        return low, high

    def show(self, value: float) -> str:
        """Return a value for people."""
        return format_metric(value, self.unit)


def _of_flows(
    values: Callable[[Columns], FloatArray], reduce: Callable[[FloatArray], float]
) -> Callable[[RunRecord], float]:
    def formula(record: RunRecord) -> float:
        value_F = values(transfers.select_flows(record.tables["transfers"]))
        return reduce(value_F) if len(value_F) else math.nan

    return formula


def _completion(label: str, meaning: str, reduce: Callable[[FloatArray], float]) -> Metric:
    formula = _of_flows(transfers.completion_times_ps, reduce)
    return Metric(label=label, unit="ps", meaning=meaning, columns=TIMES, formula=formula)


def _completion_percentile(fraction: float) -> Metric:
    label, meaning = f"p{100 * fraction:g} FCT", f"completion time that {100 * fraction:g} % of flows do not exceed"
    return _completion(label, meaning, _percentile(fraction))


def _slowdown_percentile(fraction: float) -> Metric:
    return Metric(
        label=f"p{100 * fraction:g} slowdown",
        unit="ratio",
        meaning=f"FCT over the flow's time alone on the fabric: {100 * fraction:g} % of flows do not exceed it",
        columns=(*TIMES, "transfers.ideal_ps"),
        formula=_of_flows(transfers.slowdowns, _percentile(fraction)),
    )


def _percentile(fraction: float) -> Callable[[FloatArray], float]:
    return lambda value_F: formulas.percentile(value_F, fraction)


def _total(column: str) -> Callable[[RunRecord], float]:
    table, name = column.split(".")
    return lambda record: float(record.tables[table][name].sum())


def _sum(label: str, unit: Unit, column: str, meaning: str) -> Metric:
    return Metric(
        label=label,
        unit=unit,
        meaning=meaning,
        columns=(column,),
        formula=_total(column),
        is_of_transfers=column.startswith("transfers."),
    )


def _share_of_sent(label: str, unit: Unit, column: str, meaning: str) -> Metric:
    """Return a count of packets over the data packets sent."""
    count, sent = _total(column), _total(SENT)
    scale = 1e6 if unit == "ppm" else 1.0

    def formula(record: RunRecord) -> float:
        num_sent = sent(record)
        return scale * count(record) / num_sent if num_sent else math.nan

    return Metric(
        label=label,
        unit=unit,
        meaning=meaning,
        columns=(column, SENT),
        formula=formula,
        is_of_transfers=column.startswith("transfers."),
    )


def _makespan_ratio(record: RunRecord) -> float:
    ideal_ps = _positive(record.run.get("ideal_ps"))
    return transfers.makespan_ps(record.tables["transfers"]) / ideal_ps


def _deepest_queue(queue_bytes_P: IntArray) -> float:
    """Return the largest of the ports' deepest queues; nan where one is not known."""
    return math.nan if (queue_bytes_P < 0).any() else float(queue_bytes_P.max(initial=0))


def _bus_bandwidth_bps(record: RunRecord) -> float:
    collective, time_ps = record.run.get("collective"), transfers.makespan_ps(record.tables["transfers"])
    if not isinstance(collective, Mapping) or not time_ps > 0:
        return math.nan
    num_bytes, factor = (_positive(collective.get(name)) for name in ("bytes", "busbw_factor"))
    return formulas.bus_bandwidth_bps(num_bytes, factor, time_ps)


def _positive(value: Any) -> float:
    """Return a positive finite number as it is, anything else as nan."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < math.inf else math.nan


METRICS: Mapping[str, Metric] = {
    "makespan": Metric(
        label="JCT",
        unit="ps",
        meaning="job completion time: from the first transfer ready to the last one's last byte",
        columns=TIMES,
        formula=lambda record: transfers.makespan_ps(record.tables["transfers"]),
        follows_makespan=True,
    ),
    "makespan_ratio": Metric(
        label="JCT ratio",
        unit="ratio",
        meaning="JCT over the job's time on an ideal fabric",
        columns=TIMES,
        formula=_makespan_ratio,
        follows_makespan=True,
        is_of_transfers=False,
    ),
    "bus_bandwidth": Metric(
        label="BusBW",
        unit="bps",
        meaning="size of the collective times its bus factor, over the JCT, as nccl-tests defines it",
        columns=TIMES,
        formula=_bus_bandwidth_bps,
        follows_makespan=True,
        is_of_transfers=False,
        is_better_more=True,
    ),
    "throughput.total": Metric(
        label="Aggregate throughput",
        unit="bps",
        meaning="payload of all flows over the JCT",
        columns=TIMES,
        formula=lambda record: transfers.aggregate_throughput_bps(record.tables["transfers"]),
        follows_makespan=True,
        is_better_more=True,
    ),
    "completion_time.max": _completion("Max FCT", "completion time of the slowest flow", lambda ps_F: ps_F.max()),
    "completion_time.p99.9": _completion_percentile(0.999),
    "completion_time.p99": _completion_percentile(0.99),
    "completion_time.p50": _completion_percentile(0.5),
    "completion_time.mean": _completion("Mean FCT", "mean completion time of a flow", lambda ps_F: ps_F.mean()),
    "completion_time.min": _completion("Min FCT", "completion time of the fastest flow", lambda ps_F: ps_F.min()),
    "slowdown.p50": _slowdown_percentile(0.5),
    "slowdown.p99": _slowdown_percentile(0.99),
    "throughput.min": Metric(
        label="Min flow throughput",
        unit="bps",
        meaning="lowest bytes over completion time of a flow",
        columns=TIMES,
        formula=_of_flows(transfers.throughputs_bps, lambda bps_F: bps_F.min()),
        is_better_more=True,
    ),
    "throughput.mean": Metric(
        label="Mean flow throughput",
        unit="bps",
        meaning="mean over flows of bytes over completion time",
        columns=TIMES,
        formula=_of_flows(transfers.throughputs_bps, lambda bps_F: bps_F.mean()),
        is_better_more=True,
    ),
    "fairness": Metric(
        label="JFI",
        unit="index",
        meaning="Jain's fairness index of queue pairs' rates while they have something to send; 1 if all are equal",
        columns=TIMES,
        formula=_of_flows(transfers.queue_pair_rates_bps, formulas.jain_fairness_index),
        is_better_more=True,
    ),
    "drops": _sum("Dropped packets", "packets", "ports.dropped_packets", "packets dropped at all ports"),
    "drop_rate": _share_of_sent(
        "Packet drop", "ppm", "ports.dropped_packets", "packets dropped for each million data packets sent"
    ),
    "ecn_marks": _sum("ECN-marked packets", "packets", "ports.ecn_marked_packets", "packets marked by switches"),
    "ecn_mark_ratio": _share_of_sent(
        "ECN mark ratio", "fraction", "ports.ecn_marked_packets", "marks set by switches over data packets sent"
    ),
    "retransmissions": _sum(
        "Retransmitted packets", "packets", "transfers.packets_retransmitted", "data packets sent again"
    ),
    "retransmission_rate": _share_of_sent(
        "Retransmit rate",
        "fraction",
        "transfers.packets_retransmitted",
        "packets sent again over data packets sent",
    ),
    "cnps": _sum("CNPs", "packets", "transfers.cnps", "congestion notification packets that senders received"),
    "pauses": _sum("PFC pause count", "count", "ports.pauses", "times a port was paused by PFC, over all ports"),
    "paused_time": _sum("PFC pause duration", "ps", "ports.paused_ps", "time paused, summed over ports"),
    "queue.max": Metric(
        label="Peak queue depth",
        unit="bytes",
        meaning="deepest queue of any port at any time; nan where bounded skip does not know one",
        columns=("ports.max_queue_bytes",),
        formula=lambda record: _deepest_queue(record.tables["ports"]["max_queue_bytes"]),
        is_of_transfers=False,
    ),
    "queue.p95": Metric(
        label="p95 queue depth",
        unit="bytes",
        meaning="queue depth that 95 % of the samples of all sampled ports do not exceed",
        columns=("samples.queue_bytes",),
        formula=lambda record: formulas.percentile(record.tables["samples"]["queue_bytes"], 0.95),
        is_of_transfers=False,
    ),
    **{name: Metric(unit="ps", **times) for name, times in replay.REPLAY_TIMES.items()},
    replay.RATIO: Metric(
        label="Step time over lower bound",
        unit="ratio",
        meaning="mean step time over the mean lower bound",
        columns=(f"{replay.STEPS}.duration_ps", f"{replay.STEPS}.lower_bound_ps"),
        formula=replay.over_bound,
    ),
}
