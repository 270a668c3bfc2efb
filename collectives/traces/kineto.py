"""PyTorch profiler traces (Kineto JSON, plain or gzip): what NCCL ran on a GPU, and for how long.

A request is an NCCL kernel with its collective's name, ranks and elements; where a trace has none (gloo, an older
profiler), the entries `record_param_comms` on the host. On each rank a request waits for the one before it on the same
stream, and for the gap between them as work; issue and completion are those measured. Where times count from 1970, the
first request of all files is time 0. Ranks of a group of which no trace is given are taken to have made the same
requests as the lowest rank of theirs that is. A broadcast comes from its group's first rank, which the trace does not
say otherwise. Notes count what is taken so, and collectives of kinds that a CommTrace does not have (reduce, gather,
scatter). The file is read as a stream.

Source: PyTorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp for the names of arguments.
Left out: waits between streams, and splits of unequal all-to-alls.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from fabrictune.collectives.traces.builder import TraceRow
from fabrictune.collectives.traces.profile_text import EventFilter
from fabrictune.collectives.traces.untraced_ranks import MeasuredRequest, trace_of_profiles
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import open_unpacked, read_head, shown
from fabrictune.foundation.json_streams import BROKEN, stream_json
from fabrictune.foundation.traces import MAX_RANK, UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_S, PS_PER_US

MAX_TEXT_BYTES = 8 * 2**30
MAX_UNPACKED_BYTES = 2 * 2**30  # of a packed file: ten seconds
MAX_REQUESTS = 2_000_000  # of all files
MAX_GROUP = 2**20
MAX_KINDS = 8  # kinds of collectives that a note names
MAX_MEMBERS = 2**22  # ranks of all different groups of all files
MAX_US = 10**16  # times in microseconds since 1970 are below this until 2286
_NO_TIME_PS = 2**63  # what a column of times cannot hold: 106 days
_KEYS = frozenset(("traceEvents", "distributedInfo"))
_HOST_ENTRY = "record_param_comms"
_COLLECTIVE_KERNEL = re.compile(r"[nr]ccl\w*Kernel")
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
    "_broadcast_oop": Operation.BROADCAST,
    "all_to_all": Operation.ALL_TO_ALL,
    "all_to_allv": Operation.ALL_TO_ALL,
    "alltoall": Operation.ALL_TO_ALL,
    "alltoall_base": Operation.ALL_TO_ALL,
    "send": Operation.SEND,
    "recv": Operation.RECEIVE,
    "barrier": Operation.BARRIER,
}
# Entries of the host that communicate nothing.
_NO_COLLECTIVES = frozenset(
    ("wait", "init", "coalesced", "startcoalescing", "endcoalescing", "start_coalescing", "end_coalescing")
)
_ELEMENT_BYTES = {
    **dict.fromkeys(("Double", "Long", "ComplexFloat"), 8),
    **dict.fromkeys(("Float", "Int"), 4),
    **dict.fromkeys(("Half", "BFloat16", "Short"), 2),
    **dict.fromkeys(("Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz", "Float8_e5m2fnuz"), 1),
}


def is_kineto(path: Path) -> bool:
    """Return whether the file has the events of a profiler's trace near its beginning."""
    if not path.name.endswith((".json", ".json.gz")):
        return False
    return b'"traceEvents"' in read_head(path, 2**16, is_unpacked=True)


def read_kineto(paths: Sequence[Path]) -> CommTrace:
    """Return the requests of all ranks, of one trace a rank or some; raises TraceError."""
    of_rank: dict[int, list[MeasuredRequest]] = {}
    groups = _Groups()
    notes: list[str] = []
    for path in paths:
        rank, events = _read(path, groups, notes, MAX_REQUESTS - sum(map(len, of_rank.values())))
        if rank in of_rank:
            raise TraceError(Mistake(where=str(path), found=f"a second trace of rank {rank}"))
        of_rank[rank] = events
    return trace_of_profiles(of_rank, origin_ps=_origin_ps(of_rank), notes=[*notes, *_assumed(of_rank)])


def _assumed(of_rank: Mapping[int, Sequence[MeasuredRequest]]) -> Iterator[str]:
    """Yield what the profiles leave open and is taken as usual."""
    operations = Counter(event.request.operation for events in of_rank.values() for event in events)
    if num_broadcasts := operations[Operation.BROADCAST]:
        yield f"broadcasts whose root the trace does not name, taken as their group's first rank: {num_broadcasts}"


def _origin_ps(of_rank: Mapping[int, Sequence[MeasuredRequest]]) -> int:
    """Return the time that is 0: that of the files, or the first request's where they count from 1970."""
    last_ps = max(event.request.complete_ps for events in of_rank.values() for event in events)
    if last_ps < _NO_TIME_PS:
        return 0
    first_ps = min(events[0].request.issue_ps for events in of_rank.values())
    if last_ps - first_ps >= _NO_TIME_PS:
        found = f"requests that are {(last_ps - first_ps) // (86_400 * PS_PER_S)} days apart"
        raise TraceError(Mistake(where="traces", found=found, allowed="profiles of one run, less than 106 days"))
    return first_ps


def _read(path: Path, groups: "_Groups", notes: list[str], max_requests: int) -> tuple[int, list[MeasuredRequest]]:
    """Return the rank of a trace and its requests, by time; those of kernels where there are any."""
    reading = _Reading(str(path), groups)
    try:
        with open_unpacked(
            path, max_bytes=MAX_TEXT_BYTES, max_unpacked_bytes=MAX_UNPACKED_BYTES, error=TraceError
        ) as file:
            for key, value in stream_json(EventFilter(file), path, _KEYS, error=TraceError):
                if not isinstance(value, Mapping):
                    continue
                if key == "distributedInfo":
                    reading.rank = value["rank"] if type(value.get("rank")) is int else None
                    groups.learn(value.get("pg_config"))
                else:
                    reading.take(value)
                    if len(reading.of_kernels) + len(reading.of_host) > max_requests:
                        found = f"more than {MAX_REQUESTS:,} collectives"
                        raise TraceError(Mistake(where=str(path), found=found, next_step="profile fewer steps"))
    except BROKEN as error:
        found = f"not a trace that can be read to its end ({error})"
        raise TraceError(Mistake(where=str(path), found=found, next_step="check that it was copied whole")) from None
    events = reading.of_kernels or reading.of_host
    if not events:
        reading.refuse()
    rank = events[0].request.group[0] if reading.rank is None else reading.rank
    if reading.rank is None:
        notes.append(f"{path}: no rank in the file, taken as its first group's first: {rank}")
    notes.extend(reading.notes())
    events.sort(key=lambda event: event.request.issue_ps)
    _check_rank(rank, events, path)
    return rank, events


class _Reading:
    """What was read of a file."""

    def __init__(self, where: str, groups: "_Groups") -> None:
        self.rank: int | None = None
        self.of_kernels: list[MeasuredRequest] = []
        self.of_host: list[MeasuredRequest] = []
        self._where = where
        self._groups = groups
        self._undescribed: Counter[str] = Counter()  # entries that run a collective and do not say which
        self._unknown: Counter[tuple[bool, str]] = Counter()  # whether a kernel's, and a kind that is not read
        self._streams: dict[tuple[object, object], tuple[object, object]] = {}

    def take(self, entry: Mapping[str, Any]) -> None:
        """Take an entry: a request, or of no matter here."""
        name, is_kernel = entry.get("name"), entry.get("cat") == "kernel"
        arguments = entry.get("args")
        if not isinstance(name, str) or not (is_kernel or name == _HOST_ENTRY):
            return
        if not isinstance(arguments, Mapping) or "Collective name" not in arguments:
            if _COLLECTIVE_KERNEL.match(name) or not is_kernel:
                self._undescribed["NCCL kernels" if is_kernel else f"calls {_HOST_ENTRY}"] += 1
            return
        where = f"{self._where}, {arguments['Collective name']} at {_time_text(entry.get('ts'))} us"
        if request := _request(entry, arguments, where, self._groups):
            stream = _stream_part(entry, "pid", where), _stream_part(entry, "tid", where)
            event = MeasuredRequest(stream=self._streams.setdefault(stream, stream), request=request)
            (self.of_kernels if is_kernel else self.of_host).append(event)
        elif (kind := shown(arguments["Collective name"]).strip("'").lower()) not in _NO_COLLECTIVES:
            self._unknown[is_kernel, kind] += 1

    def notes(self) -> Iterator[str]:
        """Yield what of the kernels, or else of the host's entries, is left out."""
        kinds = {
            kind: count for (is_kernel, kind), count in self._unknown.items() if is_kernel == bool(self.of_kernels)
        }
        if kinds:
            listed = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())[:MAX_KINDS])
            yield f"{self._where}: collectives of kinds that are not read, left out ({listed}): {sum(kinds.values())}"
        if num_kernels := self._undescribed["NCCL kernels"]:
            yield f"{self._where}: NCCL kernels that do not name their collective, left out: {num_kernels}"

    def refuse(self) -> NoReturn:
        """Raise TraceError, of a file without a request that can be used."""
        found, allowed, next_step = "no collective", f"NCCL kernels, or {_HOST_ENTRY}", ""
        if self._unknown:
            found = f"no collective of a kind that is read: {', '.join(sorted({kind for _, kind in self._unknown}))}"
            allowed = ", ".join(sorted(_OPERATIONS))
        if self._undescribed:
            kinds = " and ".join(f"{count} {kind}" for kind, count in sorted(self._undescribed.items()))
            found = f"{kinds} without the collective's name, size and ranks"
            allowed = "kernels or calls with the arguments 'Collective name', 'In msg nelems', 'Process Group Ranks'"
            next_step = "profile with PyTorch 2.2 or newer, which records them"
        raise TraceError(Mistake(where=self._where, found=found, allowed=allowed, next_step=next_step))


def _check_rank(rank: int, events: Sequence[MeasuredRequest], path: Path) -> None:
    """Refuse a trace of a rank outside a group that it asks."""
    for group in {id(event.request.group): event.request.group for event in events}.values():
        if rank not in group:
            found = f"a collective of ranks {shown(list(group))} in the trace of rank {shown(rank)}"
            raise TraceError(Mistake(where=str(path), found=found, allowed="groups with the trace's own rank"))


def _request(entry: Mapping[str, Any], arguments: Mapping[str, Any], where: str, groups: "_Groups") -> TraceRow | None:
    """Return the request of an entry that names a collective, None where that is no request."""
    operation = _OPERATIONS.get(str(arguments["Collective name"]).lower())
    if operation is None:  # wait, init, end of a coalesced group
        return None
    group = groups.of(arguments, where)
    start_ps = _picoseconds(entry.get("ts"), where)
    return TraceRow(
        rank=0,
        operation=operation,
        group=group,
        num_bytes=_size(arguments, where),
        peer=_peer(operation, group, arguments, where),
        tag=str(arguments.get("Process Group Description", "")),
        issue_ps=start_ps,
        complete_ps=start_ps + _picoseconds(entry.get("dur", 0), where),
    )


def _time_text(value: Any) -> str:
    return str(value) if isinstance(value, int | Decimal) else shown(value)


def _stream_part(entry: Mapping[str, Any], name: str, where: str) -> int | str | Decimal | None:
    value = entry.get(name)
    if value is None or isinstance(value, int | str | Decimal):
        return value
    raise TraceError(Mistake(where=where, found=f"{name} {shown(value)}", allowed="a number or a text"))


def _picoseconds(value: Any, where: str) -> int:
    if not isinstance(value, int | Decimal) or not 0 <= value < MAX_US:
        allowed = "microseconds, from 0 to those since 1970"
        raise TraceError(Mistake(where=where, found=f"time {shown(value)}", allowed=allowed))
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
    """The groups of all files; the ranks of each are in memory once."""

    def __init__(self) -> None:
        self._of_text: dict[tuple[Any, ...], tuple[int, ...]] = {}
        self._of_name: dict[str, tuple[int, ...]] = {}  # of the file that is read
        self._one_of: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._num_members = 0

    def learn(self, configuration: Any) -> None:
        """Take the groups that a file's head lists with their names."""
        self._of_name = {
            str(entry.get("pg_name")): self._one_of.setdefault(group := tuple(ranks), group)
            for entry in (configuration if isinstance(configuration, list) else ())
            if isinstance(entry, Mapping) and isinstance(ranks := entry.get("ranks"), list)
            if ranks and all(type(rank) is int and 0 <= rank <= MAX_RANK for rank in ranks)
        }

    def of(self, arguments: Mapping[str, Any], where: str) -> tuple[int, ...]:
        """Return the ranks: as listed, or, where the list is cut short, as its stride or the file's head has them."""
        written = str(arguments.get("Process Group Ranks", ""))
        names = ("Global rank start", "Global rank stride", "Group size")
        first, stride, size = (number if type(number := arguments.get(name)) is int else None for name in names)
        key = (written, first, stride, size)
        if key not in self._of_text:
            group = _listed(written) or _strided(first, stride, size)
            by_name = self._of_name.get(str(arguments.get("Process Group Name", "")))
            if group is None and by_name:
                return by_name
            if group is None or max(group) > MAX_RANK:
                found = f"ranks {shown(written)}"
                raise TraceError(Mistake(where=where, found=found, allowed="[0, 1, ...] in full, up to 2147483647"))
            self._count(len(group), where)
            self._of_text[key] = self._one_of.setdefault(group, group)
        return self._of_text[key]

    def _count(self, num_members: int, where: str) -> None:
        self._num_members += num_members
        if self._num_members > MAX_MEMBERS:
            found = f"groups of more than {MAX_MEMBERS:,} ranks in all"
            raise TraceError(Mistake(where=where, found=found, next_step="profile fewer steps"))


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
