"""Traces scaled to more data-parallel replicas: what the traced ones request, repeated for the others.

Replica e of the larger job has the requests, and the work between them, of the traced replica e modulo their number.
Groups within a replica are repeated with it, groups along dp grow to all replicas. Buffers keep their size: of a
reduction, a gather or a scatter it is the whole one of a rank, whose shards shrink as replicas are added.

Left out: padding of buffers to a multiple of the replicas; expert parallelism divides dp and keeps its degree.

Shapes: N rows of the trace, K instances of a row, R ranks, G groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.job_traces import MAX_ROWS
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.texts import Texts
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Dependencies, Operation


def scale_trace(trace: CommTrace, traced: ParallelLayout, layout: ParallelLayout) -> CommTrace:
    """Return the trace of a job of `layout`, of which `traced` is the part in the trace; raises InputError.

    A note says what is assumed of the replicas that were not traced.
    """
    _check_layouts(traced, layout)
    num_rows = len(trace) * layout.dp // traced.dp
    if num_rows > MAX_ROWS:
        _refuse(f"{num_rows:,} requests of {layout.world_size:,} ranks", f"up to {MAX_ROWS:,}", "take fewer steps")
    replicas = _Replicas(traced=traced, layout=layout)
    row_W, replica_W = replicas.instances(trace.rank_N)
    rank_W = replicas.moved(trace.rank_N[row_W], replica_W)
    order = np.argsort(rank_W, kind="stable")
    row_W, replica_W, rank_W = row_W[order], replica_W[order], rank_W[order]
    along_dp_G = np.array([replicas.is_along_dp(group, number) for number, group in enumerate(trace.groups)], bool)
    groups, group_W = _groups(trace, replicas, along_dp_G, row_W, replica_W)
    return CommTrace(
        groups=groups,
        rank_N=rank_W,
        group_N=group_W,
        peer_N=_peers(trace, replicas, along_dp_G, row_W, replica_W),
        **_taken(trace, row_W),
        dependencies=_dependencies(trace, replicas, row_W, replica_W),
        notes=(*trace.notes, _note(traced, layout)),
    )


@dataclass(frozen=True, kw_only=True)
class _Replicas:
    """The ranks of two layouts that differ in their number of replicas: places along dp, without those of ep."""

    traced: ParallelLayout
    layout: ParallelLayout

    @property
    def num_traced(self) -> int:
        """Number of traced replicas."""
        return self.traced.dp // self.traced.ep

    @property
    def num_replicas(self) -> int:
        """Number of replicas of the whole job."""
        return self.layout.dp // self.layout.ep

    def of(self, rank_R: IntArray) -> IntArray:
        """Return the replica of traced ranks."""
        return np.asarray(self.traced.coordinates(rank_R)["dp"] // self.traced.ep, np.int64)

    def moved(self, rank_R: IntArray, replica_R: IntArray) -> IntArray:
        """Return the ranks of the whole job at the places of traced ranks, in these replicas."""
        places = self.traced.coordinates(rank_R)
        places["dp"] = places["dp"] % self.traced.ep + replica_R * self.traced.ep
        rank, stride = np.zeros(len(rank_R), np.int64), 1
        for axis in self.layout.rank_order:
            rank += places[axis] * stride
            stride *= self.layout.degree(axis)
        return rank

    def instances(self, rank_N: IntArray) -> tuple[IntArray, IntArray]:
        """Return the row and the replica of each instance of each row."""
        replica_N = self.of(rank_N)
        parts = [np.flatnonzero(replica_N == replica % self.num_traced) for replica in range(self.num_replicas)]
        return np.concatenate(parts), np.repeat(np.arange(self.num_replicas), [len(rows) for rows in parts])

    def is_along_dp(self, group: Sequence[int], number: int) -> bool:
        """Return whether a group has members in all replicas, not only in one; raises InputError for some."""
        ranks = np.array(group, np.int64)
        replicas, counts = np.unique(self.of(ranks), return_counts=True)
        if len(replicas) < 2:
            return False
        elsewhere = np.unique(self.moved(ranks, np.zeros_like(ranks)))
        is_whole = len(replicas) == self.num_traced and (counts == len(elsewhere)).all()
        if not is_whole or list(group) != sorted(group):
            shown = ", ".join(map(str, group[:8])) + (", ..." if len(group) > 8 else "")
            found = f"group {number} of ranks {shown}, which are no whole groups of {self.traced.describe()}"
            _refuse(found, "groups within a replica, or over all replicas in the order of ranks")
        return True

    def grown(self, group: Sequence[int]) -> tuple[int, ...]:
        """Return the members of a group along dp in the whole job."""
        ranks = np.array(group, np.int64)
        moved = [self.moved(ranks, np.full_like(ranks, replica)) for replica in range(self.num_replicas)]
        return tuple(np.unique(np.concatenate(moved)).tolist())


def _groups(
    trace: CommTrace, replicas: _Replicas, along_dp_G: BoolArray, row_W: IntArray, replica_W: IntArray
) -> tuple[tuple[tuple[int, ...], ...], IntArray]:
    """Return the groups of the whole job, and the number of each row's; raises InputError."""
    _refuse_all_to_all(trace, along_dp_G)
    kind_W = trace.group_N[row_W]
    copy_W = np.where(along_dp_G[kind_W], 0, replica_W)
    keys, group_W = np.unique(kind_W * replicas.num_replicas + copy_W, return_inverse=True)
    groups = []
    for kind, replica in zip(*(part.tolist() for part in np.divmod(keys, replicas.num_replicas)), strict=True):
        ranks = np.array(trace.groups[kind], np.int64)
        own = tuple(replicas.moved(ranks, np.full_like(ranks, replica)).tolist())
        groups.append(replicas.grown(trace.groups[kind]) if along_dp_G[kind] else own)
    return tuple(groups), group_W.ravel()


def _refuse_all_to_all(trace: CommTrace, along_dp_G: BoolArray) -> None:
    """Refuse an exchange among all replicas: what each sends to a new one is not known."""
    is_exchange_N = along_dp_G[trace.group_N] & (trace.operation_N == Operation.ALL_TO_ALL)
    if is_exchange_N.any():
        row = int(np.argmax(is_exchange_N))
        _refuse(f"row {row}: an all-to-all among all replicas", "exchanges within a replica")


def _peers(
    trace: CommTrace, replicas: _Replicas, along_dp_G: BoolArray, row_W: IntArray, replica_W: IntArray
) -> IntArray:
    """Return the peers: of a message in the same replica, the root of a broadcast among replicas where it was."""
    peer_N = trace.peer_N
    has_peer_N = peer_N != UNKNOWN
    strange = np.flatnonzero(has_peer_N & ((peer_N < 0) | (peer_N >= replicas.traced.world_size)))
    if len(strange):
        _refuse(f"row {strange[0]}: rank {peer_N[strange[0]]} as a peer", f"0 to {replicas.traced.world_size - 1}")
    peer_replica_N = np.where(has_peer_N, replicas.of(np.where(has_peer_N, peer_N, 0)), replicas.of(trace.rank_N))
    crosses_N = peer_replica_N != replicas.of(trace.rank_N)
    is_message_N = np.isin(trace.operation_N, [Operation.SEND, Operation.RECEIVE])
    if (crosses_N & is_message_N).any():
        row = int(np.argmax(crosses_N & is_message_N))
        _refuse(f"row {row}: a message from one replica to another", "messages within a replica")
    stays_W = along_dp_G[trace.group_N[row_W]]
    at_W = np.where(stays_W, peer_replica_N[row_W], replica_W)
    moved_W = replicas.moved(np.where(has_peer_N, peer_N, 0)[row_W], at_W)
    return np.where(has_peer_N[row_W], moved_W, UNKNOWN)


def _dependencies(trace: CommTrace, replicas: _Replicas, row_W: IntArray, replica_W: IntArray) -> Dependencies:
    """Return what each row waits for: the same rows of its replica."""
    waiting_D = np.repeat(np.arange(len(trace)), np.diff(trace.dependencies.offset_N1))
    replica_N = replicas.of(trace.rank_N)
    crosses_D = replica_N[waiting_D] != replica_N[trace.dependencies.row_D]
    if crosses_D.any():
        row = int(waiting_D[np.argmax(crosses_D)])
        _refuse(f"row {row}: it waits for a request of another replica", "waits within a replica")
    num_waits_W = np.diff(trace.dependencies.offset_N1)[row_W]
    offset_W1 = np.concatenate([[0], np.cumsum(num_waits_W)])
    first_W = trace.dependencies.offset_N1[row_W] - offset_W1[:-1]
    wait_D = trace.dependencies.row_D[np.repeat(first_W, num_waits_W) + np.arange(offset_W1[-1])]
    key_W = row_W * replicas.num_replicas + replica_W
    order_W = np.argsort(key_W)
    place_D = np.searchsorted(key_W[order_W], wait_D * replicas.num_replicas + np.repeat(replica_W, num_waits_W))
    return Dependencies(offset_N1=offset_W1, row_D=order_W[place_D])


def _taken(trace: CommTrace, row_W: IntArray) -> dict[str, Any]:
    """Return the columns that rows keep; times that were measured are those of other ranks."""
    names = ("operation_N", "bytes_N", "compute_before_ps_N", "step_N")
    columns: dict[str, Any] = {name: getattr(trace, name)[row_W] for name in names}
    return columns | {name: Texts.of(getattr(trace, name)).take(row_W) for name in ("axis_N", "policy_N", "tag_N")}


def _check_layouts(traced: ParallelLayout, layout: ParallelLayout) -> None:
    if replace(traced, dp=layout.dp) != layout or layout.dp < traced.dp:
        raise InputError(
            Mistake(
                where="layout",
                found=f"{layout.describe()}, of a trace of {traced.describe()}",
                allowed="the traced degrees, and more of dp: the others change the work of a rank",
                next_step="trace or plan a job of these degrees (train plan)",
            )
        )
    if traced.dp // traced.ep < 2:
        raise InputError(
            Mistake(
                where="traced_layout",
                found=f"{traced.describe()}: one replica, which requests nothing of others",
                allowed="two replicas or more",
                next_step="trace a job of dp 2",
            )
        )


def _note(traced: ParallelLayout, layout: ParallelLayout) -> str:
    return (
        f"trace of {traced.describe()} scaled to {layout.describe()}: replicas repeat the requests and the work of the "
        "traced ones, buffers along dp keep their size"
    )


def _refuse(found: str, allowed: str, next_step: str = "") -> NoReturn:
    raise InputError(Mistake(where="traced_layout", found=found, allowed=allowed, next_step=next_step))
