"""Rate, window and round trip of a few sampled queue pairs over time, each while it has something to send.

Drawn are the queue pairs that finish last and those whose rate swings most. Of each stretch of their samples the lowest
and the highest are points of the curve, so that no short swing is lost.

Shapes: S samples, Q sampled queue pairs, R samples of one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import format_duration
from fabrictune.reports.axes import FORMATS
from fabrictune.reports.blocks import Cell, Figure, Table, missing, number, words
from fabrictune.reports.charts import LineChart, Points, Scale
from fabrictune.reports.curves import TIME
from fabrictune.reports.fault_spans import bands_of, fault_spans
from fabrictune.reports.lanes import draw_lanes
from fabrictune.reports.record_view import TRANSFERS, Run
from fabrictune.reports.selection import select

FLOW_SAMPLES = select("flow_samples", "time_ps", "qp", "rate_bps", "cwnd_bytes", "rtt_ps")
NUM_SLOWEST, NUM_SWINGING = 2, 2  # queue pairs drawn; all of no more than these together
MAX_STRETCHES = 150  # of a curve
UNLIMITED = 10**18  # a sample of what limits nothing
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """What is sampled of a queue pair."""

    column: str
    name: str
    unit: str


QUANTITIES = (
    Quantity(column="rate_bps", name="allowed rate", unit="bps"),
    Quantity(column="cwnd_bytes", name="congestion window", unit="bytes"),
    Quantity(column="rtt_ps", name="round trip", unit="ps"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledFlow:
    """The samples of one queue pair from its first transfer ready to its last byte delivered."""

    qp: int
    name: str
    finish_ps: int  # NEVER where a transfer is not finished
    samples: Columns  # of shape R, in order of time

    def sampled(self, quantity: Quantity) -> tuple[IntArray, IntArray]:
        """Return times and samples of a quantity, without those at which it limits nothing."""
        value_R = self.samples[quantity.column]
        is_limit_R = value_R < UNLIMITED
        return self.samples["time_ps"][is_limit_R], value_R[is_limit_R]

    def points(self, quantity: Quantity) -> Points:
        """Return the lowest and the highest sample of each stretch, in order of time."""
        time_ps_R, value_R = self.sampled(quantity)
        rows: list[int] = []
        for stretch in np.array_split(np.arange(len(value_R)), max(1, min(len(value_R), MAX_STRETCHES))):
            ends = {int(value_R[stretch].argmin()), int(value_R[stretch].argmax())} if len(stretch) else ()
            rows += [int(stretch[end]) for end in sorted(ends)]
        return list(zip(time_ps_R[rows].tolist(), value_R[rows].tolist(), strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowTimeline:
    """One run's sampled queue pairs: those that are drawn, and how many there are."""

    run: Run
    flows: Sequence[SampledFlow]
    rule: str  # which these are, in words
    num_between: int  # queue pairs that were done between two samples

    @classmethod
    def of(cls, run: Run, samples: Columns) -> Self | None:
        """Return the queue pairs to draw, None where none was sampled while it had something to send."""
        every = _Spans.of(run, np.unique(samples["qp"]))
        order_S = np.lexsort((samples["time_ps"], samples["qp"]))
        rows_S = order_S[every.contain(samples["qp"][order_S], samples["time_ps"][order_S])]
        if not len(rows_S):
            return None
        qp_Q, begin_Q = np.unique(samples["qp"][rows_S], return_index=True)
        swing_Q, swings = _swings(samples, rows_S, begin_Q)
        last_first_Q = np.lexsort((qp_Q, -every.finish_ps_Q[np.isin(every.qp_Q, qp_Q)]))
        chosen, rule = _choose(last_first_Q, swing_Q, swings)
        rows_of_Q = [rows_S[begin_Q[place] : begin_Q[place + 1] if place + 1 < len(qp_Q) else None] for place in chosen]
        flows = [_sampled_flow(run, samples, rows, every) for rows in rows_of_Q]
        return cls(run=run, flows=flows, rule=rule, num_between=len(every.qp_Q) - len(qp_Q))

    @property
    def changing(self) -> list[Quantity]:
        """The quantities that are not the same throughout."""
        return [quantity for quantity in QUANTITIES if self._ends(quantity)[0] < self._ends(quantity)[1]]

    @property
    def end_ps(self) -> int:
        """The time of the last sample drawn."""
        return max(int(flow.samples["time_ps"][-1]) for flow in self.flows)

    @property
    def caption(self) -> str:
        """What is drawn, of how many, and what is not."""
        changing = self.changing
        names = [quantity.name for quantity in changing]
        drawn = " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) or "nothing changes"
        between = [f"{self.num_between:,} more had nothing to send at any sample."] if self.num_between else []
        constant = [self._constant(quantity) for quantity in QUANTITIES if quantity not in changing]
        return " ".join((f"{self.run.label}: {drawn} over time. {self.rule}.", *between, *constant))

    def highest(self, quantity: Quantity) -> int:
        """Return the highest sample drawn."""
        return self._ends(quantity)[1]

    def _ends(self, quantity: Quantity) -> tuple[int, int]:
        value_R = np.concatenate([flow.sampled(quantity)[1] for flow in self.flows])
        return (int(value_R.min()), int(value_R.max())) if len(value_R) else (UNLIMITED, UNLIMITED)

    def _constant(self, quantity: Quantity) -> str:
        value = self.highest(quantity)
        if value >= UNLIMITED:
            return f"The law sets no {quantity.name}."
        return f"The {quantity.name} is {FORMATS[quantity.unit](value)} throughout."


def flow_blocks(timelines: Sequence[FlowTimeline]) -> Iterator[Figure | Table]:
    """Yield each run's curves, all on the same scales, and their numbers."""
    for timeline, charts in zip(timelines, flow_charts(timelines), strict=True):
        if charts:
            drawing = draw_lanes(charts, timeline.caption)
            yield Figure(drawing=drawing, caption=timeline.caption, table=_numbers(timeline, ""))
        else:
            yield _numbers(timeline, timeline.caption)


def flow_charts(timelines: Sequence[FlowTimeline]) -> list[list[LineChart]]:
    """Return for each run a chart of each quantity that changes, on scales that hold all runs."""
    end_ps = max((timeline.end_ps for timeline in timelines), default=0) or 1
    highest = dict.fromkeys(QUANTITIES, 1)
    for timeline in timelines:
        highest |= {each: max(highest[each], timeline.highest(each)) for each in timeline.changing}
    return [
        [
            LineChart(
                across=Scale(name=TIME, low=0, high=end_ps, unit="ps"),
                up=Scale(name=quantity.name, low=0, high=1.05 * highest[quantity], unit=quantity.unit),
                curves={flow.name: flow.points(quantity) for flow in timeline.flows},
                caption=f"{timeline.run.label}: {quantity.name}",
                bands=bands_of(fault_spans(timeline.run)),
            )
            for quantity in timeline.changing
        ]
        for timeline in timelines
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Spans:
    """When each sampled queue pair had something to send: from its first transfer ready to its last byte."""

    qp_Q: IntArray  # in order
    row_Q: IntArray  # one of its transfers, -1 where it has none
    ready_ps_Q: IntArray
    finish_ps_Q: IntArray

    @classmethod
    def of(cls, run: Run, qp_Q: IntArray) -> Self:
        """Return the spans of queue pairs; of those without transfers all of the run."""
        spans = cls(
            qp_Q=qp_Q,
            row_Q=np.full(len(qp_Q), -1),
            ready_ps_Q=np.full(len(qp_Q), NEVER),
            finish_ps_Q=np.full(len(qp_Q), -1),
        )
        if (transfers := run.table(TRANSFERS)) is not None:
            rows = np.flatnonzero(np.isin(transfers["qp"], qp_Q))
            place = np.searchsorted(qp_Q, transfers["qp"][rows])
            ready_ps, finish_ps = (
                np.where((times := transfers[name][rows]) < 0, NEVER, times) for name in ("ready_ps", "finish_ps")
            )
            spans.row_Q[place] = rows
            np.minimum.at(spans.ready_ps_Q, place, ready_ps)
            np.maximum.at(spans.finish_ps_Q, place, finish_ps)
        spans.ready_ps_Q[spans.row_Q < 0], spans.finish_ps_Q[spans.row_Q < 0] = 0, NEVER
        return spans

    def contain(self, qp_S: IntArray, time_ps_S: IntArray) -> BoolArray:
        """Return which samples are of a queue pair that has something to send."""
        place_S = np.searchsorted(self.qp_Q, qp_S)
        return np.asarray((time_ps_S >= self.ready_ps_Q[place_S]) & (time_ps_S <= self.finish_ps_Q[place_S]))


def _swings(samples: Columns, rows_S: IntArray, begin_Q: IntArray) -> tuple[IntArray, str]:
    """Return how far each queue pair's highest sample is above its lowest, and of what: the first that changes."""
    for quantity in QUANTITIES:
        value_S = samples[quantity.column][rows_S]
        swing_Q = np.maximum.reduceat(value_S, begin_Q) - np.minimum.reduceat(value_S, begin_Q)
        if swing_Q.any():
            return swing_Q, quantity.name
    return np.zeros(len(begin_Q), np.int64), QUANTITIES[0].name


def _choose(last_first_Q: IntArray, swing_Q: IntArray, what: str) -> tuple[list[int], str]:
    """Return the queue pairs to draw, those that finish last first, and a sentence on which they are."""
    count = len(last_first_Q)
    if count <= NUM_SLOWEST + NUM_SWINGING:
        return last_first_Q.tolist(), "The one sampled queue pair" if count == 1 else f"All {count} sampled queue pairs"
    rest = last_first_Q[NUM_SLOWEST:]
    chosen = [*last_first_Q[:NUM_SLOWEST], *rest[np.argsort(-swing_Q[rest], kind="stable")][:NUM_SWINGING]]
    return [int(place) for place in chosen], (
        f"{len(chosen)} of {count:,} sampled queue pairs: the {NUM_SLOWEST} that finish last and, of the others, the "
        f"{NUM_SWINGING} whose {what} swings most"
    )


def _sampled_flow(run: Run, samples: Columns, rows: IntArray, spans: _Spans) -> SampledFlow:
    """Return the queue pair of some samples, with them."""
    qp = int(samples["qp"][rows[0]])
    place = int(np.searchsorted(spans.qp_Q, qp))
    transfers, row, name = run.table(TRANSFERS), int(spans.row_Q[place]), f"queue pair {qp}"
    if transfers is not None and row >= 0:
        name = f"{run.pair_label(int(transfers['source'][row]), int(transfers['destination'][row]))}, {name}"
    own = {column: samples[column][rows] for column in FLOW_SAMPLES.columns}
    return SampledFlow(qp=qp, name=name, finish_ps=int(spans.finish_ps_Q[place]), samples=own)


def _numbers(timeline: FlowTimeline, caption: str) -> Table:
    """Return each drawn queue pair's median of each quantity, with the lowest and the highest sample."""
    return Table(
        headings=("Flow", "Finish", *(f"Median {quantity.name}" for quantity in QUANTITIES)),
        rows=tuple(
            (words(flow.name), _finish(flow), *(_median(flow, quantity) for quantity in QUANTITIES))
            for flow in timeline.flows
        ),
        caption=caption,
        hints=("", "", *("the lowest and the highest sample in brackets" for _ in QUANTITIES)),
    )


def _finish(flow: SampledFlow) -> Cell:
    """Return when the queue pair was done; "never" sorts after all others."""
    return number(flow.finish_ps, "never" if flow.finish_ps == NEVER else format_duration(flow.finish_ps))


def _median(flow: SampledFlow, quantity: Quantity) -> Cell:
    _, value_R = flow.sampled(quantity)
    if not len(value_R):
        return missing()
    show, median = FORMATS[quantity.unit], percentile(value_R, 0.5)
    return number(median, f"{show(median)} ({show(int(value_R.min()))} to {show(int(value_R.max()))})")
