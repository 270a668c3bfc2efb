"""Collectives as PyTorch writes them down: their names, and the sizes of elements.

A reduce to a rank moves what a broadcast from the next rank of the ring does: along a ring both cross every link but
one, with all bytes. A CommTrace has no reduces, and gets such a broadcast instead. Gathers and scatters are messages
(`rooted_messages`).

Source: PyTorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp and FlightRecorder.hpp, and the names under which
ProcessGroupNCCL.cpp records its collectives; NCCL, src/device/reduce.h and broadcast.h.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fabrictune.collectives.traces.builder import TraceRow
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import shown
from fabrictune.foundation.traces import Operation

MAX_KINDS = 8  # kinds of collectives that a note names
MAX_ELEMENTS = 2**50

OPERATIONS: Mapping[str, Operation] = {
    "allreduce": Operation.ALL_REDUCE,
    "all_reduce": Operation.ALL_REDUCE,
    "allreduce_coalesced": Operation.ALL_REDUCE,
    "all_reduce_barrier": Operation.ALL_REDUCE,
    "all_gather": Operation.ALL_GATHER,
    "allgather": Operation.ALL_GATHER,
    "all_gather_single": Operation.ALL_GATHER,
    "_allgather_base": Operation.ALL_GATHER,
    "_all_gather_base": Operation.ALL_GATHER,
    "allgather_coalesced": Operation.ALL_GATHER,
    "allgather_into_tensor_coalesced": Operation.ALL_GATHER,
    "all_gather_into_tensor_coalesced": Operation.ALL_GATHER,
    "reduce_scatter": Operation.REDUCE_SCATTER,
    "reduce_scatter_single": Operation.REDUCE_SCATTER,
    "_reduce_scatter_base": Operation.REDUCE_SCATTER,
    "reduce_scatter_coalesced": Operation.REDUCE_SCATTER,
    "reduce_scatter_tensor_coalesced": Operation.REDUCE_SCATTER,
    "broadcast": Operation.BROADCAST,
    "_broadcast_oop": Operation.BROADCAST,
    "reduce": Operation.BROADCAST,
    "_reduce_oop": Operation.BROADCAST,
    "all_to_all": Operation.ALL_TO_ALL,
    "all_to_allv": Operation.ALL_TO_ALL,
    "all_to_all_single": Operation.ALL_TO_ALL,
    "all_to_all_v_single": Operation.ALL_TO_ALL,
    "alltoall": Operation.ALL_TO_ALL,
    "alltoall_base": Operation.ALL_TO_ALL,
    "gather": Operation.SEND,  # or a receive, as `with_messages` says
    "scatter": Operation.SEND,
    "send": Operation.SEND,
    "recv": Operation.RECEIVE,
    "barrier": Operation.BARRIER,
}
GATHERS = frozenset(("gather", "scatter"))
REDUCES = frozenset(("reduce", "_reduce_oop"))
NO_COLLECTIVES = frozenset(  # entries that communicate nothing
    ("wait", "init", "coalesced", "startcoalescing", "endcoalescing", "start_coalescing", "end_coalescing")
)
ELEMENT_BYTES: Mapping[str, int] = {
    **dict.fromkeys(("ComplexDouble",), 16),
    **dict.fromkeys(("Double", "Long", "ComplexFloat", "UInt64"), 8),
    **dict.fromkeys(("Float", "Int", "UInt32"), 4),
    **dict.fromkeys(("Half", "BFloat16", "Short", "UInt16"), 2),
    **dict.fromkeys(("Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz", "Float8_e5m2fnuz"), 1),
}


def rooted_at(name: str, group: Sequence[int]) -> int:
    """Return the rank from which the bytes of a broadcast or a reduce come, whose root is taken as the first rank."""
    return group[1 % len(group)] if name in REDUCES else group[0]


def part_bytes(counts: Sequence[Any], kind: Any, where: str) -> int:
    """Return the bytes of one rank's part of a gather or a scatter: the smaller buffer; raises TraceError."""
    return full_bytes([min((count for count in counts if count), default=0)], kind, where)


def full_bytes(counts: Sequence[Any], kind: Any, where: str) -> int:
    """Return the full buffer of one rank, the larger of input and output, in bytes; raises TraceError."""
    element_bytes = ELEMENT_BYTES.get(str(kind))
    if element_bytes is None:
        raise TraceError(
            Mistake(where=where, found=f"elements of type {shown(kind)}", allowed=", ".join(ELEMENT_BYTES))
        )
    if any(type(count) is not int or not 0 <= count < MAX_ELEMENTS for count in counts):
        raise TraceError(Mistake(where=where, found=f"{shown(list(counts))} elements", allowed="whole numbers"))
    return int(max(counts)) * element_bytes


def assumed_roots(requests: Iterable[TraceRow]) -> Iterator[str]:
    """Yield what is taken as usual of requests with a root, which PyTorch does not write down."""
    rooted = [request for request in requests if request.operation == Operation.BROADCAST]
    num_broadcasts = sum(request.peer == request.group[0] for request in rooted)
    if num_broadcasts:
        yield f"broadcasts whose root the trace does not name, taken as their group's first rank: {num_broadcasts}"
    if num_reduces := len(rooted) - num_broadcasts:
        what = "taken as their group's first rank, and as broadcasts, which move the same"
        yield f"reduces whose root the trace does not name, {what}: {num_reduces}"


def left_out(kinds: Mapping[str, int], where: str) -> Iterator[str]:
    """Yield which collectives of kinds that are not read are left out."""
    if kinds:
        listed = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())[:MAX_KINDS])
        yield f"{where}: collectives of kinds that are not read, left out ({listed}): {sum(kinds.values())}"
