"""The job of one rail: a job whose tensor groups are folded to one member, and their collectives to work.

All members of a tensor group are ready together where rails are alike, so that each of its collectives takes a known
time. Its rows, and those of work alone, then leave the job: what waited for them waits for what they waited for, and
longer. A row is ready at the latest of some ends plus a delay each, its `terms`: the end of a row that is kept, and the
delay. Where several ends with several delays meet, a barrier of one rank stands for a delayed end.

Two collectives of a rank that are under way at once would share its NVLink. That they are not is proven from the terms:
each must be ready after the end of the one before.

Source: Baccelli, Cohen, Olsder, Quadrat, "Synchronization and Linearity" (1992), chapter 1: events of the form
max(x + a, y + b).
Shapes: N rows of the templates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.job_traces import ALONE, JobTrace
from fabrictune.foundation.layout import RankAxis
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation

FOLDED: RankAxis = "tp"  # the axis along which a job has its rails
MAX_STEPS = 3  # from a row to what it waited for, of a proof
_BEGIN = -1  # in place of a row: the beginning of the run

Terms = dict[int, int]  # by row that is kept, or the beginning: the delay after its end, in picoseconds


@dataclass(frozen=True, kw_only=True)
class FoldedJob:
    """A job of one rail, and what has become work in it."""

    job: JobTrace  # with a tensor-parallel degree of 1
    rank_R: IntArray  # the rank of the whole job that each of its ranks is
    num_inside: int  # collectives inside hosts, of one rank at each place of the pipeline
    num_overlapping: int  # of them, those that may be under way with the one before


def fold_tensor_groups(job: JobTrace, duration_ps_N: IntArray) -> FoldedJob:
    """Return the job of the first member of each tensor group.

    `duration_ps_N` is what the collective of each row takes alone, of the rows along the tensor-parallel axis.
    """
    layout = job.layout
    position = layout.coordinates(np.arange(layout.world_size))
    rank_R = np.flatnonzero(position[FOLDED] == 0)
    folding = _Folding(job.templates, duration_ps_N)
    folding.fold()
    templates = folding.templates(np.cumsum(position[FOLDED] == 0) - 1)
    return FoldedJob(
        job=JobTrace(layout=replace(layout, tp=1), templates=templates),
        rank_R=rank_R,
        num_inside=folding.num_inside,
        num_overlapping=folding.num_overlapping,
    )


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """A row of the folded job: one of the job's own, or a barrier behind it in the template."""

    row: int
    is_barrier: bool
    waits: list[int]
    delay_ps: int


class _Folding:
    """Folds the rows of the templates, one after another."""

    def __init__(self, rows: CommTrace, duration_ps_N: IntArray) -> None:
        self._rows = rows
        self._duration_ps_N = duration_ps_N.tolist()
        self._kept: list[_Kept] = []
        self._since: list[Terms] = []  # of each kept row: when it is ready
        self._delayed: dict[tuple[int, int, int], int] = {}  # rank, row, delay: the barrier that has it
        self._end: list[Terms] = []  # of each row of the templates
        self.num_inside = self.num_overlapping = 0

    def fold(self) -> None:
        rows = self._rows
        offset, waits = rows.dependencies.offset_N1.tolist(), rows.dependencies.row_D.tolist()
        work_ps, rank, axes = rows.compute_before_ps_N.tolist(), rows.rank_N.tolist(), list(rows.axis_N)
        end_of_rank: dict[int, Terms] = {}  # of the last collective inside the host
        for row, axis in enumerate(axes):
            ends = [self._end[before] for before in waits[offset[row] : offset[row + 1]]]
            ready = self._reduced(_later(_latest(ends), work_ps[row]))
            if axis == FOLDED:
                self._judge(end_of_rank.get(rank[row], {}), ready)
            if axis not in (FOLDED, ALONE):
                self._end.append({self._keep(row, ready, is_barrier=False): 0})
                continue
            duration_ps = self._duration_ps_N[row] if axis == FOLDED else 0
            if len(ready) > 1 and work_ps[row] + duration_ps > 0:
                ready = {self._keep(row, ready, is_barrier=True): 0}
            self._end.append(_later(ready, duration_ps))
            if axis == FOLDED:
                end_of_rank[rank[row]] = self._end[row]

    def _judge(self, end: Terms, ready: Terms) -> None:
        """Count a collective, and whether it may begin before another has ended."""
        self.num_inside += 1
        self.num_overlapping += not all(self._is_surely_reached(*term, ready) for term in end.items())

    def _is_surely_reached(self, row: int, delay_ps: int, terms: Terms) -> bool:
        """Return whether it follows that what `terms` say is never before a row's end plus a delay.

        A barrier ends when the last of its own terms has come.
        """
        if self._is_reached(row, delay_ps, terms, MAX_STEPS):
            return True
        is_barrier = row != _BEGIN and self._kept[row].is_barrier
        return is_barrier and all(
            self._is_reached(before, delay_ps + before_ps, terms, MAX_STEPS)
            for before, before_ps in self._since[row].items()
        )

    def _is_reached(self, row: int, delay_ps: int, terms: Terms, num_steps: int = 1) -> bool:
        """Return whether one of the terms is never before a row's end plus a delay, by what so many of them follow."""
        if (row in terms and terms[row] >= delay_ps) or (row == _BEGIN and max(terms.values()) >= delay_ps):
            return True
        return num_steps > 0 and any(
            self._is_reached(row, delay_ps - later_ps, self._since[other], num_steps - 1)
            for other, later_ps in terms.items()
            if other > row
        )

    def _reduced(self, terms: Terms) -> Terms:
        """Return the terms without those that another never comes before."""
        for row, delay_ps in list(terms.items()):
            others = {other: later_ps for other, later_ps in terms.items() if other != row}
            if others and self._is_reached(row, delay_ps, others):
                terms = others
        return terms

    def _keep(self, row: int, terms: Terms, *, is_barrier: bool) -> int:
        """Keep a row that is ready when the terms say; returns its number."""
        least_ps = min(terms.values())
        waits = [self._delayed_end(row, before, delay_ps - least_ps) for before, delay_ps in sorted(terms.items())]
        waits = [before for before in waits if before != _BEGIN]
        return self._add(row, waits, least_ps, terms, is_barrier=is_barrier)

    def _delayed_end(self, row: int, before: int, delay_ps: int) -> int:
        """Return the row that ends so much later than another: itself, or a barrier."""
        if delay_ps == 0:
            return before
        key = (int(self._rows.rank_N[row]), before, delay_ps)
        if key not in self._delayed:
            waits = [] if before == _BEGIN else [before]
            self._delayed[key] = self._add(row, waits, delay_ps, {before: delay_ps}, is_barrier=True)
        return self._delayed[key]

    def _add(self, row: int, waits: list[int], delay_ps: int, since: Terms, *, is_barrier: bool) -> int:
        self._kept.append(_Kept(row=row, is_barrier=is_barrier, waits=waits, delay_ps=delay_ps))
        self._since.append(since)
        return len(self._kept) - 1

    def templates(self, new_rank_R: IntArray) -> CommTrace:
        """Return what is kept, its ranks numbered anew."""
        rows = self._rows
        row_K = np.array([kept.row for kept in self._kept], np.int64)
        is_barrier_K = np.array([kept.is_barrier for kept in self._kept], bool)
        rank_K = new_rank_R[rows.rank_N[row_K]]
        groups, group_K = self._groups(row_K, is_barrier_K, rank_K, new_rank_R)
        texts = {name: list(getattr(rows, name)) for name in ("axis_N", "policy_N", "tag_N")}
        kept_texts: dict[str, Any] = {
            name: tuple(values[row] for row in row_K.tolist()) for name, values in texts.items()
        }
        kept_texts["axis_N"] = tuple(
            ALONE if is_barrier else axis
            for is_barrier, axis in zip(is_barrier_K.tolist(), kept_texts["axis_N"], strict=True)
        )
        peer_K = rows.peer_N[row_K]
        return CommTrace(
            groups=groups,
            rank_N=rank_K,
            operation_N=np.where(is_barrier_K, int(Operation.BARRIER), rows.operation_N[row_K]),
            group_N=group_K,
            peer_N=np.where(is_barrier_K | (peer_K == UNKNOWN), UNKNOWN, new_rank_R[peer_K]),
            bytes_N=np.where(is_barrier_K, 0, rows.bytes_N[row_K]),
            compute_before_ps_N=np.array([kept.delay_ps for kept in self._kept], np.int64),
            step_N=rows.step_N[row_K],
            **kept_texts,
            dependencies=Dependencies.from_lists([kept.waits for kept in self._kept]),
            notes=rows.notes,
        )

    def _groups(
        self, row_K: IntArray, is_barrier_K: Any, rank_K: IntArray, new_rank_R: IntArray
    ) -> tuple[tuple[tuple[int, ...], ...], IntArray]:
        """Return the groups of what is kept, and which of them each row has."""
        folded = [tuple(new_rank_R[list(group)].tolist()) for group in self._rows.groups]
        number: dict[tuple[int, ...], int] = {}
        group_K = [
            number.setdefault((rank,) if is_barrier else folded[group], len(number))
            for rank, is_barrier, group in zip(
                rank_K.tolist(), is_barrier_K.tolist(), self._rows.group_N[row_K].tolist(), strict=True
            )
        ]
        return tuple(number), np.array(group_K, np.int64)


def _latest(parts: list[Terms]) -> Terms:
    """Return the terms of the latest of several; the beginning where there are none."""
    terms: Terms = {}
    for part in parts:
        for row, delay_ps in part.items():
            terms[row] = max(terms.get(row, delay_ps), delay_ps)
    return terms or {_BEGIN: 0}


def _later(terms: Mapping[int, int], delay_ps: int) -> Terms:
    return {row: before_ps + delay_ps for row, before_ps in terms.items()}
