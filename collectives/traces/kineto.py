"""PyTorch profiler traces (Kineto JSON, plain or gzip): what NCCL ran on a GPU, and for how long.

A request is an NCCL kernel with its collective's name, ranks and elements; where a trace has none (gloo, an older
profiler), the entries `record_param_comms` on the host. On each rank a request waits for the one before it on the same
stream, and for the gap between them as work; issue and completion are those measured. Ranks of a group of which no
trace is given are taken to have made the same requests as the lowest rank of theirs that is. A broadcast comes from its
group's first rank, which the trace does not say otherwise. The file is read as a stream.

Source: PyTorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp for the names of arguments.
Left out: waits between streams, and splits of unequal all-to-alls.
"""

import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import ijson

from fabrictune.collectives.traces.builder import TraceRow, build_trace
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_US

MAX_TEXT_BYTES = 8 * 2**30  # unpacked
MAX_REQUESTS = 5_000_000
MAX_GROUP = 2**20
_GZIP = b"\x1f\x8b"
_HOST_ENTRY = "record_param_comms"
_OPERATIONS = {
    "allreduce": Operation.ALL_REDUCE,
    "allreduce_coalesced": Operation.ALL_REDUCE,
    "all_gather": Operation.ALL_GATHER,
    "allgather": Operation.ALL_GATHER,
    "_allgather_base": Operation.ALL_GATHER,
    "allgather_into_tensor_coalesced": Operation.ALL_GATHER,
    "reduce_scatter": Operation.REDUCE_SCATTER,
    "_reduce_scatter_base": Operation.REDUCE_SCATTER,
    "reduce_scatter_tensor_coalesced": Operation.REDUCE_SCATTER,
    "broadcast": Operation.BROADCAST,
    "all_to_all": Operation.ALL_TO_ALL,
    "all_to_allv": Operation.ALL_TO_ALL,
    "alltoall": Operation.ALL_TO_ALL,
    "alltoall_base": Operation.ALL_TO_ALL,
    "send": Operation.SEND,
    "recv": Operation.RECEIVE,
    "barrier": Operation.BARRIER,
}
_ELEMENT_BYTES = {
    **dict.fromkeys(("Double", "Long", "ComplexFloat"), 8),
    **dict.fromkeys(("Float", "Int"), 4),
    **dict.fromkeys(("Half", "BFloat16", "Short"), 2),
    **dict.fromkeys(("Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz", "Float8_e5m2fnuz"), 1),
}


@dataclass(frozen=True, kw_only=True)
class _Event:
    """A request with its place on a stream and whether a GPU's kernel recorded it."""

    is_kernel: bool
    stream: tuple[Any, Any]
    start_ps: int
    request: TraceRow


def is_kineto(path: Path) -> bool:
    """Return whether the file has the events of a profiler's trace near its beginning."""
    if not path.name.endswith((".json", ".json.gz")):
        return False
    try:
        with _opened(path) as file:
            return b'"traceEvents"' in file.read(2**16)
    except (OSError, EOFError, zlib.error):
        return False


def read_kineto(paths: Sequence[Path]) -> CommTrace:
    """Return the requests of all ranks, of one trace a rank or some; raises TraceError."""
    of_rank: dict[int, list[_Event]] = {}
    for path in paths:
        rank, events = _read(path)
        if rank in of_rank:
            raise TraceError(Mistake(where=str(path), found=f"a second trace of rank {rank}"))
        of_rank[rank] = events
    for rank in sorted({member for events in of_rank.values() for event in events for member in event.request.group}):
        if rank not in of_rank:
            of_rank[rank] = _as_others(rank, of_rank)
    requests: list[TraceRow] = []
    for rank in sorted(of_rank):
        requests += _chained(of_rank[rank], first_row=len(requests))
    return build_trace(requests)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as raw:
        if raw.read(2) == _GZIP:
            raw.seek(0)
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield unpacked  # type: ignore[misc]
        else:
            raw.seek(0)
            yield raw


class _Bounded:
    """A file that ends in an error where it is longer than it may be."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self._path, self._left = file, path, MAX_TEXT_BYTES

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; raises TraceError beyond MAX_TEXT_BYTES."""
        data = self._file.read(size)
        self._left -= len(data)
        if self._left < 0:
            found = f"more than {MAX_TEXT_BYTES} B of text"
            raise TraceError(Mistake(where=str(self._path), found=found, next_step="profile fewer steps"))
        return data


def _read(path: Path) -> tuple[int, list[_Event]]:
    """Return the rank of a trace and its requests, by time; kernels where there are any."""
    events: list[_Event] = []
    rank: int | None = None
    try:
        with _opened(path) as file:
            bounded = _Bounded(file, path)
            for key, value in _parts(bounded):
                if key == "distributedInfo" and isinstance(value, Mapping):
                    rank = value["rank"] if type(value.get("rank")) is int else None
                elif key == "traceEvents" and isinstance(value, Mapping) and (event := _event(value, str(path))):
                    events.append(event)
                    if len(events) > MAX_REQUESTS:
                        raise TraceError(Mistake(where=str(path), found=f"more than {MAX_REQUESTS} collectives"))
    except (ijson.JSONError, OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        found = f"not a trace that can be read to its end ({error})"
        raise TraceError(Mistake(where=str(path), found=found, next_step="check that it was copied whole")) from None
    if not events:
        allowed = "NCCL kernels, or record_param_comms"
        raise TraceError(Mistake(where=str(path), found="no collective", allowed=allowed))
    if rank is None:
        rank = events[0].request.group[0]
    if any(event.is_kernel for event in events):
        events = [event for event in events if event.is_kernel]
    events.sort(key=lambda event: event.start_ps)
    return rank, [replace(event, request=replace(event.request, rank=rank)) for event in events]


def _parts(file: _Bounded) -> Iterator[tuple[str, Any]]:
    """Yield the events of a trace one by one, and its distributedInfo, as they come."""
    parser = iter(ijson.parse(file, use_float=False))
    for prefix, kind, value in parser:
        if kind in ("start_map", "start_array") and prefix in ("distributedInfo", "traceEvents.item"):
            builder = ijson.ObjectBuilder()
            builder.event(kind, value)
            depth = 1
            while depth:
                _, kind, value = next(parser)
                depth += (kind in ("start_map", "start_array")) - (kind in ("end_map", "end_array"))
                builder.event(kind, value)
            yield prefix.removesuffix(".item"), builder.value


def _event(entry: Mapping[str, Any], where: str) -> _Event | None:
    """Return the request of an entry, None for an entry of anything else."""
    arguments, name = entry.get("args"), entry.get("name")
    if not isinstance(arguments, Mapping) or "Collective name" not in arguments or not isinstance(name, str):
        return None
    is_kernel = entry.get("cat") == "kernel"
    if not is_kernel and name != _HOST_ENTRY:
        return None
    operation = _OPERATIONS.get(str(arguments["Collective name"]).lower())
    if operation is None:  # wait, init, end of a coalesced group
        return None
    where = f"{where}, {arguments['Collective name']} at {entry.get('ts')} us"
    start_ps = _picoseconds(entry.get("ts"), where)
    return _Event(
        is_kernel=is_kernel,
        stream=(entry.get("pid"), entry.get("tid")),
        start_ps=start_ps,
        request=TraceRow(
            rank=0,
            operation=operation,
            group=_group(arguments, where),
            num_bytes=_size(arguments, where),
            peer=_peer(operation, arguments, where),
            tag=str(arguments.get("Process Group Description", "")),
            issue_ps=start_ps,
            complete_ps=start_ps + _picoseconds(entry.get("dur", 0), where),
        ),
    )


def _picoseconds(value: Any, where: str) -> int:
    if not isinstance(value, int | Decimal) or not 0 <= value < 10**13:
        raise TraceError(Mistake(where=where, found=f"time {value!r}", allowed="microseconds, not negative"))
    return int(value * PS_PER_US)


def _size(arguments: Mapping[str, Any], where: str) -> int:
    """Return the full buffer of one rank: the larger of input and output."""
    elements = [arguments.get(name, 0) for name in ("In msg nelems", "Out msg nelems")]
    element_bytes = _ELEMENT_BYTES.get(str(arguments.get("dtype")))
    if element_bytes is None:
        found = f"elements of type {arguments.get('dtype')!r}"
        raise TraceError(Mistake(where=where, found=found, allowed=", ".join(_ELEMENT_BYTES)))
    if any(type(count) is not int or not 0 <= count < 2**50 for count in elements):
        raise TraceError(Mistake(where=where, found=f"{elements} elements", allowed="whole numbers"))
    return int(max(elements)) * element_bytes


def _group(arguments: Mapping[str, Any], where: str) -> tuple[int, ...]:
    """Return the ranks: as listed, or, where the list is cut short, from its first rank, stride and length."""
    written = str(arguments.get("Process Group Ranks", ""))
    if re.fullmatch(r"\[\d+(, *\d+)*\]", written):
        return tuple(int(rank) for rank in re.findall(r"\d+", written))
    first, stride, size = (arguments.get(name) for name in ("Global rank start", "Global rank stride", "Group size"))
    if all(type(number) is int for number in (first, stride, size)) and 0 < size <= MAX_GROUP and first >= 0 < stride:  # type: ignore[operator]
        return tuple(range(first, first + stride * size, stride))  # type: ignore[arg-type,operator]
    raise TraceError(Mistake(where=where, found=f"ranks {written!r}", allowed="[0, 1, ...] in full"))


def _peer(operation: Operation, arguments: Mapping[str, Any], where: str) -> int:
    if operation == Operation.BROADCAST:
        return _group(arguments, where)[0]
    if operation not in (Operation.SEND, Operation.RECEIVE):
        return UNKNOWN
    name = "Dst Rank" if operation == Operation.SEND else "Src Rank"
    peer = arguments.get(name)
    if type(peer) is not int:
        raise TraceError(Mistake(where=where, found=f"no {name!r}", next_step="trace with a newer profiler"))
    return peer


def _as_others(rank: int, of_rank: Mapping[int, list[_Event]]) -> list[_Event]:
    """Return the requests of a rank without a trace: the collectives of its groups, as their lowest rank made them."""
    traced = sorted(of_rank)
    return sorted(
        (
            replace(event, request=replace(event.request, rank=rank, issue_ps=UNKNOWN, complete_ps=UNKNOWN))
            for donor in traced
            for event in of_rank[donor]
            if rank in event.request.group
            and event.request.rank == donor
            and donor == next(traced_rank for traced_rank in traced if traced_rank in event.request.group)
            and event.request.operation not in (Operation.SEND, Operation.RECEIVE)
        ),
        key=lambda event: event.start_ps,
    )


def _chained(events: Sequence[_Event], *, first_row: int) -> Iterator[TraceRow]:
    """Yield a rank's requests, each waiting for the one before it on its stream and for the gap between them."""
    last: dict[tuple[Any, Any], tuple[int, int]] = {}  # stream -> row and end of its last request
    for row, event in enumerate(events, first_row):
        request = event.request
        duration_ps = max(0, request.complete_ps - request.issue_ps) if request.complete_ps != UNKNOWN else 0
        waits: tuple[int, ...] = ()
        gap_ps = 0
        if event.stream in last:
            waits, gap_ps = (last[event.stream][0],), max(0, event.start_ps - last[event.stream][1])
        last[event.stream] = row, event.start_ps + duration_ps
        yield replace(request, waits=waits, compute_before_ps=gap_ps)
