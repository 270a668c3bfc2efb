"""A collection: what was read on all nodes, one file each, and the list of how each node answered.

`NODE.json` is a node's reading, `fleet.json` the list. A folder that offline sites fill by hand has no list, and may
have the `config_db.json` of switches: each file is a node.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fabrictune.fleet.collect.node_reading import MAX_NODE_BYTES, NodeReading, encode_reading, parse_reading
from fabrictune.fleet.transport.answer import NEXT_STEPS, Answer, State
from fabrictune.foundation.documents import load_json
from fabrictune.foundation.errors import InputError, Mistake, RecordError
from fabrictune.foundation.foreign_files import read_foreign
from fabrictune.foundation.output_folders import check_output_folder, write_folder

LIST = "fleet.json"
FORMAT_KEY, FORMAT = "fabrictune_fleet", 1
MAX_LIST_BYTES = 32 * 2**20


@dataclass(frozen=True, kw_only=True)
class NodeState:
    """How a node answered."""

    name: str
    state: State
    detail: str = ""
    wall_s: float = 0.0

    @property
    def next_step(self) -> str:
        """What to do about it, "" for a node that was read."""
        return NEXT_STEPS.get(self.state, "")


@dataclass(frozen=True, kw_only=True)
class Collection:
    """The nodes that were read, and how every node answered."""

    readings: Sequence[NodeReading]
    states: Sequence[NodeState]
    is_partial: bool = False  # stopped by Ctrl-C

    @property
    def missing(self) -> tuple[NodeState, ...]:
        """The nodes that were not read."""
        return tuple(state for state in self.states if state.state != State.COLLECTED)


class Collector:
    """Takes answers as they come, and makes a collection of them."""

    def __init__(self) -> None:
        self.readings: list[NodeReading] = []
        self.states: dict[str, NodeState] = {}

    def add(self, answer: Answer) -> None:
        """Add a node's answer; one that cannot be read is its state."""
        state, detail = answer.state, answer.detail
        if answer.is_good:
            try:
                self.readings.append(parse_reading(answer.output, Path(answer.name), name=answer.name))
            except InputError as error:
                state, detail = State.UNUSABLE, error.mistakes[0].found
        self.states[answer.name] = NodeState(name=answer.name, state=state, detail=detail, wall_s=answer.wall_s)

    def finish(self, names: Sequence[str], *, is_partial: bool) -> Collection:
        """Return the collection in the order of names; a node that was not asked any more was stopped."""
        order = {name: number for number, name in enumerate(names)}
        stopped = {name: NodeState(name=name, state=State.STOPPED) for name in names}
        return Collection(
            readings=tuple(sorted(self.readings, key=lambda reading: order[reading.name])),
            states=tuple({**stopped, **self.states}.values()),
            is_partial=is_partial,
        )


def write_collection(collection: Collection, directory: Path) -> Path:
    """Write a collection as a folder, which must be new, empty or an earlier one; raises RecordError. Returns it."""

    def fill(folder: Path) -> None:
        for reading in collection.readings:
            (folder / f"{_file_name(reading.name)}.json").write_bytes(encode_reading(reading))
        states = [asdict(state) for state in collection.states]
        content = {FORMAT_KEY: FORMAT, "is_partial": collection.is_partial, "nodes": states}
        (folder / LIST).write_text(json.dumps(content, indent=1) + "\n")

    write_folder(directory, fill, check=check_replaceable)
    return directory


def check_collection_place(directory: Path) -> None:
    """Raise RecordError, before the work, where no collection can be written."""
    check_output_folder(directory, check=check_replaceable)


def check_replaceable(directory: Path) -> None:
    """Raise RecordError unless a folder is absent, empty or a collection."""
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise RecordError(Mistake(where=str(directory), found="not a folder", next_step="name another"))
    if directory.is_dir() and not (directory / LIST).is_file() and any(directory.iterdir()):
        found = "a folder with other files, which are not replaced"
        raise RecordError(Mistake(where=str(directory), found=found, next_step="name another"))


def read_collection(directory: Path) -> Collection:
    """Return the collection in a folder, or in one file of a node; raises InputError with every mistake."""
    readings: list[NodeReading] = []
    mistakes: list[Mistake] = []
    for path in _files_in(directory):
        try:
            readings.append(parse_reading(read_foreign(path, max_bytes=MAX_NODE_BYTES), path, name=_node_name(path)))
        except InputError as error:
            mistakes += error.mistakes
    twice = {one.name for one in readings if sum(other.name == one.name for other in readings) > 1}
    mistakes += [Mistake(where=str(directory), found=f"two files of {name!r}") for name in sorted(twice)]
    if mistakes:
        raise InputError(*mistakes)
    states, is_partial = _read_list(directory / LIST)
    known = {state.name for state in states}
    added = [NodeState(name=one.name, state=State.COLLECTED) for one in readings if one.name not in known]
    return Collection(readings=tuple(readings), states=(*states, *added), is_partial=is_partial)


def _files_in(directory: Path) -> list[Path]:
    if directory.is_file():
        return [directory]
    if not directory.is_dir():
        raise InputError(Mistake(where=str(directory), found="no such folder", next_step="name what collect wrote"))
    files = sorted(path for path in directory.iterdir() if path.is_file() and _is_node_file(path))
    if not files and not (directory / LIST).is_file():
        allowed = "a file NODE.json for each node, or NODE.config_db.json of switches"
        raise InputError(Mistake(where=str(directory), found="no file of a node", allowed=allowed))
    return files


def _is_node_file(path: Path) -> bool:
    return path.suffix in (".json", ".txt") and path.name != LIST and not path.name.startswith(".")


def _node_name(path: Path) -> str:
    """Return the node that a file is named after; "" for a switch's configuration, which has its own."""
    return "" if "config_db" in path.name else path.stem.replace("%2F", "/")


def _file_name(name: str) -> str:
    return name.replace("/", "%2F").lstrip(".") or "node"


def _read_list(path: Path) -> tuple[tuple[NodeState, ...], bool]:
    if not path.is_file():
        return (), False
    document = load_json(path, max_bytes=MAX_LIST_BYTES)
    tree = document.tree if isinstance(document.tree, dict) else {}
    rows = tree.get("nodes")
    if tree.get(FORMAT_KEY) != FORMAT or not isinstance(rows, list):
        raise InputError(Mistake(where=document.where(), found="no list of a collection", next_step="collect it again"))
    return tuple(_state(row, document.where("nodes", number)) for number, row in enumerate(rows)), bool(
        tree.get("is_partial")
    )


def _state(row: object, where: str) -> NodeState:
    match row:
        case {"name": str(name), "state": str(state), "detail": str(detail)} if state in set(State):
            return NodeState(name=name, state=State(state), detail=detail)
    raise InputError(Mistake(where=where, found="a node of unknown form", allowed="name, state and detail"))
