"""PyTorch profiler traces (Kineto JSON, plain or gzip): what NCCL ran on a GPU, and for how long.

A request is an NCCL kernel with its collective's name, ranks and elements; where a trace has none (gloo, an older
profiler), the entries `record_param_comms` on the host. On each rank a request waits for the one before it on the same
stream, and for the gap between them as work; issue and completion are those measured. Where times count from 1970, the
first request of all files is time 0. Ranks of a group of which no trace is given are taken to have made the same
requests as the lowest rank of theirs that is. A broadcast comes from its group's first rank, and a reduce goes there,
which the trace does not say otherwise; gathers and scatters are messages of the same root. Notes count what is taken
so. The file is read as a stream.

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
from fabrictune.collectives.traces.rooted_messages import with_messages
from fabrictune.collectives.traces.torch_collectives import (
    GATHERS,
    NO_COLLECTIVES,
    OPERATIONS,
    assumed_roots,
    full_bytes,
    left_out,
    part_bytes,
    rooted_at,
)
from fabrictune.collectives.traces.torch_groups import Groups
from fabrictune.collectives.traces.untraced_ranks import MeasuredRequest, trace_of_profiles
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import open_unpacked, read_head, shown
from fabrictune.foundation.json_streams import BROKEN, stream_json
from fabrictune.foundation.traces import MAX_RANK, UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_US

MAX_TEXT_BYTES = 8 * 2**30
MAX_UNPACKED_BYTES = 2 * 2**30  # of a packed file: ten seconds
MAX_REQUESTS = 2_000_000  # of all files
MAX_US = 10**16  # times in microseconds since 1970 are below this until 2286
_KEYS = frozenset(("traceEvents", "distributedInfo"))
_HOST_ENTRY = "record_param_comms"
_COUNTS = ("In msg nelems", "Out msg nelems")
_COLLECTIVE_KERNEL = re.compile(r"[nr]ccl\w*Kernel")


def is_kineto(path: Path) -> bool:
    """Return whether the file has the events of a profiler's trace near its beginning."""
    if not path.name.endswith((".json", ".json.gz")):
        return False
    return b'"traceEvents"' in read_head(path, 2**16, is_unpacked=True)


def read_kineto(paths: Sequence[Path]) -> CommTrace:
    """Return the requests of all ranks, of one trace a rank or some; raises TraceError."""
    of_rank: dict[int, list[MeasuredRequest]] = {}
    groups = Groups()
    notes: list[str] = []
    for path in paths:
        rank, events = _read(path, groups, notes, MAX_REQUESTS - sum(map(len, of_rank.values())))
        if rank in of_rank:
            raise TraceError(Mistake(where=str(path), found=f"a second trace of rank {rank}"))
        of_rank[rank] = events
    of_rank = with_messages(of_rank, notes)
    if not any(of_rank.values()):
        raise TraceError(Mistake(where=str(paths[0]), found="no collective whose ranks all have a file"))
    requests = (event.request for events in of_rank.values() for event in events)
    return trace_of_profiles(of_rank, notes=[*notes, *assumed_roots(requests)])


def _read(path: Path, groups: Groups, notes: list[str], max_requests: int) -> tuple[int, list[MeasuredRequest]]:
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

    def __init__(self, where: str, groups: Groups) -> None:
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
            kind = str(arguments["Collective name"]).lower()
            kind = kind if kind in GATHERS else ""
            event = MeasuredRequest(stream=self._streams.setdefault(stream, stream), request=request, kind=kind)
            (self.of_kernels if is_kernel else self.of_host).append(event)
        elif (kind := shown(arguments["Collective name"]).strip("'").lower()) not in NO_COLLECTIVES:
            self._unknown[is_kernel, kind] += 1

    def notes(self) -> Iterator[str]:
        """Yield what of the kernels, or else of the host's entries, is left out."""
        kinds = {
            kind: count for (is_kernel, kind), count in self._unknown.items() if is_kernel == bool(self.of_kernels)
        }
        yield from left_out(kinds, self._where)
        if num_kernels := self._undescribed["NCCL kernels"]:
            yield f"{self._where}: NCCL kernels that do not name their collective, left out: {num_kernels}"

    def refuse(self) -> NoReturn:
        """Raise TraceError, of a file without a request that can be used."""
        found, allowed, next_step = "no collective", f"NCCL kernels, or {_HOST_ENTRY}", ""
        if self._unknown:
            found = f"no collective of a kind that is read: {', '.join(sorted({kind for _, kind in self._unknown}))}"
            allowed = ", ".join(sorted(OPERATIONS))
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


def _request(entry: Mapping[str, Any], arguments: Mapping[str, Any], where: str, groups: Groups) -> TraceRow | None:
    """Return the request of an entry that names a collective, None where that is no request."""
    name = str(arguments["Collective name"]).lower()
    operation = OPERATIONS.get(name)
    if operation is None:  # wait, init, end of a coalesced group
        return None
    group, counts = groups.of(arguments, where), [arguments.get(count, 0) for count in _COUNTS]
    size = part_bytes if name in GATHERS else full_bytes
    start_ps = _picoseconds(entry.get("ts"), where)
    return TraceRow(
        rank=0,
        operation=operation,
        group=group,
        num_bytes=size(counts, arguments.get("dtype"), where),
        peer=_peer(name, operation, group, arguments, where),
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


def _peer(name: str, operation: Operation, group: tuple[int, ...], arguments: Mapping[str, Any], where: str) -> int:
    if operation == Operation.BROADCAST:
        return rooted_at(name, group)
    if name in GATHERS or operation not in (Operation.SEND, Operation.RECEIVE):
        return UNKNOWN
    end = "Dst Rank" if operation == Operation.SEND else "Src Rank"
    peer = arguments.get(end)
    if type(peer) is not int:
        raise TraceError(Mistake(where=where, found=f"no {end!r}", next_step="trace with a newer profiler"))
    if not 0 <= peer <= MAX_RANK:
        raise TraceError(Mistake(where=where, found=f"{end} {shown(peer)}", allowed="0 to 2147483647"))
    return peer
