"""Chakra execution traces: a graph of compute and communication nodes for each rank, `NAME.RANK.et`.

Reading keeps the communication: a request for each send, receive and collective, which waits for the communication
before it on every way through the graph, and for the longest work between. Sizes are taken as they are (`comm_size`,
signed or not). Groups are those of `comm_group.json` next to the files, where a node's `pg_name` names one, and all
ranks with a file elsewhere; notes say which ranks have none. Writing gives every request a node, work in microseconds
(whole picoseconds are in an attribute of their own, so that reading restores them), and the groups as such a file.

A profile that MLCommons' converter turned into a trace has a node on the host for each collective on the GPU: work,
without type and size. Its control dependencies are callers, which others do not wait for, and are left out, as
ASTRA-sim does; both are noted.

Source: mlcommons/chakra, schema/protobuf/et_def.proto; ASTRA-sim's use of attributes and of comm_group.json.
Left out: the use of one processor by two compute nodes at once, memory and storage nodes; operations that a CommTrace
does not have (reduce, gather, scatter).
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from fabrictune.collectives.traces.builder import TraceBuilder, TraceRow
from fabrictune.collectives.traces.chakra_schema import CollectiveType, GlobalMetadata, Node, NodeType
from fabrictune.foundation.documents import load_json
from fabrictune.foundation.errors import Mistake, RecordError, TraceError
from fabrictune.foundation.foreign_files import read_foreign
from fabrictune.foundation.output_folders import write_folder
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.foundation.units import PS_PER_US

SCHEMA = "1.0.2-chakra.0.0.4"
GROUPS_FILE = "comm_group.json"
MAX_FILE_BYTES = 2**30
MAX_GROUPS_BYTES = 2**26
MAX_NODES = 500_000  # of a rank
MAX_LISTED = 8  # ranks or groups that a note names
_RANK = re.compile(r"\.(\d{1,7})\.et$")
_OPERATIONS = {
    CollectiveType.ALL_REDUCE: Operation.ALL_REDUCE,
    CollectiveType.ALL_GATHER: Operation.ALL_GATHER,
    CollectiveType.BROADCAST: Operation.BROADCAST,
    CollectiveType.ALL_TO_ALL: Operation.ALL_TO_ALL,
    CollectiveType.REDUCE_SCATTER: Operation.REDUCE_SCATTER,
    CollectiveType.REDUCE_SCATTER_BLOCK: Operation.REDUCE_SCATTER,
    CollectiveType.BARRIER: Operation.BARRIER,
}
_TYPES = {operation: kind for kind, operation in reversed(_OPERATIONS.items())}
_EXACT = "compute_ps"
_NO_CALLERS = frozenset[int]()
_OF_PROFILE = frozenset(("rf_id", "op_schema"))  # what PyTorch's observer knows of a host operation
_WITHOUT_PEER = "MLCommons' converter leaves out the peers of messages: read the PyTorch profile itself, which has them"


_Asked = tuple[Operation, tuple[int, ...], int, int, str]  # operation, group, bytes, peer, name


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """A node as far as it matters: what it asks for, or how long it works."""

    waits: tuple[int, ...]  # ids
    callers: frozenset[int] = frozenset()  # those that are control dependencies alone
    duration_ps: int = 0
    request: _Asked | None = None  # None for work
    is_on_host: bool = False  # the call of a collective, whose kernel has a node of its own
    is_of_profile: bool = False


def is_chakra(path: Path) -> bool:
    """Return whether the file is a trace by its name."""
    return path.suffix == ".et"


def read_chakra(paths: Sequence[Path]) -> CommTrace:
    """Return the trace of one file a rank; raises TraceError with file and node."""
    files = {_rank_of(path): path for path in sorted(paths)}
    if len(files) != len(paths):
        raise TraceError(Mistake(where=str(paths[0].parent), found="two files of one rank", allowed="NAME.RANK.et"))
    everyone = tuple(sorted(files))
    groups = _Groups(everyone, _read_groups(paths[0].parent / GROUPS_FILE))
    builder = TraceBuilder()
    num_on_host = num_callers = 0
    for rank in everyone:
        steps = _read_steps(files[rank], rank, groups)
        num_on_host += sum(step.is_on_host for step in steps.values())
        num_callers += _leave_out_callers(steps)
        for row in _in_order(steps, files[rank], rank, first_row=len(builder)):
            builder.add(row)
    notes = {
        "nodes of collectives on the host, taken as work": num_on_host,
        "control dependencies, which are the callers of a profile, left out": num_callers,
    }
    counted = [f"{text}: {count}" for text, count in notes.items() if count]
    return builder.finish([*counted, *groups.notes(builder.groups)])


class _Groups:
    """Groups of a job's ranks: by their names, or all ranks that have a file."""

    def __init__(self, ranks: tuple[int, ...], of_name: Mapping[str, tuple[int, ...]]) -> None:
        self.ranks = ranks
        self._of_name = of_name
        self._of_all: Counter[str] = Counter()  # collectives of all ranks, by the name of their group; "" without one

    def of(self, name: str) -> tuple[int, ...]:
        """Return the ranks of a named group, or all."""
        if name in self._of_name:
            return self._of_name[name]
        self._of_all[name] += 1
        return self.ranks

    def notes(self, groups: Iterable[tuple[int, ...]]) -> Iterator[str]:
        """Yield what was taken for granted of the groups that were asked, and which ranks have no file."""
        below = range(max(self.ranks)) if self._of_all else ()
        without_file = sorted({*below, *chain(*groups, *self._of_name.values())}.difference(self.ranks))
        if without_file:
            yield f"ranks without a file, whose part is missing ({_listed(without_file)}): {len(without_file)}"
        if self._of_all and len(self.ranks) == 1:
            yield f"collectives of all ranks, of which one alone has a file, that move nothing: {self._of_all.total()}"
        if named := sorted(name for name in self._of_all if name):
            counted = sum(self._of_all[name] for name in named)
            yield f"collectives of groups that no {GROUPS_FILE} names ({_listed(named)}), taken as all ranks: {counted}"


def _listed(values: Sequence[object]) -> str:
    """Return the first values, and how many there are besides."""
    more = len(values) - MAX_LISTED
    return ", ".join(map(str, values[:MAX_LISTED])) + (f" and {more} more" if more > 0 else "")


def write_chakra(trace: CommTrace, folder: Path, name: str) -> list[Path]:
    """Write one file a rank and the groups, as a folder of their own and all at once; return the files of the ranks.

    An earlier export of the same name and ranks is replaced. Raises TraceError for waits across ranks; RecordError
    where the folder holds other files, which a reader would add to these, or cannot be written.
    """
    waiting_rank = trace.rank_N.repeat(trace.dependencies.offset_N1[1:] - trace.dependencies.offset_N1[:-1])
    if (trace.rank_N[trace.dependencies.row_D] != waiting_rank).any():
        found = "a request that waits for another rank's"
        raise TraceError(Mistake(where="communication trace", found=found, allowed="waits within a rank"))
    names = {rank: f"{name}.{rank}.et" for rank in sorted(set(trace.rank_N.tolist()))}

    def fill(new: Path) -> None:
        groups = {str(number): list(ranks) for number, ranks in enumerate(trace.groups)}
        (new / GROUPS_FILE).write_text(json.dumps(groups, separators=(",", ":")) + "\n")
        for rank, file_name in names.items():
            with (new / file_name).open("wb") as file:
                for message in (_metadata(), *_nodes(trace, rank)):
                    body = message.SerializeToString(deterministic=True)
                    file.write(_varint(len(body)) + body)

    write_folder(folder, fill, check=partial(_refuse_other_files, own={GROUPS_FILE, *names.values()}))
    return [folder / file_name for file_name in names.values()]


def _refuse_other_files(folder: Path, own: Collection[str]) -> None:
    """Raise RecordError where the place is no folder, or one with files that an export does not replace."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise RecordError(Mistake(where=str(folder), found="no folder", next_step="name another --out"))
    others = sorted(path.name for path in folder.iterdir() if path.name not in own) if folder.exists() else []
    if others:
        found = f"{others[0]!r} and {len(others) - 1} more" if len(others) > 1 else repr(others[0])
        raise RecordError(
            Mistake(
                where=str(folder),
                found=f"{found}, which this trace does not replace",
                allowed="a new or empty folder, or an earlier export of the same name and ranks",
                next_step="name another --out",
            )
        )


def _rank_of(path: Path) -> int:
    match = _RANK.search(path.name)
    if not match:
        raise TraceError(Mistake(where=str(path), found="no rank in the name", allowed="NAME.RANK.et"))
    return int(match[1])


def _read_groups(path: Path) -> Mapping[str, tuple[int, ...]]:
    if not path.is_file():
        return {}
    document = load_json(path, max_bytes=MAX_GROUPS_BYTES)
    tree = document.tree
    is_right = isinstance(tree, dict) and all(
        isinstance(ranks, list) and ranks and all(type(rank) is int and rank >= 0 for rank in ranks)
        for ranks in tree.values()
    )
    if not is_right:
        raise TraceError(Mistake(where=str(path), found="not groups", allowed='{"0": [0, 1, 2], ...}'))
    return {str(name): tuple(ranks) for name, ranks in tree.items()}


def _messages(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the place in the file and the bytes of each length-delimited message."""
    data = read_foreign(path, max_bytes=MAX_FILE_BYTES, error=TraceError)
    at = 0
    while at < len(data):
        start, length, shift = at, 0, 0
        while True:
            if at == len(data) or shift > 28:
                raise TraceError(Mistake(where=f"{path}, byte {start}", found="no length of a message"))
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if at + length > len(data):
            raise TraceError(Mistake(where=f"{path}, byte {start}", found="a message that is cut off"))
        yield start, data[at : at + length]
        at += length


def _read_steps(path: Path, rank: int, groups: _Groups) -> dict[int, _Step]:
    steps: dict[int, _Step] = {}
    messages = _messages(path)
    if next(messages, None) is None:
        raise TraceError(Mistake(where=str(path), found="an empty file"))
    for at, body in messages:
        node = Node()
        try:
            node.ParseFromString(body)
        except DecodeError:
            raise TraceError(Mistake(where=f"{path}, byte {at}", found="not a node of a Chakra trace")) from None
        where = f"{path}, node {node.id}"
        if node.id in steps or len(steps) == MAX_NODES:
            is_twice = node.id in steps
            found = "a node of the same id before" if is_twice else f"more than {MAX_NODES:,} nodes"
            next_step = "" if is_twice else "record fewer steps, or give the PyTorch profile"
            raise TraceError(Mistake(where=where, found=found, next_step=next_step))
        steps[node.id] = _step(node, where, rank, groups)
    return steps


def _leave_out_callers(steps: dict[int, _Step]) -> int:
    """Take away the control dependencies of a converted profile; return how many."""
    if not any(step.is_of_profile for step in steps.values()):
        return 0
    for number, step in steps.items():
        if step.callers:
            steps[number] = replace(step, waits=tuple(wait for wait in step.waits if wait not in step.callers))
    return sum(len(step.callers) for step in steps.values())


def _step(node: Any, where: str, rank: int, groups: _Groups) -> _Step:
    attributes = {
        attribute.name: getattr(attribute, kind) for attribute in node.attr if (kind := attribute.WhichOneof("value"))
    }
    waits, callers = tuple(node.data_deps), _NO_CALLERS
    if node.ctrl_deps:
        waits = *waits, *node.ctrl_deps
        callers = frozenset(node.ctrl_deps).difference(node.data_deps)
    if len(waits) > 1:
        waits = tuple(dict.fromkeys(waits))
    request, duration_ps = None, 0
    is_on_host = (
        node.type == NodeType.COLLECTIVE and "comm_type" not in attributes and attributes.get("is_cpu_op") is True
    )
    if node.type in (NodeType.SEND, NodeType.RECEIVE):
        is_send = node.type == NodeType.SEND
        peer = _number(attributes, "comm_dst" if is_send else "comm_src", where)
        group, num_bytes = tuple(sorted({*groups.ranks, rank, peer})), _number(attributes, "comm_size", where)
        request = Operation.SEND if is_send else Operation.RECEIVE, group, num_bytes, peer, node.name
    elif node.type == NodeType.COLLECTIVE and not is_on_host:
        request = _collective(attributes, where, rank, groups, node.name)
    else:
        exact = attributes.get(_EXACT)
        duration_ps = exact if isinstance(exact, int) and exact >= 0 else node.duration_micros * PS_PER_US
    return _Step(
        waits=waits,
        callers=callers,
        duration_ps=duration_ps,
        request=request,
        is_on_host=is_on_host,
        is_of_profile=not _OF_PROFILE.isdisjoint(attributes),
    )


def _collective(
    attributes: Mapping[str, Any],
    where: str,
    rank: int,
    groups: _Groups,
    name: str,
) -> _Asked:
    kind = _number(attributes, "comm_type", where)
    operation = _OPERATIONS.get(kind)  # type: ignore[call-overload]
    if operation is None:
        allowed = ", ".join(f"{one.value} ({one.name.lower()})" for one in _OPERATIONS)
        raise TraceError(Mistake(where=where, found=f"collective type {kind}", allowed=allowed))
    group = groups.of(str(attributes.get("pg_name", "")))
    if rank not in group:
        raise TraceError(Mistake(where=where, found=f"group {attributes['pg_name']!r}, which rank {rank} is not in"))
    num_bytes = 0 if operation == Operation.BARRIER else _number(attributes, "comm_size", where)
    peer = int(attributes.get("root", group[0])) if operation == Operation.BROADCAST else UNKNOWN
    return operation, group, num_bytes, peer, name


def _number(attributes: Mapping[str, Any], name: str, where: str) -> int:
    value = attributes.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
        found = "none" if value is None else repr(value)
        next_step = _WITHOUT_PEER if value is None and name in ("comm_dst", "comm_src") else ""
        allowed = "a whole number, not negative"
        raise TraceError(Mistake(where=f"{where}, {name}", found=found, allowed=allowed, next_step=next_step))
    return value


def _in_order(steps: Mapping[int, _Step], path: Path, rank: int, *, first_row: int) -> Iterator[TraceRow]:
    """Yield a rank's requests so that each comes after what it waits for, ties by id."""
    row = first_row
    # The requests before a node's end, in order, and the longest work since.
    before: dict[int, tuple[tuple[int, ...], int]] = {}
    for number in _sorted_by_dependency(steps, path):
        step = steps[number]
        waits, worked_ps = before[step.waits[0]] if step.waits else ((), 0)
        if len(step.waits) > 1:
            waits = tuple(sorted({one for node_id in step.waits for one in before[node_id][0]}))
            worked_ps = max(before[node_id][1] for node_id in step.waits)
        if step.request is None:
            before[number] = waits, worked_ps + step.duration_ps
            continue
        operation, group, num_bytes, peer, tag = step.request
        yield TraceRow(
            rank=rank,
            operation=operation,
            group=group,
            num_bytes=num_bytes,
            peer=peer,
            tag=tag,
            compute_before_ps=worked_ps,
            waits=waits,
        )
        before[number] = (row,), 0
        row += 1


def _sorted_by_dependency(steps: Mapping[int, _Step], path: Path) -> list[int]:
    """Return ids so that each follows those it waits for; raises TraceError for one missing, and for a circle."""
    followers: dict[int, list[int]] = {}
    missing: dict[int, int] = {}
    for number, step in steps.items():
        for node_id in step.waits:
            if node_id not in steps:
                found = f"a wait for node {node_id}, which there is not"
                raise TraceError(Mistake(where=f"{path}, node {number}", found=found))
            followers.setdefault(node_id, []).append(number)
        missing[number] = len(step.waits)
    ready = sorted((number for number, count in missing.items() if not count), reverse=True)
    order = []
    while ready:
        number = ready.pop()
        order.append(number)
        freed = []
        for follower in followers.get(number, ()):
            missing[follower] -= 1
            if not missing[follower]:
                freed.append(follower)
        ready += sorted(freed, reverse=True)
    if len(order) < len(steps):
        first = next(number for number, count in missing.items() if count)
        found = "a node that waits for itself, through others"
        raise TraceError(Mistake(where=f"{path}, node {first}", found=found))
    return order


def _metadata() -> Any:
    metadata = GlobalMetadata(version=SCHEMA)
    metadata.attr.add(name="schema", string_val=SCHEMA)
    return metadata


def _nodes(trace: CommTrace, rank: int) -> Iterator[Any]:
    """Yield a rank's nodes: 2 i is the work before request i of the whole trace, 2 i + 1 the request."""
    for row in (trace.rank_N == rank).nonzero()[0].tolist():
        waits = [2 * row_before + 1 for row_before in trace.dependencies.of(row).tolist()]
        if compute_ps := int(trace.compute_before_ps_N[row]):
            work = Node(id=2 * row, name="compute", type=NodeType.COMPUTE, data_deps=waits)
            work.duration_micros = -(-compute_ps // PS_PER_US)
            work.attr.add(name=_EXACT, int64_val=compute_ps)
            yield work
            waits = [2 * row]
        yield _request_node(trace, row, waits)


def _request_node(trace: CommTrace, row: int, waits: list[int]) -> Any:
    operation = Operation(trace.operation_N[row])
    node = Node(id=2 * row + 1, name=trace.tag_N[row], data_deps=waits)
    node.attr.add(name="comm_size", int64_val=int(trace.bytes_N[row]))
    node.attr.add(name="is_cpu_op", bool_val=False)
    if operation in (Operation.SEND, Operation.RECEIVE):
        node.type = NodeType.SEND if operation == Operation.SEND else NodeType.RECEIVE
        ends = (int(trace.rank_N[row]), int(trace.peer_N[row]))
        source, destination = ends if operation == Operation.SEND else ends[::-1]
        node.attr.add(name="comm_src", int32_val=source)
        node.attr.add(name="comm_dst", int32_val=destination)
        return node
    node.type = NodeType.COLLECTIVE
    node.attr.add(name="comm_type", int64_val=_TYPES[operation])
    node.attr.add(name="pg_name", string_val=str(int(trace.group_N[row])))
    if operation == Operation.BROADCAST:
        node.attr.add(name="root", int32_val=int(trace.peer_N[row]))
    return node


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
