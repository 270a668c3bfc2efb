"""Throughput of sampled ports over time: the mean of each step between two samples.

Shapes: S samples, A sampled ports, I sampled instants, E edges of the steps drawn, K ports drawn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S, format_bytes, format_rate
from fabrictune.reports.blocks import Figure, Table, duration, number, plural, words
from fabrictune.reports.charts import LineChart, Points, Scale
from fabrictune.reports.curves import TIME, draw_curves
from fabrictune.reports.fault_spans import bands_of, fault_spans
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

SENT = select("samples", "time_ps", "port", "tx_bytes")
MAX_PORTS, MAX_STEPS = 3, 160


@dataclass(frozen=True, kw_only=True, eq=False)
class PortThroughput:
    """What the ports that sent most carried in each step, and all sampled ports on average."""

    edge_ps_E: IntArray
    port_K: tuple[int, ...]
    rate_bps_KE: FloatArray
    mean_bps_E: FloatArray
    num_sampled_ports: int

    @classmethod
    def of(cls, sent: Columns) -> Self | None:
        """Return the throughput of samples, None of those of a single instant."""
        time_ps_I, instant_S = np.unique(sent["time_ps"], return_inverse=True)
        edge_ps_E = _edges(time_ps_I)
        if len(edge_ps_E) < 2:
            return None
        order_S = np.lexsort((instant_S, sent["port"]))
        port_S, instant_S, sent_bytes_S = sent["port"][order_S], instant_S[order_S], sent["tx_bytes"][order_S]
        begin_A = np.flatnonzero(np.append(True, port_S[1:] != port_S[:-1]))
        end_A = np.append(begin_A[1:], len(port_S))
        chosen_K = np.argsort(sent_bytes_S[begin_A] - sent_bytes_S[end_A - 1], kind="stable")[:MAX_PORTS]
        rows_K = [slice(begin_A[place], end_A[place]) for place in chosen_K]
        together_I = _sent_together(time_ps_I, instant_S, port_S, sent_bytes_S)
        return cls(
            edge_ps_E=edge_ps_E,
            port_K=tuple(port_S[begin_A[chosen_K]].tolist()),
            rate_bps_KE=np.array(
                [_rates(time_ps_I[instant_S[rows]], sent_bytes_S[rows], edge_ps_E) for rows in rows_K]
            ),
            mean_bps_E=_rates(time_ps_I, together_I, edge_ps_E) / len(begin_A),
            num_sampled_ports=len(begin_A),
        )

    @property
    def longest_step_ps(self) -> int:
        """The longest time that one step is the mean of."""
        return int(np.diff(self.edge_ps_E).max())


def throughput_figures(throughputs: Sequence[tuple[Run, PortThroughput]]) -> Iterator[Figure]:
    """Yield each run's throughput over time, all on the same scales, and its numbers."""
    for (run, throughput), chart in zip(throughputs, throughput_charts(throughputs), strict=True):
        yield Figure(drawing=draw_curves(chart), caption=chart.caption, table=_numbers(run, throughput))


def throughput_charts(throughputs: Sequence[tuple[Run, PortThroughput]]) -> list[LineChart]:
    """Return of each run the throughput of the ports that sent most, and the mean of all sampled ports."""
    end_ps = max((int(throughput.edge_ps_E[-1]) for _, throughput in throughputs), default=1)
    highest_bps = max((float(throughput.rate_bps_KE.max()) for _, throughput in throughputs), default=0) or 1.0
    return [
        LineChart(
            across=Scale(name=TIME, low=0, high=end_ps, unit="ps"),
            up=Scale(name="throughput", low=0, high=1.05 * highest_bps, unit="bps"),
            curves=_curves(run, throughput),
            caption=(
                f"{run.label}: throughput over time of the sampled ports that sent most"
                f"{_rates_of_ports(run, throughput)}, headers included. A step is the mean of "
                f"{duration(throughput.longest_step_ps)}; a packet counts when it begins."
            ),
            bands=bands_of(fault_spans(run)),
        )
        for run, throughput in throughputs
    ]


def _curves(run: Run, throughput: PortThroughput) -> dict[str, Points]:
    names = [run.port_label(port) for port in throughput.port_K]
    rates_bps = list(throughput.rate_bps_KE)
    if throughput.num_sampled_ports > 1:
        names.append(f"mean of {plural(throughput.num_sampled_ports, 'sampled port')}")
        rates_bps.append(throughput.mean_bps_E)
    return {name: _corners(throughput.edge_ps_E, rate) for name, rate in zip(names, rates_bps, strict=True)}


def _rates_of_ports(run: Run, throughput: PortThroughput) -> str:
    """Return what the drawn ports could carry: " (100 Gbps)"."""
    if run.fabric is None:
        return ""
    low, high = (end(int(run.fabric.port_rate_bps_P[port]) for port in throughput.port_K) for end in (min, max))
    return f" ({format_rate(high)})" if low == high else f" ({format_rate(low)} to {format_rate(high)})"


def _numbers(run: Run, throughput: PortThroughput) -> Table:
    """Return what each drawn port sent in the samples: in all, on average, and in its busiest step."""
    seconds_E = np.diff(throughput.edge_ps_E) / PS_PER_S
    rows = []
    for port, rate_bps_E in zip(throughput.port_K, throughput.rate_bps_KE, strict=True):
        num_bytes = float(rate_bps_E @ seconds_E) / BITS_PER_BYTE
        mean_bps, busiest = float(rate_bps_E @ seconds_E / seconds_E.sum()), int(rate_bps_E.argmax())
        begin_ps = int(throughput.edge_ps_E[busiest])
        rows.append(
            (
                words(run.port_label(port)),
                number(num_bytes, format_bytes(round(num_bytes))),
                number(mean_bps, format_rate(mean_bps)),
                number(rate_bps_E[busiest], format_rate(float(rate_bps_E[busiest]))),
                number(begin_ps, duration(begin_ps)),
            )
        )
    return Table(headings=("Port", "Sent", "Mean", "Highest", "From"), rows=tuple(rows))


def _edges(time_ps_I: IntArray) -> IntArray:
    """Return the sampled instants between which means are drawn, at most MAX_STEPS of these."""
    every = max(1, -(-(len(time_ps_I) - 1) // MAX_STEPS))
    edge_ps_E: IntArray = np.unique(np.append(time_ps_I[::every], time_ps_I[-1:]))
    return edge_ps_E


def _rates(time_ps_I: IntArray, sent_bytes_I: IntArray | FloatArray, edge_ps_E: IntArray) -> FloatArray:
    """Return the mean rate between every two edges of what was sent by some instants."""
    bits_E = BITS_PER_BYTE * np.diff(np.interp(edge_ps_E, time_ps_I, sent_bytes_I))
    return np.asarray(PS_PER_S * bits_E / np.diff(edge_ps_E))


def _sent_together(time_ps_I: IntArray, instant_S: IntArray, port_S: IntArray, sent_bytes_S: IntArray) -> FloatArray:
    """Return what all ports sent by each instant, of samples in order of port and time; evenly between two samples."""
    before = np.flatnonzero(port_S[1:] == port_S[:-1])
    span_ps = np.maximum(time_ps_I[instant_S[before + 1]] - time_ps_I[instant_S[before]], 1)
    bytes_per_ps = (sent_bytes_S[before + 1] - sent_bytes_S[before]) / span_ps
    begun_I, ended_I = (
        np.bincount(instant_S[rows], weights=bytes_per_ps, minlength=len(time_ps_I)) for rows in (before, before + 1)
    )
    return np.append(0.0, np.cumsum(np.cumsum(begun_I - ended_I)[:-1] * np.diff(time_ps_I)))


def _corners(edge_ps_E: IntArray, rate_bps_E: FloatArray) -> Points:
    """Return the corners of a staircase."""
    ends = zip(edge_ps_E[:-1].tolist(), edge_ps_E[1:].tolist(), rate_bps_E.tolist(), strict=True)
    return [corner for begin, end, rate in ends for corner in ((begin, rate), (end, rate))]
