"""Key performance indicators of a run, one pure function each, under the names of the BMWG draft on AI fabrics.

An indicator whose inputs a record lacks is left out, never shown as zero. Two need to know what the job was: JCT ratio
reads `run["ideal_ps"]`, the job's time on an ideal fabric, and BusBW reads `run["collective"]`, a mapping with
`bytes` (nccl-tests' size), `busbw_factor` (2 (n - 1)/n for an all-reduce over n ranks) and `line_rate_bps`.

Shapes: T transfers, Q queue pairs, L links.

Source: draft-calabria-bmwg-ai-fabric-training-bench-04 (names, indicative bounds); nccl-tests, PERFORMANCE.md for bus
bandwidth.
Left out: convergence time and out-of-order rate, which need rates and arrivals over time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.fairness import jain_fairness_index
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.units import PS_PER_S
from fabrictune.reports.link_load import carried_load, offered_load
from fabrictune.reports.record_view import Run, open_run

Unit = Literal["ps", "bps", "bytes", "ppm", "fraction", "ratio", "index", "count"]
Array = IntArray | FloatArray

ROUNDING = 1e-9  # 0.99 * 700 is 693 and no more


@dataclass(frozen=True, kw_only=True)
class Kpi:
    """One indicator of one run."""

    name: str
    value: float
    unit: Unit
    formula: str
    bound: str = ""  # the draft's indicative bound, for people
    is_within: bool | None = None  # None where the draft gives no bound


def job_completion_time_ps(ready_ps: Array, finish_ps: Array) -> int:
    """JCT: from the first transfer ready to the last one's finish."""
    return int(finish_ps.max() - ready_ps.min())


def job_completion_ratio(measured_ps: float, ideal_ps: float) -> float:
    """JCT ratio: measured over ideal, 1 at best."""
    return measured_ps / ideal_ps


def bus_bandwidth_bps(num_bytes: float, busbw_factor: float, time_ps: float) -> float:
    """BusBW: size times bus factor over time, comparable with a link's rate whatever the number of ranks."""
    return 8 * num_bytes * busbw_factor * PS_PER_S / time_ps


def throughput_bps(delivered_bytes: Array, time_ps: float) -> float:
    """Payload delivered by all transfers together over the job's time."""
    return 8 * float(delivered_bytes.sum()) * PS_PER_S / time_ps


def flow_completion_percentile_ps(completion_ps_T: Array, fraction: float) -> int:
    """FCT percentile by nearest rank: a time some transfer really took."""
    rank = max(int(np.ceil(fraction * len(completion_ps_T) - ROUNDING)), 1)
    return int(np.sort(completion_ps_T)[rank - 1])


def drop_ppm(dropped_packets: float, sent_packets: float) -> float:
    """Packets dropped for each million sent."""
    return 1e6 * dropped_packets / sent_packets


def ecn_mark_ratio(marked_packets: float, sent_packets: float) -> float:
    """Congestion marks set by switches for each data packet sent."""
    return marked_packets / sent_packets


def retransmit_rate(retransmitted_packets: float, sent_packets: float) -> float:
    """Share of the data packets sent that had been sent before."""
    return retransmitted_packets / sent_packets


def max_to_mean_ratio(load_L: Array) -> float:
    """MMR: load of the busiest link over the mean of all, 1 when they share evenly."""
    return float(load_L.max() / load_L.mean())


def queue_pair_rate_bps(qp_T: Array, bytes_T: Array, ready_ps_T: Array, finish_ps_T: Array) -> FloatArray:
    """Return each queue pair's payload rate over the time in which it had something to send.

    Transfers of one queue pair finish in the order in which they become ready, so each adds the time since the later
    of its own readiness and the previous one's finish.
    """
    order = np.lexsort((finish_ps_T, ready_ps_T, qp_T))
    qp_T, ready_ps_T, finish_ps_T = qp_T[order], ready_ps_T[order], finish_ps_T[order]
    is_follower_T = np.concatenate([[False], qp_T[1:] == qp_T[:-1]])
    previous_finish_ps_T = np.where(is_follower_T, np.roll(finish_ps_T, 1), ready_ps_T)
    busy_ps_T = np.maximum(finish_ps_T - np.maximum(ready_ps_T, previous_finish_ps_T), 0)
    row_T = np.cumsum(~is_follower_T) - 1
    busy_ps_Q, bytes_Q = np.bincount(row_T, weights=busy_ps_T), np.bincount(row_T, weights=bytes_T[order])
    is_timed_Q = busy_ps_Q > 0
    return np.asarray(8 * bytes_Q[is_timed_Q] * PS_PER_S / busy_ps_Q[is_timed_Q])


def kpis(record: RunRecord) -> list[Kpi]:
    """Return every indicator the record has the numbers for; raises RecordError on a malformed table."""
    return run_kpis(open_run(record, record.kind))


def run_kpis(run: Run) -> list[Kpi]:
    """Return every indicator a checked run has the numbers for."""
    return [*_job(run), *_completions(run), *_packets(run), *_links(run), *_queues(run)]


def _job(run: Run) -> Iterator[Kpi]:
    transfers = run.transfers
    if transfers is None or len(transfers["finish_ps"]) == 0 or (transfers["finish_ps"] < 0).any():
        return
    jct_ps = job_completion_time_ps(transfers["ready_ps"], transfers["finish_ps"])
    if jct_ps <= 0:
        return
    yield Kpi(name="JCT", value=jct_ps, unit="ps", formula="last finish less first ready")
    ideal_ps = _positive(run.record.run.get("ideal_ps"))
    if ideal_ps:
        yield _bounded(
            Kpi(
                name="JCT ratio",
                value=job_completion_ratio(jct_ps, ideal_ps),
                unit="ratio",
                formula="JCT ÷ JCT on an ideal fabric",
                bound="≤ 1.05",
            ),
            high=1.05,
        )
    yield from _bus_bandwidth(run, jct_ps)
    if run.finished is not None:
        yield Kpi(
            name="Throughput",
            value=throughput_bps(run.finished["bytes"], jct_ps),
            unit="bps",
            formula="payload delivered by all transfers ÷ JCT",
        )


def _bus_bandwidth(run: Run, jct_ps: int) -> Iterator[Kpi]:
    collective = run.record.run.get("collective")
    if not isinstance(collective, Mapping):
        return
    num_bytes, factor = _positive(collective.get("bytes")), _positive(collective.get("busbw_factor"))
    line_rate_bps = _positive(collective.get("line_rate_bps"))
    if num_bytes and factor and line_rate_bps:
        value = bus_bandwidth_bps(num_bytes, factor, jct_ps)
        formula = "size of the collective, times its bus factor, ÷ JCT"
        kpi = Kpi(name="BusBW", value=value, unit="bps", formula=formula, bound="≥ 90 % of line rate")
        yield _bounded(kpi, low=0.9 * line_rate_bps)


def _completions(run: Run) -> Iterator[Kpi]:
    finished = run.finished
    if finished is None:
        return
    completion_ps_T = finished["finish_ps"] - finished["ready_ps"]
    for name, fraction in (("P50 FCT", 0.5), ("P99 FCT", 0.99), ("P99.9 FCT", 0.999)):
        yield Kpi(
            name=name,
            value=flow_completion_percentile_ps(completion_ps_T, fraction),
            unit="ps",
            formula="nearest rank of finish less ready, over transfers",
        )
    rate_Q = queue_pair_rate_bps(finished["qp"], finished["bytes"], finished["ready_ps"], finished["finish_ps"])
    if len(rate_Q) > 1:
        yield Kpi(
            name="JFI",
            value=jain_fairness_index(rate_Q),
            unit="index",
            formula="(Σx)² ÷ (n Σx²), x = payload rate of each busy queue pair",
        )


def _packets(run: Run) -> Iterator[Kpi]:
    transfers, ports = run.transfers, run.ports
    sent = int(transfers["packets_sent"].sum()) if transfers is not None else 0
    if transfers is None or sent == 0:
        return
    if ports is not None:
        yield _bounded(
            Kpi(
                name="Packet drop",
                value=drop_ppm(int(ports["dropped_packets"].sum()), sent),
                unit="ppm",
                formula="packets dropped for each million data packets sent",
                bound="0 ppm",
            ),
            high=0,
        )
        yield Kpi(
            name="ECN mark ratio",
            value=ecn_mark_ratio(int(ports["ecn_marked_packets"].sum()), sent),
            unit="fraction",
            formula="marks set by switches ÷ data packets sent",
        )
    yield Kpi(
        name="Retransmit rate",
        value=retransmit_rate(int(transfers["packets_retransmitted"].sum()), sent),
        unit="fraction",
        formula="data packets sent again ÷ data packets sent",
    )


def _links(run: Run) -> Iterator[Kpi]:
    if run.throughput is not None and len(run.throughput["qp"]):
        yield Kpi(
            name="Expected throughput",
            value=float(run.throughput["throughput_fraction"].mean()),
            unit="fraction",
            formula="mean share collisions leave a queue pair; not in the draft",
        )
    for load in (offered_load(run), carried_load(run)):
        if load is None:
            continue
        load_L = load.load_P[load.fabric.compared_ports]
        yield Kpi(
            name=f"Highest {load.measure}",
            value=float(load.load_P.max()),
            unit="fraction",
            formula="of any link, hosts' links too; not in the draft",
        )
        if load_L.mean() > 0:
            yield Kpi(
                name=f"MMR, {load.measure}",
                value=max_to_mean_ratio(load_L),
                unit="ratio",
                formula=f"highest ÷ mean {load.measure} of the links between switches",
            )


def _queues(run: Run) -> Iterator[Kpi]:
    if run.ports is not None:
        pauses, paused_ps = int(run.ports["pauses"].sum()), int(run.ports["paused_ps"].sum())
        yield Kpi(name="PFC pause count", value=pauses, unit="count", formula="pauses begun, all ports")
        yield Kpi(name="PFC pause duration", value=paused_ps, unit="ps", formula="time paused, summed over ports")
    if run.samples is not None and len(run.samples["queue_bytes"]):
        yield Kpi(
            name="Queue P95",
            value=float(np.percentile(run.samples["queue_bytes"], 95, method="inverted_cdf")),
            unit="bytes",
            formula="nearest rank over all samples of all sampled ports",
        )
    if run.ports is not None:
        deepest = int(run.ports["max_queue_bytes"].max(initial=0))
        yield Kpi(name="Queue max", value=deepest, unit="bytes", formula="deepest queue of any port at any time")


def _bounded(kpi: Kpi, *, low: float = -np.inf, high: float = np.inf) -> Kpi:
    return Kpi(**{**vars(kpi), "is_within": bool(low <= kpi.value <= high)})


def _positive(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < np.inf else None
