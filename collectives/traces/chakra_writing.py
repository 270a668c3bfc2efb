"""Writing of Chakra execution traces: a file a rank, and the groups beside them.

Every request has a node, and so has the work before it, in microseconds; whole picoseconds are in an attribute of their
own, so that reading restores them.

Source: mlcommons/chakra, schema/protobuf/et_def.proto.
"""

import json
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from fabrictune.collectives.traces.chakra import GROUPS_FILE
from fabrictune.collectives.traces.chakra_requests import OPERATIONS
from fabrictune.collectives.traces.chakra_schema import GlobalMetadata, Node, NodeType
from fabrictune.foundation.errors import Mistake, RecordError, TraceError
from fabrictune.foundation.output_folders import write_folder
from fabrictune.foundation.traces import CommTrace, Operation
from fabrictune.foundation.units import PS_PER_US

SCHEMA = "1.0.2-chakra.0.0.4"
_TYPES = {operation: kind for kind, operation in reversed(OPERATIONS.items())}
_EXACT = "compute_ps"


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
