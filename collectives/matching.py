"""Which requests meet: the k-th request of every member of a group is one collective.

Source: the rule of MPI and NCCL: members of a communicator call collectives on it in the same order.

Shapes: N requests, G groups, C collectives, n members, B collectives of any kind.
"""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from foundation.errors import Mistake, TraceError
from foundation.traces import UNKNOWN, CommTrace, IntColumn, Operation


@dataclass(frozen=True, kw_only=True)
class Batch:
    """C collectives of one operation among n members each, in order of group, then of time."""

    operation: Operation
    group_C: IntColumn
    bytes_C: IntColumn
    request_Cn: IntColumn  # row of each member's request, in ring order; a broadcast's from its root on

    @property
    def num_members(self) -> int:
        """n."""
        return int(self.request_Cn.shape[1])


def match(trace: CommTrace) -> tuple[Batch, ...]:
    """Return the collectives of a trace, those of one operation and group size together; raises TraceError."""
    if not len(trace):
        return ()
    occurrence_N = _occurrence(trace)
    order_N = np.lexsort((_position_in_ring(trace), occurrence_N, trace.group_N))
    group_N, occurrence_N = trace.group_N[order_N], occurrence_N[order_N]
    is_first_N = np.ones(len(trace), bool)
    is_first_N[1:] = (np.diff(group_N) != 0) | (np.diff(occurrence_N) != 0)
    first_B = np.nonzero(is_first_N)[0]
    length_B = np.diff(np.append(first_B, len(trace)))
    size_G = np.array([len(group) for group in trace.groups], np.int64)
    incomplete = np.nonzero(length_B != size_G[group_N[first_B]])[0]
    if len(incomplete):
        _refuse_incomplete(trace, int(group_N[first_B[incomplete[0]]]))
    _check_agreement(trace, order_N, np.repeat(order_N[first_B], length_B))

    operation_B = trace.operation_N[order_N[first_B]]
    kinds, kind_B = np.unique(np.stack([operation_B, length_B]), axis=1, return_inverse=True)
    batches = []
    for kind, (operation, num_members) in enumerate(kinds.T):
        first_C = first_B[kind_B == kind]
        batches.append(
            Batch(
                operation=Operation(operation),
                group_C=group_N[first_C],
                bytes_C=trace.bytes_N[order_N[first_C]],
                request_Cn=order_N[first_C[:, None] + np.arange(num_members)],
            )
        )
    return tuple(batches)


def _occurrence(trace: CommTrace) -> IntColumn:
    """Return, for each request, how many its rank has made to the same group before."""
    key_N = trace.group_N * (1 + trace.rank_N.max(initial=0)) + trace.rank_N
    order_N = np.argsort(key_N, kind="stable")
    sorted_N = key_N[order_N]
    occurrence_N = np.empty(len(trace), np.int64)
    occurrence_N[order_N] = np.arange(len(trace)) - np.searchsorted(sorted_N, sorted_N)
    return occurrence_N


def _position_in_ring(trace: CommTrace) -> IntColumn:
    """Return the place of each request's rank in its group, counted from the root in a broadcast."""
    member = np.array(
        [(group, rank, place) for group, ranks in enumerate(trace.groups) for place, rank in enumerate(ranks)],
        np.int64,
    )
    stride = 1 + member[:, 1].max()
    key = member[:, 0] * stride + member[:, 1]
    order = np.argsort(key)

    def places(rows: IntColumn, ranks: IntColumn) -> IntColumn:
        wanted = trace.group_N[rows] * stride + ranks
        found = order[np.minimum(np.searchsorted(key[order], wanted), len(order) - 1)]
        foreign = np.nonzero((key[found] != wanted) | (ranks < 0) | (ranks >= stride))[0]
        if len(foreign):
            row, rank = rows[foreign[0]], ranks[foreign[0]]
            _refuse(row, f"root {rank}, which is not in group {trace.group_N[row]}", "a member of the group")
        return np.asarray(member[found, 2], np.int64)

    position_N = places(np.arange(len(trace)), trace.rank_N)
    rooted = np.nonzero(trace.operation_N == Operation.BROADCAST)[0]
    size_G = np.array([len(group) for group in trace.groups], np.int64)
    position_N[rooted] -= places(rooted, trace.peer_N[rooted])
    position_N[rooted] %= size_G[trace.group_N[rooted]]
    return position_N


def _check_agreement(trace: CommTrace, row_N: IntColumn, partner_N: IntColumn) -> None:
    """Refuse a collective whose members name different things; `partner_N` are the first members."""
    root_N = np.where(trace.operation_N == Operation.BROADCAST, trace.peer_N, UNKNOWN)
    for column_N, what in ((trace.operation_N, "operation"), (trace.bytes_N, "size"), (root_N, "root")):
        differs = np.nonzero(column_N[row_N] != column_N[partner_N])[0]
        if len(differs):
            row, partner = int(row_N[differs[0]]), int(partner_N[differs[0]])
            _refuse(
                row,
                f"rank {trace.rank_N[row]} asks group {trace.group_N[row]} for {_ask(trace, row)} where rank "
                f"{trace.rank_N[partner]} (row {partner}) asks for {_ask(trace, partner)}",
                f"the same {what} from every member, in the same order",
            )


def _ask(trace: CommTrace, row: int) -> str:
    operation = Operation(trace.operation_N[row])
    root = f" from rank {trace.peer_N[row]}" if operation == Operation.BROADCAST else ""
    return f"{operation.name.lower()} of {trace.bytes_N[row]} B{root}"


def _refuse(row: int, found: str, allowed: str) -> NoReturn:
    raise TraceError(Mistake(where=f"communication trace, row {row}", found=found, allowed=allowed))


def _refuse_incomplete(trace: CommTrace, group: int) -> None:
    ranks = np.asarray(trace.groups[group])
    count = np.array([np.count_nonzero((trace.group_N == group) & (trace.rank_N == rank)) for rank in ranks])
    fewest, most = int(np.argmin(count)), int(np.argmax(count))
    raise TraceError(
        Mistake(
            where=f"communication trace, group {group}",
            found=f"rank {ranks[fewest]} makes {count[fewest]} requests, rank {ranks[most]} makes {count[most]}",
            allowed="as many from every member",
        )
    )
