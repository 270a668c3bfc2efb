"""What a node's ranks need of a checkpoint in memory, taken from other nodes before they go on."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from fabrictune.foundation.errors import FabrictuneError
from fabrictune.foundation.time_limits import scaled
from fabrictune.trainer_probe.checkpoint.names import CheckpointId, data_file, index_file
from fabrictune.trainer_probe.operation.frames import Connection
from fabrictune.trainer_probe.operation.messages import connect
from fabrictune.trainer_probe.operation.node_memory import NodeMemory
from fabrictune.trainer_probe.operation.transfers import CONNECT_S, ask, receive_file

Address = tuple[str, int]
NUM_NEWEST = 3  # checkpoints that are made whole: as many as nodes keep


@dataclass(frozen=True, kw_only=True)
class PullResult:
    """What a node has taken from others before its ranks start."""

    num_files: int
    num_bytes: int
    checkpoints: tuple[CheckpointId, ...]  # of which the ranks' files are all there now, the newest first
    failures: tuple[str, ...]  # of nodes that were asked


def pull(
    memory: NodeMemory,
    key: bytes,
    holders: Iterable[Address],
    *,
    ranks: Collection[int],
    generation: int,
    num_newest: int = NUM_NEWEST,
) -> PullResult:
    """Take the files of these ranks that are missing here, for the newest checkpoints that can be made whole."""
    failures: list[str] = []
    connections: dict[Address, Connection] = {}
    files_of: dict[Address, dict[str, int]] = {}
    num_files = num_bytes = 0
    own = memory.complete()
    try:
        for holder in holders:
            try:
                connections[holder] = connect(*holder, key, timeout_s=scaled(CONNECT_S))
                files_of[holder] = dict(ask(connections[holder], do="list", generation=generation)["files"])
            except FabrictuneError as error:
                failures.append(str(error))
        for checkpoint in _whole({*own, *(name for files in files_of.values() for name in files)}, ranks)[:num_newest]:
            for name in _names(checkpoint, ranks):
                taken = None if name in own else _take(memory, connections, files_of, name, generation, failures)
                num_files, num_bytes = num_files + (taken is not None), num_bytes + (taken or 0)
    finally:
        for connection in connections.values():
            connection.close()
    checkpoints = tuple(_whole(memory.complete(), ranks)[:num_newest])
    return PullResult(
        num_files=num_files, num_bytes=num_bytes, checkpoints=checkpoints, failures=tuple(dict.fromkeys(failures))
    )


def _take(
    memory: NodeMemory,
    connections: dict[Address, Connection],
    files_of: dict[Address, dict[str, int]],
    name: str,
    generation: int,
    failures: list[str],
) -> int | None:
    """Take a file from the first node that has it and gives it whole; returns its size, None where none does."""
    for holder, files in list(files_of.items()):
        if name not in files:
            continue
        try:
            connection = connections[holder]
            num_bytes = int(ask(connection, do="get", name=name, generation=generation)["bytes"])
            receive_file(connection, memory, name, num_bytes, generation)
            return num_bytes
        except (FabrictuneError, TimeoutError, OSError, ValueError) as error:
            failures.append(f"{name}: {error}")
            del files_of[holder]  # its connection may be in the middle of a file
    return None


def _whole(names: Iterable[str], ranks: Collection[int]) -> list[CheckpointId]:
    """Return the checkpoints of which all files of these ranks are among the names, the newest first."""
    known = set(names)
    found = {CheckpointId.parse(name.partition("/")[0]) for name in known}
    whole = [own for own in found if own is not None and all(name in known for name in _names(own, ranks))]
    return sorted(whole, reverse=True)


def _names(checkpoint: CheckpointId, ranks: Collection[int]) -> list[str]:
    return [f"{checkpoint}/{file}" for rank in sorted(ranks) for file in (data_file(rank), index_file(rank))]
