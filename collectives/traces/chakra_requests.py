"""What the nodes of a Chakra trace ask of the network.

Shapes: N nodes, G groups.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from fabrictune.collectives.traces.chakra_nodes import ABSENT, INVALID, Nodes
from fabrictune.collectives.traces.chakra_schema import CollectiveType, NodeType
from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import UNKNOWN, Operation

OPERATIONS = {
    CollectiveType.ALL_REDUCE: Operation.ALL_REDUCE,
    CollectiveType.ALL_GATHER: Operation.ALL_GATHER,
    CollectiveType.BROADCAST: Operation.BROADCAST,
    CollectiveType.ALL_TO_ALL: Operation.ALL_TO_ALL,
    CollectiveType.REDUCE_SCATTER: Operation.REDUCE_SCATTER,
    CollectiveType.REDUCE_SCATTER_BLOCK: Operation.REDUCE_SCATTER,
    CollectiveType.BARRIER: Operation.BARRIER,
}
_WITHOUT_PEER = "MLCommons' converter leaves out the peers of messages: read the PyTorch profile itself, which has them"


@dataclass(frozen=True, kw_only=True)
class Requests:
    """What each of N nodes asks for."""

    operation_N: IntArray  # UNKNOWN for work
    group_N: IntArray  # row of `groups`
    groups: Sequence[tuple[int, ...]]
    peer_N: IntArray
    bytes_N: IntArray
    is_on_host_N: BoolArray  # the call of a collective, whose kernel has a node of its own
    num_of_group: Mapping[str, int]  # collectives by the name of their group, "" without one


def requests_of(nodes: Nodes, rank: int, ranks: tuple[int, ...], of_name: Mapping[str, tuple[int, ...]]) -> Requests:
    """Return the requests of a rank's nodes, in groups by their names or of all ranks.

    Raises TraceError for the first node that is none.
    """
    kind_N, bytes_N = nodes.numbers["comm_type"], nodes.numbers["comm_size"]
    is_send_N, is_receive_N = nodes.type_N == NodeType.SEND, nodes.type_N == NodeType.RECEIVE
    is_collective_N = nodes.type_N == NodeType.COLLECTIVE
    is_on_host_N = is_collective_N & (kind_N == ABSENT) & nodes.runs_on_host_N
    is_collective_N &= ~is_on_host_N
    operation_N = np.where(is_collective_N, _operations(kind_N), UNKNOWN)
    operation_N[is_send_N], operation_N[is_receive_N] = Operation.SEND, Operation.RECEIVE
    peer_N = np.full(len(nodes), UNKNOWN)
    peer_N[is_send_N] = nodes.numbers["comm_dst"][is_send_N]
    peer_N[is_receive_N] = nodes.numbers["comm_src"][is_receive_N]
    names = (*nodes.group_names, "")  # the last for ABSENT
    groups = [of_name.get(name, ranks) for name in names]
    is_outside_N = np.array([rank not in group for group in groups])[nodes.group_N]
    is_broadcast_N = operation_N == Operation.BROADCAST
    has_bytes_N = (operation_N != UNKNOWN) & (operation_N != Operation.BARRIER)
    _refuse_first(
        (is_send_N & (peer_N < 0), lambda row: _refuse_number(nodes, row, "comm_dst")),
        (is_receive_N & (peer_N < 0), lambda row: _refuse_number(nodes, row, "comm_src")),
        (is_collective_N & (kind_N < 0), lambda row: _refuse_number(nodes, row, "comm_type")),
        (is_collective_N & (operation_N == UNKNOWN), lambda row: _refuse_type(nodes, row)),
        (is_collective_N & is_outside_N, lambda row: _refuse_rank(nodes, row, rank)),
        (has_bytes_N & (bytes_N < 0), lambda row: _refuse_number(nodes, row, "comm_size")),
        (is_broadcast_N & (nodes.numbers["root"] == INVALID), lambda row: _refuse_number(nodes, row, "root")),
    )
    first_G = np.array([group[0] for group in groups])
    root_N = np.where(nodes.numbers["root"] == ABSENT, first_G[nodes.group_N], nodes.numbers["root"])
    peer_N[is_broadcast_N] = root_N[is_broadcast_N]
    num_of_G = np.bincount(nodes.group_N[is_collective_N] % len(names), minlength=len(names))
    group_N = nodes.group_N % len(names)
    is_message_N = is_send_N | is_receive_N
    group_N[is_message_N], ends = _groups_of_messages(peer_N[is_message_N], rank, ranks, len(groups))
    return Requests(
        operation_N=operation_N,
        group_N=group_N,
        groups=[*groups, *ends],
        peer_N=peer_N,
        bytes_N=np.where(has_bytes_N, bytes_N, 0),
        is_on_host_N=is_on_host_N,
        num_of_group={name: int(count) for name, count in zip(names, num_of_G, strict=True) if count},
    )


def _operations(kind_N: IntArray) -> IntArray:
    """Return the operations of types, UNKNOWN for others."""
    of_type = np.full(max(CollectiveType) + 2, UNKNOWN)
    for kind, operation in OPERATIONS.items():
        of_type[kind] = operation
    return of_type[np.where((kind_N >= 0) & (kind_N <= max(CollectiveType)), kind_N, len(of_type) - 1)]


def _groups_of_messages(
    peer_M: IntArray, rank: int, ranks: tuple[int, ...], first: int
) -> tuple[IntArray, list[tuple[int, ...]]]:
    """Return the group of each message, numbered from `first` on: all ranks with a file, and its two ends."""
    peers, row_M = np.unique(peer_M, return_inverse=True)
    own = {*ranks, rank}
    everyone = tuple(sorted(own))
    groups = [everyone if peer in own else tuple(sorted({*own, peer})) for peer in peers.tolist()]
    return first + row_M.ravel(), groups


def _refuse_first(*mistakes: tuple[BoolArray, Callable[[int], NoReturn]]) -> None:
    """Raise the mistake of the first node that has one, of several the first."""
    firsts = [(int(np.argmax(is_wrong_N)), refuse) for is_wrong_N, refuse in mistakes if is_wrong_N.any()]
    if firsts:
        row, refuse = min(firsts, key=lambda first: first[0])
        refuse(row)


def _refuse_number(nodes: Nodes, row: int, name: str) -> NoReturn:
    is_absent = nodes.numbers[name][row] == ABSENT
    found = "none" if is_absent else nodes.written[row, name]
    next_step = _WITHOUT_PEER if is_absent and name in ("comm_dst", "comm_src") else ""
    where, allowed = f"{nodes.where(row)}, {name}", "a whole number, not negative"
    raise TraceError(Mistake(where=where, found=found, allowed=allowed, next_step=next_step))


def _refuse_type(nodes: Nodes, row: int) -> NoReturn:
    found = f"collective type {nodes.numbers['comm_type'][row]}"
    allowed = ", ".join(f"{one.value} ({one.name.lower()})" for one in OPERATIONS)
    raise TraceError(Mistake(where=nodes.where(row), found=found, allowed=allowed))


def _refuse_rank(nodes: Nodes, row: int, rank: int) -> NoReturn:
    found = f"group {nodes.group_names[nodes.group_N[row]]!r}, which rank {rank} is not in"
    raise TraceError(Mistake(where=nodes.where(row), found=found))
