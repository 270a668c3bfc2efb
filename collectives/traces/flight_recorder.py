"""Dumps of PyTorch's flight recorder, one file a rank: the last collectives that its process groups were asked for.

A dump is JSON, or a pickle as PyTorch writes it by default, of which only plain values are read. It holds the last
requests of a rank, with the times at which they were asked and, where the recorder measures, began and ended. Ranks
keep different stretches of a run: of each group the collectives remain that every dump of its ranks has, by their
sequence number. On each rank a request waits for the one before it of the same group. Notes count what is left out.

A rank's number is at the end of its file's name (`nccl_trace_rank_3`, `3.json`). Ranks without a file are taken to have
made the same requests as the lowest rank of their group with one.

Source: PyTorch, torch/csrc/distributed/c10d/FlightRecorder.hpp, torch/distributed/flight_recorder, version 2.10 of the
dumps.
Left out: stacks, and the order between groups.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from fabrictune.collectives.traces.builder import TraceRow
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
from fabrictune.collectives.traces.torch_groups import listed
from fabrictune.collectives.traces.untraced_ranks import MeasuredRequest, trace_of_profiles
from fabrictune.foundation.documents import load_json
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import read_head, shown
from fabrictune.foundation.plain_pickles import load_plain_pickle
from fabrictune.foundation.traces import MAX_RANK, UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_NS

MAX_BYTES = 64 * 2**20
MAX_REQUESTS = 2_000_000  # of all files
MAX_NS = 10**19  # since 1970: the year 2286
_PICKLE = re.compile(rb"\A\x80[\x02-\x05]")
_JSON = re.compile(rb'\A\s*\{.*"(?:collective_seq_id|pg_config)"\s*:', re.DOTALL)
_RANK = re.compile(r"(\d{1,10})(?:\.json|\.pkl|\.pickle)?$")
_MESSAGE = re.compile(r"(send|recv) (\d{1,10})(->|<-)(\d{1,10})")
_GROUPS = "groups whose ranks the dumps do not list, taken as the ranks whose dumps name them"


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A request of a rank, and what its group calls it by."""

    name: str  # of the process group
    number: int  # among the group's collectives; UNKNOWN of messages
    kind: str
    fields: Mapping[str, Any]
    where: str


def is_flight_recorder(path: Path) -> bool:
    """Return whether the file begins as a dump, in either form."""
    head = read_head(path, 2**14)
    return bool(_PICKLE.match(head) and b"pg_config" in head) or bool(_JSON.match(head))


def read_flight_recorder(paths: Sequence[Path]) -> CommTrace:
    """Return the requests of all ranks, of one dump a rank or some; raises TraceError."""
    notes: list[str] = []
    entries_of: dict[int, list[_Entry]] = {}
    ranks_of: dict[str, tuple[int, ...]] = {}  # of groups, as the dumps list them
    for path in paths:
        rank, dump = rank_of_dump(path), load_dump(path)
        if rank in entries_of:
            raise TraceError(Mistake(where=str(path), found=f"a second dump of rank {rank}"))
        ranks_of |= listed_groups(dump.get("pg_config"))
        entries_of[rank] = list(_entries(dump, path, notes))
        if sum(map(len, entries_of.values())) > MAX_REQUESTS:
            raise TraceError(Mistake(where=str(path), found=f"more than {MAX_REQUESTS:,} requests, up to here"))
    groups = {**_named_groups(entries_of), **ranks_of}
    if num_assumed := len(groups.keys() - ranks_of.keys()):
        notes.append(f"{_GROUPS}: {num_assumed}")
    of_rank = {rank: list(_requests(entries, rank, groups)) for rank, entries in _shared(entries_of, notes).items()}
    of_rank = with_messages(of_rank, notes)
    if not any(of_rank.values()):
        raise TraceError(Mistake(where=str(paths[0]), found="no collective that all dumps of its group have"))
    requests = (event.request for events in of_rank.values() for event in events)
    return trace_of_profiles(of_rank, notes=[*notes, *assumed_roots(requests)])


def rank_of_dump(path: Path) -> int:
    """Return the rank at the end of a dump's name; raises TraceError where there is none."""
    match = _RANK.search(path.name)
    if not match or int(match[1]) > MAX_RANK:
        raise TraceError(Mistake(where=str(path), found="no rank at the end of the name", allowed="NAME_RANK"))
    return int(match[1])


def load_dump(path: Path) -> Mapping[str, Any]:
    """Return what is in a dump, in either form; raises TraceError."""
    if _PICKLE.match(read_head(path, 2)):
        dump = load_plain_pickle(path, max_bytes=MAX_BYTES, error=TraceError)
    else:
        dump = load_json(path, max_bytes=MAX_BYTES).tree
    if not isinstance(dump, dict) or not isinstance(dump.get("entries"), list):
        raise TraceError(Mistake(where=str(path), found="no list of entries", allowed="a dump of the flight recorder"))
    return dump


def listed_groups(configuration: Any) -> Mapping[str, tuple[int, ...]]:
    """Return the ranks of the groups that a dump's head lists."""
    groups = {}
    for name, entry in configuration.items() if isinstance(configuration, dict) else ():
        written = str(entry.get("ranks", "")) if isinstance(entry, dict) else ""
        ranks = listed(written)
        if ranks and max(ranks) <= MAX_RANK:
            groups[str(name)] = ranks
    return groups


def _named_groups(entries_of: Mapping[int, Sequence[_Entry]]) -> Mapping[str, tuple[int, ...]]:
    """Return the ranks whose dumps name a group."""
    ranks_of: defaultdict[str, set[int]] = defaultdict(set)
    for rank, entries in entries_of.items():
        for entry in entries:
            ranks_of[entry.name].add(rank)
    return {name: tuple(sorted(ranks)) for name, ranks in ranks_of.items()}


def _entries(dump: Mapping[str, Any], path: Path, notes: list[str]) -> Iterator[_Entry]:
    """Yield the entries that communicate, in their order."""
    unknown = Counter[str]()
    for place, fields in enumerate(dump["entries"]):
        where = f"{path}, entry {place}"
        group = fields.get("process_group") if isinstance(fields, dict) else None
        name = fields.get("profiling_name") if isinstance(fields, dict) else None
        if not (isinstance(name, str) and isinstance(group, list | tuple) and group):
            raise TraceError(Mistake(where=where, found="no profiling_name, or no process_group"))
        kind = name.partition(":")[2].lower()
        operation = OPERATIONS.get(kind.partition(" ")[0])
        if operation is None:
            unknown[kind] += kind not in NO_COLLECTIVES
            continue
        is_message = kind not in GATHERS and operation in (Operation.SEND, Operation.RECEIVE)
        number = UNKNOWN if is_message else _whole(fields, "collective_seq_id", where)
        yield _Entry(name=str(group[0]), number=number, kind=kind, fields=fields, where=where)
    notes.extend(left_out(+unknown, str(path)))


def _shared(entries_of: Mapping[int, Sequence[_Entry]], notes: list[str]) -> Mapping[int, Sequence[_Entry]]:
    """Return each rank's entries without the collectives that another dump of the group does not have."""
    num_dumps = Counter(name for entries in entries_of.values() for name in {entry.name for entry in entries})
    held = Counter(
        one for entries in entries_of.values() for one in {(entry.name, entry.number, entry.kind) for entry in entries}
    )
    kept = {
        rank: [
            entry
            for entry in entries
            if entry.number == UNKNOWN or held[entry.name, entry.number, entry.kind] == num_dumps[entry.name]
        ]
        for rank, entries in entries_of.items()
    }
    if num_partial := sum(map(len, entries_of.values())) - sum(map(len, kept.values())):
        notes.append(f"collectives that not every dump of their group has, left out: {num_partial}")
    return kept


def _requests(entries: Sequence[_Entry], rank: int, groups: Mapping[str, tuple[int, ...]]) -> Iterator[MeasuredRequest]:
    for entry in entries:
        group = groups[entry.name]
        if rank not in group:
            found = f"a collective of ranks {shown(list(group))} in the dump of rank {rank}"
            raise TraceError(Mistake(where=entry.where, found=found))
        operation = OPERATIONS[entry.kind.partition(" ")[0]]
        begin_ps, end_ps = (_time_ps(entry, f"time_discovered_{name}_ns") for name in ("started", "completed"))
        request = TraceRow(
            rank=rank,
            operation=operation,
            group=group,
            num_bytes=0 if operation == Operation.BARRIER else _size(entry),
            peer=_peer(entry, operation, group),
            tag=_description(entry),
            issue_ps=_time_ps(entry, "time_created_ns") if begin_ps == UNKNOWN else begin_ps,
            complete_ps=end_ps,
        )
        kind = entry.kind if entry.kind in GATHERS else ""
        yield MeasuredRequest(stream=(entry.name, ""), request=request, kind=kind)


def _peer(entry: _Entry, operation: Operation, group: tuple[int, ...]) -> int:
    """Return the root or the other end; a message's ends are places in the group."""
    if operation == Operation.BROADCAST:
        return rooted_at(entry.kind, group)
    if entry.kind in GATHERS or operation not in (Operation.SEND, Operation.RECEIVE):
        return UNKNOWN
    match = _MESSAGE.fullmatch(entry.kind)
    if not match or int(match[4]) >= len(group):
        found = f"{shown(entry.kind)} in a group of {len(group)}"
        raise TraceError(Mistake(where=entry.where, found=found, allowed="send 0->1 or recv 1<-0"))
    return group[int(match[4])]


def _size(entry: _Entry) -> int:
    """Return the full buffer of one rank: the larger of input and output, all of their tensors."""
    counts = [_num_elements(entry, name) for name in ("input_sizes", "output_sizes")]
    kinds = entry.fields.get("input_dtypes") or entry.fields.get("output_dtypes")
    kind = kinds[0] if isinstance(kinds, list | tuple) and kinds else kinds
    return (part_bytes if entry.kind in GATHERS else full_bytes)(counts, kind, entry.where)


def _num_elements(entry: _Entry, name: str) -> int:
    shapes = entry.fields.get(name)
    is_right = isinstance(shapes, list | tuple) and all(
        isinstance(shape, list | tuple) and len(shape) <= 64 and all(type(size) is int and size >= 0 for size in shape)
        for shape in shapes
    )
    if not is_right:
        raise TraceError(Mistake(where=entry.where, found=f"{name} {shown(shapes)}", allowed="[[4, 1024], ...]"))
    return sum(prod(shape) for shape in shapes or ())


def _description(entry: _Entry) -> str:
    group = entry.fields["process_group"]
    return str(group[1]) if len(group) > 1 and group[1] != "undefined" else ""


def _time_ps(entry: _Entry, name: str) -> int:
    """Return a time since 1970, UNKNOWN where the recorder has none."""
    value = entry.fields.get(name)
    if value is None or value == 0:
        return UNKNOWN
    if type(value) is not int or not 0 < value < MAX_NS:
        raise TraceError(Mistake(where=entry.where, found=f"{name} {shown(value)}", allowed="nanoseconds since 1970"))
    return value * PS_PER_NS


def _whole(fields: Mapping[str, Any], name: str, where: str) -> int:
    value = fields.get(name)
    if type(value) is not int or not 0 <= value < 2**62:
        raise TraceError(Mistake(where=where, found=f"{name} {shown(value)}", allowed="a whole number, not negative"))
    return value
