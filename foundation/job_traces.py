"""JobTrace: the requests of all ranks of a large job, stored once for each pipeline place.

Ranks at one place of the pipeline make the same requests, each of its own groups. So one rank's requests at each place
are templates, of which every rank is an instance: it has its template's rows, with its own groups along the same axes,
and the peers that have the same places in them. A step of 12,288 ranks is eight templates of some thousand rows, where
written out it would be fifty million.

A message goes as far along its axis as the template's, round the group: in a ring all ranks send to their next. A
broadcast's root has the same place in every group.

Shapes: N rows of the templates, P pipeline places, R ranks, A axes, W rows written out, D dependencies of these, M
members of all groups.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Self

import numpy as np

from fabrictune.foundation import traces
from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import InputError, Mistake, TraceError
from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.foundation.tables import read_metadata
from fabrictune.foundation.texts import Texts
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation, concatenate_traces, naming

KIND = "JobTrace"
ALONE = "work"  # in place of an axis for a request of a rank alone
MAX_ROWS = 5_000_000  # written out, at some 200 bytes each
MAX_RANKS = 2**20
_LATER_DEGREES = ("cp", "ep")  # which files without them have as 1
_MESSAGES = (Operation.SEND, Operation.RECEIVE)


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
        return self.layout.world_size // self.layout.pp

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
        self.templates.write(target, kind=KIND, layout=json.dumps(_layout_fields(self.layout)))

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

    def is_along_N(self, axis: Axis) -> BoolArray:
        """Return which rows are requests along an axis."""
        is_along_N: BoolArray = self.axis_N == self.layout.axes.index(axis)
        return is_along_N

    @cached_property
    def axis_N(self) -> IntArray:
        """The axis of each row: a number in the layout's axes, or behind them for a rank alone."""
        axes = _axes_of(self.layout)
        return np.array([axes.index(axis) for axis in self.templates.axis_N], np.int64)


class _Writer:
    """Writes instances of a job's templates."""

    def __init__(self, job: JobTrace) -> None:
        layout, ranks = job.layout, np.arange(job.layout.world_size)
        self._rows = job.templates
        self._axis_N = job.axis_N
        groups_A = [layout.groups(axis) for axis in layout.axes]
        if ALONE in job.templates.axis_N:
            groups_A.append(ranks[:, None])
        self._groups = [tuple(group) for groups in groups_A for group in groups.tolist()]
        self._member_M = np.concatenate([groups.ravel() for groups in groups_A])
        self._degree_A = np.array([groups.shape[1] for groups in groups_A])
        self._number_AR = np.zeros((len(groups_A), len(ranks)), np.int64)  # of a rank's group, among all
        self._begin_AR = np.zeros_like(self._number_AR)  # of its group's members
        self._place_AR = np.zeros_like(self._number_AR)  # of the rank among them
        num_groups = num_members = 0
        for axis, groups in enumerate(groups_A):
            number = np.arange(len(groups))[:, None]
            self._number_AR[axis, groups] = num_groups + number
            self._begin_AR[axis, groups] = num_members + number * groups.shape[1]
            self._place_AR[axis, groups] = np.arange(groups.shape[1])
            num_groups, num_members = num_groups + len(groups), num_members + groups.size
        self._stage_R = layout.coordinates(ranks)["pp"]
        self._begin_P1 = np.searchsorted(self._stage_R[self._rows.rank_N], np.arange(layout.pp + 1))

    def write(self, rank_R: IntArray) -> CommTrace:
        """Return the rows of some ranks, one after another."""
        begin_R = self._begin_P1[self._stage_R[rank_R]]
        length_R = self._begin_P1[self._stage_R[rank_R] + 1] - begin_R
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
        """Return who sends or receives as far away on the row's axis as the template's peer, or has a root's place."""
        peer_W, template_W = self._rows.peer_N[row_W], self._rows.rank_N[row_W]
        is_message_W = np.isin(self._rows.operation_N[row_W], _MESSAGES)
        moved_W = self._place_AR[axis_W, rank_W] - self._place_AR[axis_W, template_W]
        place_W = (self._place_AR[axis_W, peer_W] + is_message_W * moved_W) % self._degree_A[axis_W]
        return np.where(peer_W == UNKNOWN, UNKNOWN, self._member_M[self._begin_AR[axis_W, rank_W] + place_W])


def _axes_of(layout: ParallelLayout) -> tuple[str, ...]:
    """Return the axes that a row may have."""
    return *layout.axes, ALONE


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
    axes = _axes_of(layout)
    strange = sorted(set(rows.axis_N) - set(axes))
    if strange:
        _refuse(f"axis {strange[0]!r}", ", ".join(axes))
    places = [layout.rank(tp=0, dp=0, pp=place) for place in range(layout.pp)]
    if not np.isin(rows.rank_N, places).all() or (np.diff(rows.rank_N) < 0).any():
        _refuse("ranks that are not the first of their pipeline places, in order", ", ".join(map(str, places)))
    if (rows.rank_N[rows.dependencies.row_D] != np.repeat(rows.rank_N, np.diff(rows.dependencies.offset_N1))).any():
        _refuse("a row that waits for another rank's", "rows of its own rank")
    kinds = np.unique(np.stack([rows.rank_N, job.axis_N, rows.group_N, rows.peer_N]), axis=1)
    for rank, axis, group, peer in kinds.T.tolist():
        own = tuple(layout.group_of(layout.axes[axis], rank)) if axis < len(layout.axes) else (rank,)
        if rows.groups[group] != own:
            _refuse(f"rank {rank} in a group of {axes[axis]} of other ranks than the layout's", str(own))
        if peer != UNKNOWN and peer not in own:
            _refuse(f"rank {rank} with peer {peer} along {axes[axis]}", str(own))


def _layout_fields(layout: ParallelLayout) -> dict[str, Any]:
    """Return the layout as JSON values, without later degrees of 1, so that older files and new ones are equal."""
    fields = asdict(layout)
    return {name: value for name, value in fields.items() if name not in _LATER_DEGREES or value > 1}


def _read_layout(metadata: Mapping[str, str]) -> ParallelLayout:
    try:
        degrees = json.loads(metadata["layout"])
        numbers = {name: int(degrees[name]) for name in ("tp", "dp", "pp")}
        later = {name: int(degrees.get(name, 1)) for name in _LATER_DEGREES}
        return ParallelLayout(**numbers, **later, order=tuple(degrees["order"]))
    except (KeyError, TypeError, ValueError, RecursionError, InputError):
        _refuse("no layout in the file's metadata", "degrees of tp, dp and pp, and their order")


def _refuse(found: str, allowed: str, next_step: str = "") -> NoReturn:
    raise TraceError(Mistake(where="job trace", found=found, allowed=allowed, next_step=next_step))
