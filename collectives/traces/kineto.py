"""PyTorch profiler traces (Kineto JSON, plain or gzip): what NCCL ran on a GPU, and for how long.

A request is an NCCL kernel with its collective's name, ranks and elements; where a trace has none (gloo, an older
profiler), the entries `record_param_comms` on the host. On each rank a request waits for the one before it on the same
stream, and for the gap between them as work; issue and completion are those measured. Ranks of a group of which no
trace is given are taken to have made the same requests as the lowest rank of theirs that is. A broadcast comes from its
group's first rank, which the trace does not say otherwise. The file is read as a stream.

Source: PyTorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp for the names of arguments.
Left out: waits between streams, and splits of unequal all-to-alls.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from fabrictune.collectives.traces.builder import TraceRow, build_trace
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import open_unpacked, read_head, shown
from fabrictune.foundation.json_streams import BROKEN, stream_json
from fabrictune.foundation.traces import MAX_RANK, UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_US

MAX_TEXT_BYTES = 8 * 2**30  # unpacked
MAX_REQUESTS = 5_000_000
MAX_DERIVED_REQUESTS = 2_000_000  # of ranks without a trace
MAX_GROUP = 2**20
MAX_MEMBERS = 2**22  # ranks of all different groups of a file
_KEYS = frozenset(("traceEvents", "distributedInfo"))
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
    return b'"traceEvents"' in read_head(path, 2**16, is_unpacked=True)


def read_kineto(paths: Sequence[Path]) -> CommTrace:
    """Return the requests of all ranks, of one trace a rank or some; raises TraceError."""
    of_rank: dict[int, list[_Event]] = {}
    for path in paths:
        rank, events = _read(path)
        if rank in of_rank:
            raise TraceError(Mistake(where=str(path), found=f"a second trace of rank {rank}"))
        of_rank[rank] = events
    of_rank.update(_without_trace(of_rank))
    requests: list[TraceRow] = []
    for rank in sorted(of_rank):
        requests += _chained(of_rank[rank], first_row=len(requests))
    return build_trace(requests)


def _read(path: Path) -> tuple[int, list[_Event]]:
    """Return the rank of a trace and its requests, by time; kernels where there are any."""
    events: list[_Event] = []
    rank: int | None = None
    groups = _Groups()
    try:
        with open_unpacked(path, max_bytes=MAX_TEXT_BYTES, error=TraceError) as file:
            for key, value in stream_json(file, path, _KEYS, error=TraceError):
                if not isinstance(value, Mapping):
                    continue
                if key == "distributedInfo":
                    rank = value["rank"] if type(value.get("rank")) is int else None
                elif event := _event(value, str(path), groups):
                    events.append(event)
                    if len(events) > MAX_REQUESTS:
                        raise TraceError(Mistake(where=str(path), found=f"more than {MAX_REQUESTS} collectives"))
    except BROKEN as error:
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
    _check_rank(rank, events, path)
    return rank, [replace(event, request=replace(event.request, rank=rank)) for event in events]


def _check_rank(rank: int, events: Sequence[_Event], path: Path) -> None:
    """Refuse a trace of a rank outside a group that it asks."""
    for group in dict.fromkeys(event.request.group for event in events):
        if rank not in group:
            found = f"a collective of ranks {shown(list(group))} in the trace of rank {shown(rank)}"
            raise TraceError(Mistake(where=str(path), found=found, allowed="groups with the trace's own rank"))


def _event(entry: Mapping[str, Any], where: str, groups: "_Groups") -> _Event | None:
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
    where = f"{where}, {arguments['Collective name']} at {_time_text(entry.get('ts'))} us"
    group = groups.of(arguments, where)
    start_ps = _picoseconds(entry.get("ts"), where)
    return _Event(
        is_kernel=is_kernel,
        stream=(_stream_part(entry, "pid", where), _stream_part(entry, "tid", where)),
        start_ps=start_ps,
        request=TraceRow(
            rank=0,
            operation=operation,
            group=group,
            num_bytes=_size(arguments, where),
            peer=_peer(operation, group, arguments, where),
            tag=str(arguments.get("Process Group Description", "")),
            issue_ps=start_ps,
            complete_ps=start_ps + _picoseconds(entry.get("dur", 0), where),
        ),
    )


def _time_text(value: Any) -> str:
    return str(value) if isinstance(value, int | Decimal) else shown(value)


def _stream_part(entry: Mapping[str, Any], name: str, where: str) -> int | str | Decimal | None:
    value = entry.get(name)
    if value is None or isinstance(value, int | str | Decimal):
        return value
    raise TraceError(Mistake(where=where, found=f"{name} {shown(value)}", allowed="a number or a text"))


def _picoseconds(value: Any, where: str) -> int:
    if not isinstance(value, int | Decimal) or not 0 <= value < 10**13:
        raise TraceError(Mistake(where=where, found=f"time {shown(value)}", allowed="microseconds, not negative"))
    return int(value * PS_PER_US)


def _size(arguments: Mapping[str, Any], where: str) -> int:
    """Return the full buffer of one rank: the larger of input and output."""
    elements = [arguments.get(name, 0) for name in ("In msg nelems", "Out msg nelems")]
    element_bytes = _ELEMENT_BYTES.get(str(arguments.get("dtype")))
    if element_bytes is None:
        found = f"elements of type {shown(arguments.get('dtype'))}"
        raise TraceError(Mistake(where=where, found=found, allowed=", ".join(_ELEMENT_BYTES)))
    if any(type(count) is not int or not 0 <= count < 2**50 for count in elements):
        raise TraceError(Mistake(where=where, found=f"{shown(elements)} elements", allowed="whole numbers"))
    return int(max(elements)) * element_bytes


class _Groups:
    """The groups of a file; each is read once, and its ranks are in memory once."""

    def __init__(self) -> None:
        self._of_text: dict[tuple[Any, ...], tuple[int, ...]] = {}
        self._num_members = 0

    def of(self, arguments: Mapping[str, Any], where: str) -> tuple[int, ...]:
        """Return the ranks: as listed, or, where the list is cut short, from its first rank, stride and length."""
        written = str(arguments.get("Process Group Ranks", ""))
        names = ("Global rank start", "Global rank stride", "Group size")
        first, stride, size = (number if type(number := arguments.get(name)) is int else None for name in names)
        key = (written, first, stride, size)
        if key not in self._of_text:
            group = _listed(written) or _strided(first, stride, size)
            if group is None or max(group) > MAX_RANK:
                found = f"ranks {shown(written)}"
                raise TraceError(Mistake(where=where, found=found, allowed="[0, 1, ...] in full, up to 2147483647"))
            self._num_members += len(group)
            if self._num_members > MAX_MEMBERS:
                found = f"groups of more than {MAX_MEMBERS:,} ranks in all"
                raise TraceError(Mistake(where=where, found=found, next_step="profile fewer steps"))
            self._of_text[key] = group
        return self._of_text[key]


def _listed(written: str) -> tuple[int, ...] | None:
    if not re.fullmatch(r"\[\d{1,10}(, *\d{1,10})*\]", written, re.ASCII):
        return None
    return tuple(int(rank) for rank in re.findall(r"\d+", written))


def _strided(first: int | None, stride: int | None, size: int | None) -> tuple[int, ...] | None:
    if first is None or stride is None or size is None:
        return None
    if not (0 < size <= MAX_GROUP and 0 <= first <= MAX_RANK and 0 < stride <= MAX_RANK):
        return None
    return tuple(range(first, first + stride * size, stride))


def _peer(operation: Operation, group: tuple[int, ...], arguments: Mapping[str, Any], where: str) -> int:
    if operation == Operation.BROADCAST:
        return group[0]
    if operation not in (Operation.SEND, Operation.RECEIVE):
        return UNKNOWN
    name = "Dst Rank" if operation == Operation.SEND else "Src Rank"
    peer = arguments.get(name)
    if type(peer) is not int:
        raise TraceError(Mistake(where=where, found=f"no {name!r}", next_step="trace with a newer profiler"))
    if not 0 <= peer <= MAX_RANK:
        raise TraceError(Mistake(where=where, found=f"{name} {shown(peer)}", allowed="0 to 2147483647"))
    return peer


def _without_trace(of_rank: Mapping[int, list[_Event]]) -> dict[int, list[_Event]]:
    """Return the requests of ranks without a trace: the collectives of their groups, as their lowest rank made them.

    Linear in the number of requests returned: each group is looked at once, and not once for each of its ranks.
    """
    of_group = _asked_of(of_rank)
    num_derived = sum(len(events) * len(group) for group, events in of_group.items())
    if num_derived > MAX_DERIVED_REQUESTS:
        found = f"{num_derived:,} requests of ranks of which most have no trace"
        allowed = f"{MAX_DERIVED_REQUESTS:,}"
        raise TraceError(Mistake(where="traces", found=found, allowed=allowed, next_step="profile fewer steps"))
    placed: dict[int, list[tuple[int, int, _Event]]] = defaultdict(list)
    for group, events in of_group.items():
        for rank in set(group).difference(of_rank):
            placed[rank] += events
    return {
        rank: [
            replace(event, request=replace(event.request, rank=rank, issue_ps=UNKNOWN, complete_ps=UNKNOWN))
            for _, _, event in sorted(placed[rank], key=lambda item: (item[2].start_ps, *item[:2]))
        ]
        for rank in sorted(placed)
    }


def _asked_of(of_rank: Mapping[int, list[_Event]]) -> dict[tuple[int, ...], list[tuple[int, int, _Event]]]:
    """Return the collectives of each group with a rank without a trace: the lowest traced rank's, with its place."""
    groups = {event.request.group: set(event.request.group) for events in of_rank.values() for event in events}
    donor_of = {group: min(of_rank.keys() & ranks) for group, ranks in groups.items() if not of_rank.keys() >= ranks}
    asked: dict[tuple[int, ...], list[tuple[int, int, _Event]]] = defaultdict(list)
    for donor, events in of_rank.items():
        for place, event in enumerate(events):
            group = event.request.group
            is_collective = event.request.operation not in (Operation.SEND, Operation.RECEIVE)
            if is_collective and donor_of.get(group) == donor:
                asked[group].append((donor, place, event))
    return asked


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
