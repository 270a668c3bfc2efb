"""Execution traces of PyTorch's observer (`ExecutionTraceObserver`), one file a rank: what its operators asked for.

A request is a node `record_param_comms` with the attributes of its collective. The observer writes down which operator
called which, and no durations on a GPU: on each rank a request waits for the one before it of the same group, without
work between them, and a note says so. The profile of the same run has both; linked with it by chakra_trace_link, it is
read as a Chakra trace.

A rank's number is at the end of its file's name (`et_3.json`, `rank-3.json.gz`). Groups are those of the node
`## process_group:init ##`, or a stride in a request's attributes. Ranks without a file are taken to have made the same
requests as the lowest rank of their group with one.

Source: PyTorch, torch/csrc/profiler/standalone/execution_trace_observer.cpp, schema 1.1.1-chakra.0.0.4.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from fabrictune.collectives.traces.torch_groups import MAX_GROUP, Groups
from fabrictune.collectives.traces.untraced_ranks import MeasuredRequest, trace_of_profiles
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.foreign_files import open_unpacked, read_head, shown
from fabrictune.foundation.json_streams import BROKEN, stream_json
from fabrictune.foundation.traces import MAX_RANK, UNKNOWN, CommTrace, Operation

MAX_TEXT_BYTES = 2 * 2**30
MAX_REQUESTS = 2_000_000  # of all files
UNTIMED = "requests without times, between which no work is counted"
_HEAD = re.compile(rb'"schema":\s*"\d[^"\n]{0,40}",\s*"pid":')
_RANK = re.compile(r"(\d{1,10})\.json(?:\.gz)?$")
_REQUEST, _INIT = "record_param_comms", "## process_group:init ##"
_ARGUMENTS = {  # attribute -> argument of a profile
    "collective_name": "Collective name",
    "dtype": "dtype",
    "in_msg_nelems": "In msg nelems",
    "out_msg_nelems": "Out msg nelems",
    "global_rank_start": "Global rank start",
    "global_rank_stride": "Global rank stride",
    "pg_size": "Group size",
    "pg_name": "Process Group Name",
    "pg_desc": "Process Group Description",
}


def is_execution_trace(path: Path) -> bool:
    """Return whether the file begins as a trace of the observer."""
    return path.name.endswith((".json", ".json.gz")) and bool(_HEAD.search(read_head(path, 2**12, is_unpacked=True)))


def read_execution_trace(paths: Sequence[Path]) -> CommTrace:
    """Return the requests of all ranks, of one trace a rank or some; raises TraceError."""
    of_rank: dict[int, list[MeasuredRequest]] = {}
    notes: list[str] = []
    for path in paths:
        match = _RANK.search(path.name)
        if not match or int(match[1]) > MAX_RANK:
            raise TraceError(Mistake(where=str(path), found="no rank at the end of the name", allowed="NAME_RANK.json"))
        rank = int(match[1])
        if rank in of_rank:
            raise TraceError(Mistake(where=str(path), found=f"a second trace of rank {rank}"))
        of_rank[rank] = list(_read(path, rank, notes))
        if sum(map(len, of_rank.values())) > MAX_REQUESTS:
            raise TraceError(Mistake(where=str(path), found=f"more than {MAX_REQUESTS:,} collectives, up to here"))
    of_rank = with_messages(of_rank, notes)
    requests = [event.request for events in of_rank.values() for event in events]
    if not requests:
        found = f"no {_REQUEST} that describes its collective"
        next_step = "record it on GPUs with PyTorch 2.4 or newer, or give the profile of the same run"
        raise TraceError(Mistake(where=str(paths[0]), found=found, next_step=next_step))
    notes += [f"{UNTIMED}: {len(requests)}", *assumed_roots(requests)]
    return trace_of_profiles(of_rank, notes=notes)


def _read(path: Path, rank: int, notes: list[str]) -> Iterator[MeasuredRequest]:
    """Yield the requests of a file, in the order in which operators ended."""
    groups, unknown = Groups(), Counter[str]()
    try:
        with open_unpacked(path, max_bytes=MAX_TEXT_BYTES, error=TraceError) as file:
            for _, node in stream_json(file, path, frozenset(("nodes",)), error=TraceError):
                if not isinstance(node, Mapping):
                    continue
                if node.get("name") == _INIT:
                    groups.learn(_listed_groups(node))
                if node.get("name") != _REQUEST:
                    continue
                arguments = _arguments(node)
                kind = str(arguments.get("Collective name", "without a name")).lower()
                if kind in OPERATIONS:
                    where = f"{path}, node {shown(node.get('id'))}"
                    request = _request(node, arguments, rank, groups, where)
                    stream = (str(arguments.get("Process Group Name")), "")
                    yield MeasuredRequest(stream=stream, request=request, kind=kind if kind in GATHERS else "")
                else:
                    unknown[kind] += kind not in NO_COLLECTIVES
    except BROKEN as error:
        found = f"not a trace that can be read to its end ({error})"
        raise TraceError(Mistake(where=str(path), found=found, next_step="check that it was copied whole")) from None
    notes.extend(left_out(+unknown, str(path)))


def _listed_groups(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the groups that a node of initialisation lists as JSON; one without ranks has all, from 0 on."""
    values = _values(node)
    try:
        listed = json.loads(values[0]) if values and isinstance(values[0], str) and len(values[0]) < 2**24 else []
    except (ValueError, RecursionError):
        return []
    groups: list[Mapping[str, Any]] = []
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict):
            size = entry.get("group_size")
            everyone = list(range(size)) if type(size) is int and 0 < size <= MAX_GROUP else []
            groups.append({**entry, "ranks": entry.get("ranks") or everyone})
    return groups


def _values(node: Mapping[str, Any]) -> Sequence[Any]:
    inputs = node.get("inputs")
    values = inputs.get("values") if isinstance(inputs, Mapping) else inputs
    return values if isinstance(values, list) else []


def _arguments(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's attributes under the names that a profile has for them."""
    attributes = node.get("attrs")
    named = {
        attribute.get("name"): attribute.get("value")
        for attribute in (attributes if isinstance(attributes, list) else ())
        if isinstance(attribute, Mapping) and isinstance(attribute.get("name"), str)
    }
    return {argument: named[name] for name, argument in _ARGUMENTS.items() if name in named}


def _request(node: Mapping[str, Any], arguments: Mapping[str, Any], rank: int, groups: Groups, where: str) -> TraceRow:
    name = str(arguments["Collective name"]).lower()
    operation, group = OPERATIONS[name], groups.of(arguments, where)
    if rank not in group:
        found = f"a collective of ranks {shown(list(group))} in the trace of rank {rank}"
        raise TraceError(Mistake(where=where, found=found, next_step="name each file by its rank: et_RANK.json"))
    peer = rooted_at(name, group) if operation == Operation.BROADCAST else UNKNOWN
    if name not in GATHERS and operation in (Operation.SEND, Operation.RECEIVE):
        peer = group[_place_of_peer(node, name, len(group), where)]
    counts = [arguments.get(key, 0) for key in ("In msg nelems", "Out msg nelems")]
    return TraceRow(
        rank=rank,
        operation=operation,
        group=group,
        num_bytes=(part_bytes if name in GATHERS else full_bytes)(counts, arguments.get("dtype"), where),
        peer=peer,
        tag=str(arguments.get("Process Group Description", "")),
    )


def _place_of_peer(node: Mapping[str, Any], name: str, size: int, where: str) -> int:
    """Return the place of a message's other end in the group: the input before the collective's name."""
    values = _values(node)
    place = values[values.index(name) - 1] if name in values[1:] else None
    if type(place) is not int or not 0 <= place < size:
        found = f"a {name} to or from {shown(place)}"
        raise TraceError(Mistake(where=where, found=found, allowed="a place in its group, before the name"))
    return place
