"""Transfers of a trace's collectives, made from their blocks range by range.

A message between two hosts is a transfer over the fabric from NIC to NIC, one inside a host over NVLink from GPU to
GPU. One that leaves through another GPU's NIC crosses NVLink to that GPU first. Ready and done rows, and messages of no
bytes, move nothing and stand between the GPUs.

Shapes: N requests or rows, K connections, C collectives, E edges, with one of each member to itself, D dependencies.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabrictune.collectives.connections import Connections
from fabrictune.collectives.messages import Block, ready_waits
from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.generated_traces import join_dependencies
from fabrictune.foundation.traces import RELAYS, UNKNOWN, CommTrace, Dependencies, Medium, is_acyclic
from fabrictune.topology.placement import Placement


@dataclass(frozen=True, kw_only=True)
class _Ends:
    """What lies at the ends of a block's edges: of messages that move bytes, and of rows that do not."""

    source_CE: IntArray
    destination_CE: IntArray
    medium_CE: IntArray
    connection_CE: IntArray
    source_rank_CE: IntArray
    destination_rank_CE: IntArray
    relayed_from_CE: IntArray  # UNKNOWN where the data are at the NIC's own GPU
    relayed_to_CE: IntArray
    request_CE: IntArray  # the sender's


class Transfers:
    """Transfers of a trace: its requests becoming ready, then those of each block."""

    def __init__(
        self,
        trace: CommTrace,
        placement: Placement,
        blocks: Sequence[Block],
        connections: Connections,
        exit_rank_K: IntArray,
    ) -> None:
        self._trace = trace
        self._blocks = blocks
        self._ready_waits = ready_waits(trace, blocks)
        self._ends = [
            _ends(trace, placement, block, connection_CE, exit_rank_K)
            for block, connection_CE in zip(blocks, connections.connection_CE, strict=True)
        ]

    def __len__(self) -> int:
        return len(self._trace) + sum(block.num_rows for block in self._blocks)

    @property
    def wait_one_way(self) -> bool:
        """Whether whole collectives wait for one another in no circle, and so no transfers do."""
        collective_N = np.zeros(len(self._trace), np.int64)
        num_collectives = 0
        for block in self._blocks:
            collective_C = num_collectives + np.arange(len(block.size_C))
            collective_N[block.batch.request_Cn] = collective_C[:, None]
            num_collectives += len(collective_C)
        return is_acyclic(_merged(self._trace.dependencies, collective_N, num_collectives))

    def column(self, name: str, begin: int, end: int) -> IntArray:
        """Return rows `begin` to `end` - 1 of a column of the TrafficTrace."""
        parts = [self._of_requests(name, begin, min(end, len(self._trace)))]
        for block, ends in zip(self._blocks, self._ends, strict=True):
            column = _COLUMNS[name]
            parts += [column(block, ends, *place) for place in block.rectangles(begin, end)]
        parts = [part for part in parts if len(part)]
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *parts])

    def waits(self, begin: int, end: int) -> Dependencies:
        """Return what rows `begin` to `end` - 1 wait for: offsets from 0, rows of the whole trace."""
        num_requests = len(self._trace)
        offset_N1 = self._ready_waits.offset_N1[min(begin, num_requests) : min(end, num_requests) + 1]
        row_D = self._ready_waits.row_D[offset_N1[0] : offset_N1[-1]]
        parts = [Dependencies(offset_N1=offset_N1 - offset_N1[0], row_D=row_D)]
        for block in self._blocks:
            parts += [block.waits_of(*place) for place in block.rectangles(begin, end)]
        return join_dependencies(parts)

    def _of_requests(self, name: str, begin: int, end: int) -> IntArray:
        """Return rows `begin` to `end` - 1 of a column of the requests becoming ready."""
        if name == "operation_N":
            return np.arange(begin, end)
        columns: Mapping[str, IntArray] = {
            "source_N": self._trace.rank_N,
            "destination_N": self._trace.rank_N,
            "delay_ps_N": self._trace.compute_before_ps_N,
        }
        if name in columns:
            return columns[name][begin:end]
        constants = {"medium_N": int(Medium.NONE)} | dict.fromkeys(("qp_N", *RELAYS), UNKNOWN)
        return np.full(max(end - begin, 0), constants.get(name, 0), np.int64)


def _ends(
    trace: CommTrace, placement: Placement, block: Block, connection_CE: IntArray, exit_rank_K: IntArray
) -> _Ends:
    """Return the ends of a block's edges, those of its done rows included."""
    request_Cn, member = block.batch.request_Cn, np.arange(block.batch.num_members)
    rank_Cn = trace.rank_N[request_Cn]
    sender_E = np.concatenate([block.edges.sender_E, member])
    source_CE, destination_CE = rank_Cn[:, sender_E], rank_Cn[:, np.concatenate([block.edges.receiver_E, member])]
    connection_CE = np.concatenate([connection_CE, np.full(request_Cn.shape, UNKNOWN)], axis=1)
    crosses = connection_CE != UNKNOWN
    exit_CE = np.where(crosses, exit_rank_K[connection_CE] if len(exit_rank_K) else UNKNOWN, source_CE)
    is_relayed = exit_CE != source_CE
    stays = np.where(source_CE == destination_CE, Medium.NONE, Medium.NVLINK)
    return _Ends(
        source_CE=np.where(crosses, placement.nic_R[exit_CE], source_CE),
        destination_CE=np.where(crosses, placement.nic_R[destination_CE], destination_CE),
        medium_CE=np.where(crosses, Medium.FABRIC, stays),
        connection_CE=connection_CE,
        source_rank_CE=source_CE,
        destination_rank_CE=destination_CE,
        relayed_from_CE=np.where(is_relayed, source_CE, UNKNOWN),
        relayed_to_CE=np.where(is_relayed, exit_CE, UNKNOWN),
        request_CE=request_Cn[:, sender_E],
    )


def _where_it_moves(moving: str, resting: str | int) -> Callable[[Block, _Ends, slice, slice], IntArray]:
    """Return the column of one value of each edge, and another for messages of no bytes."""

    def column(block: Block, ends: _Ends, collectives: slice, rows: slice) -> IntArray:
        values = block.of_edges(getattr(ends, moving), collectives, rows)
        if block.has_empty:
            is_empty = block.bytes_of(collectives, rows) == 0
            other = block.of_edges(getattr(ends, resting), collectives, rows) if isinstance(resting, str) else resting
            values = np.where(is_empty, other, values)
        return values

    return column


def _zeros(block: Block, ends: _Ends, collectives: slice, rows: slice) -> IntArray:
    return np.zeros((collectives.stop - collectives.start) * (rows.stop - rows.start), np.int64)


_COLUMNS: Mapping[str, Callable[[Block, _Ends, slice, slice], IntArray]] = {
    "source_N": _where_it_moves("source_CE", "source_rank_CE"),
    "destination_N": _where_it_moves("destination_CE", "destination_rank_CE"),
    "medium_N": _where_it_moves("medium_CE", int(Medium.NONE)),
    "qp_N": _where_it_moves("connection_CE", UNKNOWN),
    "bytes_N": lambda block, ends, collectives, rows: block.bytes_of(collectives, rows),
    "start_ps_N": _zeros,
    "delay_ps_N": _zeros,
    "relayed_from_N": _where_it_moves("relayed_from_CE", UNKNOWN),
    "relayed_to_N": _where_it_moves("relayed_to_CE", UNKNOWN),
    "operation_N": lambda block, ends, *place: block.of_edges(ends.request_CE, *place),
}


def _merged(dependencies: Dependencies, collective_N: IntArray, num_collectives: int) -> Dependencies:
    """Return which collectives the requests of each collective wait for."""
    waiting_D = np.repeat(collective_N, np.diff(dependencies.offset_N1))
    order_D = np.argsort(waiting_D, kind="stable")
    counts = np.bincount(waiting_D, minlength=num_collectives)
    return Dependencies(
        offset_N1=np.concatenate([[0], np.cumsum(counts)]), row_D=collective_N[dependencies.row_D][order_D]
    )
