"""Ranks that begin last: how late each is when collectives are measured, by size, and how often it is the last.

All others wait for the last rank. Ranks that compute alike are last about equally often; one that is last far more
often is slow before the collective, or its clock is off.

Shapes: R ranks, V rows, a rank in a case each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.records import Columns
from fabrictune.foundation.units import PS_PER_NS
from fabrictune.reports.blocks import Figure, Table, duration, left_out, number, percent, plural
from fabrictune.reports.charts import LineChart, Points, Scale
from fabrictune.reports.curves import draw_curves
from fabrictune.reports.record_view import Run
from fabrictune.reports.selection import select

CASES = select("measurements", "size_bytes")
RANKS = select("ranks", "case", "rank", "host", "late_ns", "own_ns", "times_last")
MAX_CURVES, MAX_ROWS = 4, 16


@dataclass(frozen=True, kw_only=True, eq=False)
class LateRanks:
    """The ranks of one bench, those that begin last most often first."""

    label: str
    ranks: Columns  # V
    size_bytes_V: IntArray
    rank_R: IntArray
    times_last_R: IntArray

    @classmethod
    def of(cls, run: Run) -> Self | None:
        """Return them, None of a run of fewer than two ranks."""
        cases, ranks = run.rows(CASES), run.rows(RANKS)
        if cases is None or ranks is None:
            return None
        rank_R, place_V = np.unique(ranks["rank"], return_inverse=True)
        if len(rank_R) < 2:
            return None
        times_last_R = np.bincount(place_V, ranks["times_last"]).astype(np.int64)
        order_R = np.argsort(-times_last_R, kind="stable")
        return cls(
            label=run.label,
            ranks=ranks,
            size_bytes_V=cases["size_bytes"][ranks["case"]],
            rank_R=rank_R[order_R],
            times_last_R=times_last_R[order_R],
        )

    def points(self, rank: int) -> Points:
        """Return how late a rank begins on average, by size; rows of size 0 have no place on a logarithmic axis."""
        is_own_V = (self.ranks["rank"] == rank) & (self.size_bytes_V > 0)
        sizes, place = np.unique(self.size_bytes_V[is_own_V], return_inverse=True)
        late_ns = np.bincount(place, self.ranks["late_ns"][is_own_V]) / np.maximum(np.bincount(place), 1)
        return list(zip(sizes.tolist(), (PS_PER_NS * late_ns).tolist(), strict=True))


def late_blocks(runs: Sequence[Run]) -> Iterator[Figure | Table]:
    """Yield who begins last in each bench of several ranks: over size, or where no size is above 0 as a table."""
    for late in filter(None, map(LateRanks.of, runs)):
        if (chart := late_chart(late)) is None:
            yield _table(late, f"{late.label}: ranks that begin last")
        else:
            yield Figure(drawing=draw_curves(chart), caption=chart.caption, table=_table(late, ""))


def late_chart(late: LateRanks) -> LineChart | None:
    """Return how late the ranks begin that are last most often, by size; None where no size is above 0."""
    curves = {f"rank {rank}": late.points(rank) for rank in late.rank_R[:MAX_CURVES].tolist()}
    sizes = [size for points in curves.values() for size, _ in points]
    if not sizes:
        return None
    highest_ps = max(late_ps for points in curves.values() for _, late_ps in points) or 1.0
    shown = f"the {MAX_CURVES} of {plural(len(late.rank_R), 'rank')} that are last most often"
    which = shown if len(late.rank_R) > MAX_CURVES else f"all {plural(len(late.rank_R), 'rank')}"
    return LineChart(
        across=Scale(name="size", low=min(sizes), high=max(sizes), unit="bytes", is_logarithmic=True),
        up=Scale(name="begins late by", low=0, high=1.05 * highest_ps, unit="ps"),
        curves=curves,
        caption=f"{late.label}: how long after the first rank a rank begins, on average, by message size; {which}.",
    )


def _table(late: LateRanks, caption: str) -> Table:
    """Return a row a rank: how often it is last of all iterations, and its mean times."""
    total = max(int(late.times_last_R.sum()), 1)
    rows = []
    for rank, times_last in zip(late.rank_R[:MAX_ROWS].tolist(), late.times_last_R.tolist(), strict=False):
        is_own_V = late.ranks["rank"] == rank
        late_ps, own_ps = (PS_PER_NS * float(late.ranks[name][is_own_V].mean()) for name in ("late_ns", "own_ns"))
        rows.append(
            (
                number(rank, str(rank)),
                number(int(late.ranks["host"][is_own_V][0]), str(int(late.ranks["host"][is_own_V][0]))),
                number(times_last, percent(times_last / total)),
                number(late_ps, duration(late_ps)),
                number(own_ps, duration(own_ps)),
            )
        )
    share = percent(1 / len(late.rank_R))
    return Table(
        caption=caption,
        headings=("Rank", "Host", "Last in", "Late, mean", "In the call, mean"),
        hints=("", "", f"of {plural(total, 'iteration')}; an even share is {share}", "after the first rank", ""),
        rows=tuple(rows),
        left_out=left_out(len(rows), len(late.rank_R), "rank", "ranks"),
    )
