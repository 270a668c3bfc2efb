"""Matching of requests: the k-th request of every member of a group is one collective.

The k-th send from one rank to another in a group meets the k-th receive, and the two are one message.

Source: the rules of MPI and NCCL: members of a communicator call collectives on it in the same order, and messages
between two of them do not overtake one another.

Shapes: N requests, G groups, C collectives, n members, B collectives of any kind, R requests of the kind in hand.
"""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation


@dataclass(frozen=True, kw_only=True)
class Batch:
    """C collectives of one operation among n members each, in order of group, then of time.

    A message is a SEND between two members, of which the first sends.
    """

    operation: Operation
    group_C: IntArray
    bytes_C: IntArray
    request_Cn: IntArray  # row of each member's request, in ring order; a broadcast's from its root on

    @property
    def num_members(self) -> int:
        """n."""
        return int(self.request_Cn.shape[1])


def match_requests(trace: CommTrace) -> tuple[Batch, ...]:
    """Return the collectives of a trace, those of one operation and group size together; raises TraceError."""
    is_message_N = np.isin(trace.operation_N, [Operation.SEND, Operation.RECEIVE])
    batches = _match_collectives(trace, np.nonzero(~is_message_N)[0])
    if is_message_N.any():
        batches.append(_match_messages(trace, np.nonzero(is_message_N)[0]))
    return tuple(batches)


def occurrences(key_R: IntArray) -> IntArray:
    """Return, for each row, how many of the same key stand before it."""
    order_R = np.argsort(key_R, kind="stable")
    sorted_R = key_R[order_R]
    occurrence_R = np.empty(len(key_R), np.int64)
    occurrence_R[order_R] = np.arange(len(key_R)) - np.searchsorted(sorted_R, sorted_R)
    return occurrence_R


def _match_messages(trace: CommTrace, row_R: IntArray) -> Batch:
    """Return the messages between two ranks: the sends and receives among the rows `row_R` of the trace."""
    is_send_R = trace.operation_N[row_R] == Operation.SEND
    rank_R, peer_R = trace.rank_N[row_R], trace.peer_N[row_R]
    _check_peers(trace, row_R)
    ends_R3 = np.stack(
        [trace.group_N[row_R], np.where(is_send_R, rank_R, peer_R), np.where(is_send_R, peer_R, rank_R)], axis=1
    )
    _, edge_R = np.unique(ends_R3, axis=0, return_inverse=True)
    edge_R = edge_R.ravel()
    occurrence_R = occurrences(edge_R * 2 + is_send_R)
    order_R = np.lexsort((~is_send_R, occurrence_R, edge_R))
    edge_R, occurrence_R, is_send_R = edge_R[order_R], occurrence_R[order_R], is_send_R[order_R]
    send, receive = order_R[is_send_R], order_R[~is_send_R]
    is_paired = len(send) == len(receive) and bool(
        (edge_R[is_send_R] == edge_R[~is_send_R]).all() and (occurrence_R[is_send_R] == occurrence_R[~is_send_R]).all()
    )
    if not is_paired:
        _refuse_unpaired(trace, row_R[order_R], edge_R, is_send_R)
    request_C2 = np.stack([row_R[send], row_R[receive]], axis=1)
    _check_agreement(trace, request_C2[:, 1], request_C2[:, 0], ("size",))
    return Batch(
        operation=Operation.SEND,
        group_C=trace.group_N[request_C2[:, 0]],
        bytes_C=trace.bytes_N[request_C2[:, 0]],
        request_Cn=request_C2,
    )


def _check_peers(trace: CommTrace, row_R: IntArray) -> None:
    for row in row_R.tolist():
        rank, peer, group = int(trace.rank_N[row]), int(trace.peer_N[row]), int(trace.group_N[row])
        if peer == rank or peer not in trace.groups[group]:
            _refuse(row, f"rank {peer} as the other end of rank {rank}'s message", f"another member of group {group}")


def _refuse_unpaired(trace: CommTrace, row_R: IntArray, edge_R: IntArray, is_send_R: IntArray) -> NoReturn:
    """Raise TraceError for the first edge with more sends than receives, or fewer."""
    num_edges = int(edge_R.max()) + 1
    sends = np.bincount(edge_R[is_send_R], minlength=num_edges)
    receives = np.bincount(edge_R[~is_send_R], minlength=num_edges)
    edge = int(np.nonzero(sends != receives)[0][0])
    row = int(row_R[np.argmax(edge_R == edge)])
    ends = (int(trace.rank_N[row]), int(trace.peer_N[row]))
    source, destination = ends if trace.operation_N[row] == Operation.SEND else ends[::-1]
    found = f"{sends[edge]} sends from rank {source} to {destination} and {receives[edge]} receives"
    raise TraceError(
        Mistake(
            where=f"communication trace, group {trace.group_N[row]}", found=found, allowed="a receive for each send"
        )
    )


def _match_collectives(trace: CommTrace, row_R: IntArray) -> list[Batch]:
    """Return the collectives among the rows `row_R` of the trace."""
    if not len(row_R):
        return []
    occurrence_R = occurrences(trace.group_N[row_R] * (1 + trace.rank_N.max(initial=0)) + trace.rank_N[row_R])
    order_R = np.lexsort((_position_in_ring(trace, row_R), occurrence_R, trace.group_N[row_R]))
    order_N = row_R[order_R]
    group_N, occurrence_N = trace.group_N[order_N], occurrence_R[order_R]
    is_first_N = np.ones(len(order_N), bool)
    is_first_N[1:] = (np.diff(group_N) != 0) | (np.diff(occurrence_N) != 0)
    first_B = np.nonzero(is_first_N)[0]
    length_B = np.diff(np.append(first_B, len(order_N)))
    size_G = np.array([len(group) for group in trace.groups], np.int64)
    incomplete = np.nonzero(length_B != size_G[group_N[first_B]])[0]
    if len(incomplete):
        _refuse_incomplete(trace, row_R, int(group_N[first_B[incomplete[0]]]))
    _check_agreement(trace, order_N, np.repeat(order_N[first_B], length_B), ("operation", "size", "root"))

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
    return batches


def _position_in_ring(trace: CommTrace, row_R: IntArray) -> IntArray:
    """Return the place of each row's rank in its group, counted from the root in a broadcast."""
    member = np.array(
        [(group, rank, place) for group, ranks in enumerate(trace.groups) for place, rank in enumerate(ranks)],
        np.int64,
    )
    stride = 1 + member[:, 1].max()
    key = member[:, 0] * stride + member[:, 1]
    order = np.argsort(key)

    def places(rows: IntArray, ranks: IntArray) -> IntArray:
        wanted_key = trace.group_N[rows] * stride + ranks
        found = order[np.minimum(np.searchsorted(key[order], wanted_key), len(order) - 1)]
        foreign = np.nonzero((key[found] != wanted_key) | (ranks < 0) | (ranks >= stride))[0]
        if len(foreign):
            row, rank = rows[foreign[0]], ranks[foreign[0]]
            _refuse(row, f"root {rank}, which is not in group {trace.group_N[row]}", "a member of the group")
        return np.asarray(member[found, 2], np.int64)

    position_R = places(row_R, trace.rank_N[row_R])
    is_rooted_R = trace.operation_N[row_R] == Operation.BROADCAST
    rooted = row_R[is_rooted_R]
    size_G = np.array([len(group) for group in trace.groups], np.int64)
    position_R[is_rooted_R] -= places(rooted, trace.peer_N[rooted])
    position_R[is_rooted_R] %= size_G[trace.group_N[rooted]]
    return position_R


def _check_agreement(trace: CommTrace, row_N: IntArray, partner_N: IntArray, columns: tuple[str, ...]) -> None:
    """Refuse rows that name other things than their partners in the named columns."""
    root_N = np.where(trace.operation_N == Operation.BROADCAST, trace.peer_N, UNKNOWN)
    column_of = {"operation": trace.operation_N, "size": trace.bytes_N, "root": root_N}
    for what in columns:
        column_N = column_of[what]
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


def _refuse_incomplete(trace: CommTrace, row_R: IntArray, group: int) -> None:
    ranks = np.asarray(trace.groups[group])
    rank_R = trace.rank_N[row_R][trace.group_N[row_R] == group]
    count = np.array([np.count_nonzero(rank_R == rank) for rank in ranks])
    fewest, most = int(np.argmin(count)), int(np.argmax(count))
    raise TraceError(
        Mistake(
            where=f"communication trace, group {group}",
            found=f"rank {ranks[fewest]} makes {count[fewest]} requests, rank {ranks[most]} makes {count[most]}",
            allowed="as many from every member",
        )
    )
