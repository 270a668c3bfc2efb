"""JobTrace: the requests of all ranks of a large job, stored once for each pipeline place.

Ranks at one place of the pipeline make the same requests, each of its own groups. So one rank's requests at each place
are templates, of which every rank is an instance: it has its template's rows, with its own groups along the same axes,
and the peers that have the same places in them. A step of 12,288 ranks is eight templates of some thousand rows, where
written out it would be fifty million.

Shapes: N rows of the templates, P pipeline places, R ranks, A axes, W rows written out, D dependencies of these.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Self

import numpy as np

from fabrictune.foundation import traces
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake, TraceError
from fabrictune.foundation.layout import AXES, ParallelLayout
from fabrictune.foundation.tables import read_metadata
from fabrictune.foundation.texts import Texts
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, concatenate_traces, naming

KIND = "JobTrace"
ALONE = "work"  # in place of an axis for a request of a rank alone
MAX_ROWS = 5_000_000  # written out, at some 200 bytes each
MAX_RANKS = 2**20
_AXES = (*AXES, ALONE)


@dataclass(frozen=True, kw_only=True)
class JobTrace:
    """The requests of each pipeline place's rank at place 0 of the other axes, place after place.

    A row's group is its rank's along the row's axis, or that rank alone. Raises TraceError.
    """

    layout: ParallelLayout
    templates: CommTrace

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def of_places(cls, layout: ParallelLayout, traces: Sequence[CommTrace]) -> Self:
        """Return the job of which these are the templates, in order of place."""
        joined = concatenate_traces(traces)
        used, group_N = np.unique(joined.group_N, return_inverse=True)
        groups = tuple(joined.groups[group] for group in used.tolist())
        return cls(layout=layout, templates=replace(joined, groups=groups, group_N=group_N.ravel()))

    @property
    def num_instances(self) -> int:
        """Number of ranks that share a template."""
        return self.layout.tp * self.layout.dp

    @property
    def num_requests(self) -> int:
        """Number of requests of all ranks, W."""
        return len(self.templates) * self.num_instances

    def of_rank(self, rank: int) -> CommTrace:
        """Return the requests of one rank; groups have the numbers that they have in `written_out`."""
        return _Writer(self).write(np.array([rank]))

    def written_out(self) -> CommTrace:
        """Return the requests of all ranks, rank after rank; raises TraceError where they are too many."""
        if self.num_requests > MAX_ROWS:
            _refuse(
                f"{self.num_requests:,} requests of {self.layout.world_size:,} ranks",
                f"{MAX_ROWS:,} to be written out",
                "plan a smaller job, or ask for flows, whose requests are added up",
            )
        return _Writer(self).write(np.arange(self.layout.world_size))

    def added_up(self) -> Self:
        """Return the job in which ranks ask once for all the bytes of a group, operation and peer, and wait for none.

        Requests that move nothing are left out.
        """
        rows = self.templates
        moving = np.flatnonzero(rows.bytes_N)
        key_M4 = np.stack([rows.rank_N, rows.operation_N, rows.group_N, rows.peer_N], axis=1)[moving]
        _, first_K, key_M = np.unique(key_M4, axis=0, return_index=True, return_inverse=True)
        bytes_K = np.zeros(len(first_K), np.int64)
        np.add.at(bytes_K, key_M.ravel(), rows.bytes_N[moving])
        order = np.argsort(first_K)
        chosen = moving[first_K[order]]
        zeros = np.zeros(len(chosen), np.int64)
        columns = {**_take(rows, chosen), "bytes_N": bytes_K[order], "compute_before_ps_N": zeros}
        added = CommTrace(groups=rows.groups, dependencies=Dependencies.none(len(chosen)), **columns)
        return replace(self, templates=added)

    def write(self, target: Path | BinaryIO) -> None:
        """Write as Parquet."""
        self.templates.write(target, kind=KIND, layout=json.dumps(asdict(self.layout)))

    @staticmethod
    def is_in(path: Path) -> bool:
        """Return whether a Parquet file holds a job's templates; raises TraceError where it is none."""
        return read_metadata(path, error=TraceError).get(traces.KIND) == KIND

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote; raises TraceError."""
        templates, metadata = CommTrace.read_as(KIND, path)
        with naming(path):
            return cls(layout=_read_layout(metadata), templates=templates)

    @cached_property
    def axis_N(self) -> IntArray:
        """The axis of each row: a number in AXES, or behind them for a rank alone."""
        return np.array([_AXES.index(axis) for axis in self.templates.axis_N], np.int64)


class _Writer:
    """Writes instances of a job's templates."""

    def __init__(self, job: JobTrace) -> None:
        layout = job.layout
        self._rows = job.templates
        self._axis_N = job.axis_N
        ranks = np.arange(layout.world_size)
        place_of_axis = layout.coordinates(ranks)
        self._place_AR = np.stack([*(place_of_axis[axis] for axis in AXES), np.zeros_like(ranks)])
        self._stride_A = np.array([*(_stride(layout, number) for number in range(len(AXES))), 0])
        self._groups = [tuple(group) for axis in AXES for group in layout.groups(axis).tolist()]
        self._number_AR = np.zeros_like(self._place_AR)
        first = 0
        for number, axis in enumerate(AXES):
            groups = layout.groups(axis)
            self._number_AR[number, groups] = first + np.arange(len(groups))[:, None]
            first += len(groups)
        if ALONE in job.templates.axis_N:
            self._groups += [(rank,) for rank in ranks.tolist()]
            self._number_AR[-1] = first + ranks
        self._begin_P1 = np.searchsorted(self._place_AR[AXES.index("pp"), self._rows.rank_N], np.arange(layout.pp + 1))

    def write(self, rank_R: IntArray) -> CommTrace:
        """Return the rows of some ranks, one after another."""
        begin_R = self._begin_P1[self._place_AR[AXES.index("pp"), rank_R]]
        length_R = self._begin_P1[self._place_AR[AXES.index("pp"), rank_R] + 1] - begin_R
        row_W = _ranges(begin_R, length_R)
        rank_W = np.repeat(rank_R, length_R)
        axis_W = self._axis_N[row_W]
        columns = {
            **_take(self._rows, row_W),
            "rank_N": rank_W,
            "group_N": self._number_AR[axis_W, rank_W],
            "peer_N": self._peers(row_W, rank_W, axis_W),
        }
        offset_N1 = self._rows.dependencies.offset_N1
        num_waits_W = np.diff(offset_N1)[row_W]
        moved_W = np.repeat(np.cumsum(length_R) - length_R - begin_R, length_R)
        dependencies = Dependencies(
            offset_N1=np.concatenate([[0], np.cumsum(num_waits_W)]),
            row_D=self._rows.dependencies.row_D[_ranges(offset_N1[row_W], num_waits_W)]
            + np.repeat(moved_W, num_waits_W),
        )
        return CommTrace(groups=tuple(self._groups), dependencies=dependencies, **columns)

    def _peers(self, row_W: IntArray, rank_W: IntArray, axis_W: IntArray) -> IntArray:
        """Return who has the place on the row's axis that the template's peer has there."""
        peer_W = self._rows.peer_N[row_W]
        away_W = self._place_AR[axis_W, peer_W] - self._place_AR[axis_W, rank_W]
        return np.where(peer_W == UNKNOWN, UNKNOWN, rank_W + away_W * self._stride_A[axis_W])


def _stride(layout: ParallelLayout, axis: int) -> int:
    """Return by how much the ranks of neighbours along an axis differ."""
    before = layout.order[: layout.order.index(AXES[axis])]
    return int(np.prod([layout.degree(axis) for axis in before], dtype=np.int64))


def _ranges(begin_R: IntArray, length_R: IntArray) -> IntArray:
    """Return the numbers from each beginning on, as many as each length says, one range after another."""
    first_R = np.cumsum(length_R) - length_R
    return np.repeat(begin_R - first_R, length_R) + np.arange(length_R.sum())


def _take(rows: CommTrace, row_W: IntArray) -> dict[str, Any]:
    """Return the columns of some rows."""
    columns: dict[str, Any] = {}
    for name, values in vars(rows).items():
        if name.endswith("_N"):
            columns[name] = values[row_W] if isinstance(values, np.ndarray) else Texts.of(values).take(row_W)
    return columns


def _check(job: JobTrace) -> None:
    layout, rows = job.layout, job.templates
    if layout.world_size > MAX_RANKS:
        _refuse(f"a layout of {layout.world_size:,} ranks", f"up to {MAX_RANKS:,}")
    strange = sorted(set(rows.axis_N) - set(_AXES))
    if strange:
        _refuse(f"axis {strange[0]!r}", ", ".join(_AXES))
    places = [layout.rank(tp=0, dp=0, pp=place) for place in range(layout.pp)]
    if not np.isin(rows.rank_N, places).all() or (np.diff(rows.rank_N) < 0).any():
        _refuse("ranks that are not the first of their pipeline places, in order", ", ".join(map(str, places)))
    if (rows.rank_N[rows.dependencies.row_D] != np.repeat(rows.rank_N, np.diff(rows.dependencies.offset_N1))).any():
        _refuse("a row that waits for another rank's", "rows of its own rank")
    kinds = np.unique(np.stack([rows.rank_N, job.axis_N, rows.group_N, rows.peer_N]), axis=1)
    for rank, axis, group, peer in kinds.T.tolist():
        own = tuple(layout.group_of(AXES[axis], rank)) if axis < len(AXES) else (rank,)
        if rows.groups[group] != own:
            _refuse(f"rank {rank} in a group of {_AXES[axis]} of other ranks than the layout's", str(own))
        if peer != UNKNOWN and peer not in own:
            _refuse(f"rank {rank} with peer {peer} along {_AXES[axis]}", str(own))


def _read_layout(metadata: Mapping[str, str]) -> ParallelLayout:
    try:
        degrees = json.loads(metadata["layout"])
        numbers = {axis: int(degrees[axis]) for axis in AXES}
        return ParallelLayout(**numbers, order=tuple(degrees["order"]))
    except (KeyError, TypeError, ValueError, RecursionError, InputError):
        _refuse("no layout in the file's metadata", "degrees of tp, dp and pp, and their order")


def _refuse(found: str, allowed: str, next_step: str = "") -> NoReturn:
    raise TraceError(Mistake(where="job trace", found=found, allowed=allowed, next_step=next_step))
