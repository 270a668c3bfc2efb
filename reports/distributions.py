"""Distributions over transfers: cumulative, and its tail on a logarithmic axis, with percentiles marked.

A cumulative distribution has one percent of its height for all that is above p99. In the tail each tenth of the
transfers has as much room as the tenth of that tenth.

Shapes: T transfers over the fabric; the value of one that never finished is infinite.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.foundation.metrics.formulas import percentile
from fabrictune.foundation.metrics.units import Unit, format_metric
from fabrictune.reports.blocks import plural
from fabrictune.reports.charts import LineChart, Mark, Points, Scale

Values = Mapping[str, FloatArray]  # of each run, by its label
MAX_STEPS, MAX_TAIL_STEPS = 300, 120  # of a drawn curve
MARKED, TAIL_MARKED = (0.5, 0.95, 0.99), (0.95, 0.99, 0.999)  # percentiles
WIDE = 10  # a range drawn logarithmically
LOWER, UPPER = 0.8, 1.1  # room beyond the ends of a logarithmic axis


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What of a transfer is distributed."""

    name: str
    unit: Unit

    def scale(self, values: Values) -> Scale:
        """Return a scale for all runs, logarithmic where the highest value is ten times the lowest or more."""
        finished = [value_T[np.isfinite(value_T)] for value_T in values.values()]
        lowest, highest = min(float(each.min()) for each in finished), max(float(each.max()) for each in finished)
        unit = "ps" if self.unit == "ps" else ""
        if highest >= WIDE * lowest > 0:
            return Scale(name=self.name, low=LOWER * lowest, high=UPPER * highest, unit=unit, is_logarithmic=True)
        return Scale(name=self.name, low=0, high=1.02 * highest, unit=unit)


COMPLETION = Measure(name="flow completion time", unit="ps")
SLOWDOWN = Measure(name="slowdown", unit="ratio")


def cumulative_chart(measure: Measure, values: Values, caption: str) -> LineChart:
    """Return the share of transfers that are done at each value, a curve a run; each has one that finished."""
    across = measure.scale(values)
    runs = {label: _Ranked.of(value_T) for label, value_T in values.items()}
    return LineChart(
        across=across,
        up=Scale(name="transfers completed", low=0, high=100, unit="%"),
        curves={
            label: [(value, 100 * share) for value, share in ranked.corners(across.low, ranked.even_ranks())]
            for label, ranked in runs.items()
        },
        marks={label: list(ranked.marks(measure, MARKED)) for label, ranked in runs.items()},
        caption=" ".join((caption, *_circles(runs.values(), MARKED), *never_finished(values))),
    )


def tail_chart(measure: Measure, values: Values, caption: str) -> LineChart:
    """Return the share of transfers that take longer than each value, a curve a run; each has one that finished."""
    across = measure.scale(values)
    runs = {label: _Ranked.of(value_T) for label, value_T in values.items()}
    most = max(ranked.count for ranked in runs.values())
    return LineChart(
        across=across,
        up=Scale(name="transfers that take longer", low=LOWER * 100 / most, high=100, unit="%", is_logarithmic=True),
        curves={
            label: [
                (value, 100 * (1 - share))
                for value, share in ranked.corners(across.low, ranked.tail_ranks())
                if share < 1  # the end of the last step, which has no place on a logarithmic axis
            ]
            for label, ranked in runs.items()
        },
        marks={
            label: [
                Mark(across=mark.across, up=100 - mark.up, hint=mark.hint)
                for mark in ranked.marks(measure, TAIL_MARKED)
            ]
            for label, ranked in runs.items()
        },
        caption=" ".join((caption, *_circles(runs.values(), TAIL_MARKED), *never_finished(values))),
    )


def never_finished(values: Values) -> Iterator[str]:
    """Yield how many transfers of each run never finished: its curve ends before it has them all."""
    for label, value_T in values.items():
        if count := int(np.isinf(value_T).sum()):
            yield f"{label}: {count:,} of {plural(len(value_T), 'transfer')} never finished."


def percentile_name(fraction: float) -> str:
    """Return what the field calls a percentile: "p99.9"."""
    return f"p{100 * fraction:g}"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Ranked:
    """The values of one run in order."""

    finished: FloatArray
    count: int  # of all transfers, with those that never finished

    @classmethod
    def of(cls, value_T: FloatArray) -> Self:
        return cls(finished=np.sort(value_T[np.isfinite(value_T)]), count=len(value_T))

    def even_ranks(self) -> IntArray:
        """Return at most MAX_STEPS ranks, as far from one another."""
        return self._with_marks(np.linspace(0, len(self.finished) - 1, min(len(self.finished), MAX_STEPS)), MARKED)

    def tail_ranks(self) -> IntArray:
        """Return at most MAX_TAIL_STEPS ranks, the nearer to one another the higher they are."""
        from_top = np.geomspace(1, len(self.finished), min(len(self.finished), MAX_TAIL_STEPS))
        return self._with_marks(len(self.finished) - from_top, TAIL_MARKED)

    def corners(self, begin: float, ranks: IntArray) -> Points:
        """Return the corners of the cumulative staircase from `begin` on, a step at each of the ranks."""
        corners, share = [(begin, 0.0)], 0.0
        for rank in ranks.tolist():
            corners.append((float(self.finished[rank]), share))
            share = (rank + 1) / self.count
            corners.append((float(self.finished[rank]), share))
        return corners

    def marks(self, measure: Measure, fractions: Sequence[float]) -> Iterator[Mark]:
        """Yield the percentiles on the staircase, in percent."""
        for fraction, rank in self.percentiles(fractions):
            hint = f"{percentile_name(fraction)} {format_metric(float(self.finished[rank]), measure.unit)}"
            yield Mark(across=float(self.finished[rank]), up=100 * (rank + 1) / self.count, hint=hint)

    def percentiles(self, fractions: Sequence[float]) -> Iterator[tuple[float, int]]:
        """Yield each percentile with its rank, but for one that is the highest value or never finished."""
        for fraction in fractions:
            rank = int(percentile(np.arange(self.count), fraction))
            if rank < min(len(self.finished), self.count - 1):
                yield fraction, rank

    def _with_marks(self, ranks: FloatArray, fractions: Sequence[float]) -> IntArray:
        marked = [rank for _, rank in self.percentiles(fractions)]
        return np.unique(np.append(ranks.round().astype(np.int64), np.array(marked, np.int64)))


def _circles(runs: Iterable[_Ranked], fractions: Sequence[float]) -> Iterator[str]:
    """Yield which percentiles any run has a mark for."""
    if marked := sorted({fraction for ranked in runs for fraction, _ in ranked.percentiles(fractions)}):
        yield f"Circles: {', '.join(map(percentile_name, marked))}."
