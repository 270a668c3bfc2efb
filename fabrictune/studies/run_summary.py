"""Summary of a simulated run: its metrics and slowest transfers, as values for programs and as text for people."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.metrics.catalog import METRICS
from fabrictune.foundation.metrics.measures import measure_parts, measures_as_json
from fabrictune.foundation.metrics.replay import REPLAY_METRICS
from fabrictune.foundation.metrics.transfers import completion_times_ps, select_flows, slowdowns, throughputs_bps
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.units import format_bytes, format_duration, format_rate
from fabrictune.studies.replay.summary import ReplaySummary, summarize_replays

MAX_LISTED = 16
MAX_BESIDE_TABLES = 4  # where a replay or parts have tables of their own
LISTED = ("transfer", "source", "destination", "bytes", "ready_ps", "finish_ps", "ideal_ps")
PART_METRICS = (
    "makespan",
    "completion_time.mean",
    "completion_time.p99",
    "slowdown.p50",
    "slowdown.p99",
    "throughput.mean",
)


@dataclass(frozen=True, kw_only=True)
class TransferResult:
    """One transfer over the fabric."""

    transfer: int
    source: str  # host:port
    destination: str
    num_bytes: int
    completion_time_ps: float  # infinite where it never finished
    throughput_bps: float
    slowdown: float  # over its time alone; nan where that is unknown


@dataclass(frozen=True, kw_only=True)
class FaultResult:
    """One fault, and the goodput of all queue pairs around it; -1 where there was no such time."""

    fault: str
    begin_ps: int
    end_ps: int
    goodput_before_bps: int
    goodput_during_bps: int
    goodput_after_bps: int


@dataclass(frozen=True, kw_only=True)
class PartAlone:
    """The time of a part of a mixture beside the others and alone, and their ratio."""

    part: str
    beside_ps: float
    alone_ps: float
    slowdown: float


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Every metric of a run, its slowest transfers, and what its faults cost."""

    num_transfers: int
    metrics: Mapping[str, float]  # in the units of METRICS
    slowest: Sequence[TransferResult]  # slowest first
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of a mixture: the transfers' metrics
    faults: Sequence[FaultResult] = ()
    drops: Mapping[str, int] = field(default_factory=dict)  # packets that faults have cost, by cause
    replays: Sequence[ReplaySummary] = ()  # of communication traces
    alone: Sequence[PartAlone] = ()  # of a mixture whose parts were run alone too

    def as_json(self) -> dict[str, object]:
        """Return the summary as JSON values; each metric is an object of its value and unit."""
        parts = {part: measures_as_json(metrics) for part, metrics in self.parts.items()}
        values = asdict(self)
        dropped_packets = values.pop("drops")
        values["replays"] = [replay.as_json() for replay in self.replays]
        metrics = measures_as_json(self.metrics)
        return {**values, "metrics": metrics, "parts": parts, "dropped_packets": dropped_packets}

    @property
    def metric_rows(self) -> list[tuple[str, str, str]]:
        """Label, value and name of each metric that is known, for people; of a replay those that its steps do not say.

        The answer of a replay are its steps, so that other rows leave room for them: those that are not 0.
        """
        known = {name: value for name, value in self.metrics.items() if not math.isnan(value)}
        if self.replays:
            known = {name: value for name, value in known.items() if value and name not in REPLAY_METRICS}
        return [(METRICS[name].label, METRICS[name].show(value), name) for name, value in known.items()]

    @property
    def zeros(self) -> list[str]:
        """Labels of the metrics that are 0, of a replay and of parts, which have tables of their own."""
        shown = (name for name, value in self.metrics.items() if value == 0 and name not in REPLAY_METRICS)
        return [METRICS[name].label for name in shown] if self._has_tables else []

    @property
    def transfer_rows(self) -> list[tuple[str, ...]]:
        """The slowest transfers, for people; few of a replay and of parts."""
        return [
            (
                str(transfer.transfer),
                transfer.source,
                transfer.destination,
                format_bytes(transfer.num_bytes),
                METRICS["completion_time.max"].show(transfer.completion_time_ps),
                format_rate(transfer.throughput_bps),
                METRICS["slowdown.p50"].show(transfer.slowdown),
            )
            for transfer in self.slowest[: MAX_BESIDE_TABLES if self._has_tables else None]
        ]

    @property
    def part_rows(self) -> list[tuple[str, ...]]:
        """The metrics of a mixture's parts, for people."""
        return [
            (part, *(METRICS[name].show(metrics[name]) for name in PART_METRICS))
            for part, metrics in self.parts.items()
        ]

    @property
    def alone_rows(self) -> list[tuple[str, ...]]:
        """What the parts of a mixture cost one another, for people."""
        time, ratio = METRICS["makespan"], METRICS["slowdown.p50"]
        return [
            (one.part, time.show(one.beside_ps), time.show(one.alone_ps), ratio.show(one.slowdown))
            for one in self.alone
        ]

    @property
    def _has_tables(self) -> bool:
        return bool(self.replays or self.parts)

    @property
    def fault_rows(self) -> list[tuple[str, ...]]:
        """The cost of each fault, for people."""
        return [
            (
                fault.fault,
                format_duration(fault.begin_ps),
                "end" if fault.end_ps < 0 else format_duration(fault.end_ps),
                *(
                    "" if rate_bps < 0 else format_rate(rate_bps)
                    for rate_bps in (fault.goodput_before_bps, fault.goodput_during_bps, fault.goodput_after_bps)
                ),
            )
            for fault in self.faults
        ]


def summarize(record: RunRecord) -> Summary:
    """Return the summary of a simulated run."""
    transfers = select_flows(record.tables["transfers"])
    num_transfers, slowest = _slowest(completion_times_ps(transfers))
    label = _nic_labels(record)
    listed = {name: transfers[name][slowest] for name in LISTED if name in transfers}
    time_ps, rate_bps, slowdown = completion_times_ps(listed), throughputs_bps(listed), slowdowns(listed)
    return Summary(
        num_transfers=num_transfers,
        metrics={name: metric.measure(record) for name, metric in METRICS.items()},
        slowest=[
            TransferResult(
                transfer=int(listed["transfer"][row]),
                source=label[int(listed["source"][row])],
                destination=label[int(listed["destination"][row])],
                num_bytes=int(listed["bytes"][row]),
                completion_time_ps=float(time_ps[row]),
                throughput_bps=float(rate_bps[row]),
                slowdown=float(slowdown[row]),
            )
            for row in range(len(slowest))
        ],
        parts=measure_parts(record),
        alone=_alone(record),
        faults=_faults(record),
        drops=_drops(record),
        replays=summarize_replays(record),
    )


def _slowest(time_ps_F: FloatArray) -> tuple[int, IntArray]:
    """Return the number of flows, and the rows of the slowest, slowest first; ties by row."""
    num_flows = len(time_ps_F)
    num_listed = min(num_flows, MAX_LISTED)
    if not num_listed:
        return 0, np.zeros(0, np.int64)
    least_ps = np.partition(time_ps_F, num_flows - num_listed)[num_flows - num_listed]
    above, equal = np.flatnonzero(time_ps_F > least_ps), np.flatnonzero(time_ps_F == least_ps)
    rows = np.concatenate([above, equal])[:num_listed]
    return num_flows, rows[np.argsort(-time_ps_F[rows], kind="stable")]


def _faults(record: RunRecord) -> list[FaultResult]:
    table = record.tables.get("faults", {})
    return [
        FaultResult(
            fault=str(table["description"][row]),
            **{name: int(table[name][row]) for name in FaultResult.__dataclass_fields__ if name != "fault"},
        )
        for row in range(len(table.get("fault", ())))
    ]


def _alone(record: RunRecord) -> list[PartAlone]:
    table = record.tables.get("alone", {})
    columns = {name: table[name].tolist() for name in PartAlone.__dataclass_fields__} if table else {}
    return [PartAlone(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def _drops(record: RunRecord) -> dict[str, int]:
    table = record.tables.get("drops", {"cause": np.zeros(0, object)})
    return {str(cause): int(table["packets"][table["cause"] == cause].sum()) for cause in np.unique(table["cause"])}


def _nic_labels(record: RunRecord) -> dict[int, str]:
    """Return `host:port` for every NIC, by the first of its ports."""
    ports = record.tables["fabric"]
    rows = np.nonzero(ports["nic"] >= 0)[0][::-1]
    return {int(ports["nic"][row]): f"{ports['node_name'][row]}:{ports['port_name'][row]}" for row in rows}
