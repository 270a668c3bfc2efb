"""Chakra execution traces: a graph of compute and communication nodes for each rank, `NAME.RANK.et`.

Reading keeps the communication: a request for each send, receive and collective, which waits for the communication
before it on every way through the graph, and for the longest work between. Sizes are taken as they are (`comm_size`,
signed or not). Groups are those of `comm_group.json` next to the files, where a node's `pg_name` names one, and all
ranks with a file elsewhere; notes say which ranks have none.

A profile that MLCommons' converter turned into a trace has a node on the host for each collective on the GPU: work,
without type and size. Its control dependencies are callers, which others do not wait for, and are left out, as
ASTRA-sim does; both are noted.

Source: mlcommons/chakra, schema/protobuf/et_def.proto; ASTRA-sim's use of attributes and of comm_group.json.
Left out: the use of one processor by two compute nodes at once, memory and storage nodes; operations that a CommTrace
does not have (reduce, gather, scatter).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from fabrictune.collectives.traces.builder import TraceBuilder
from fabrictune.collectives.traces.chakra_nodes import read_nodes
from fabrictune.collectives.traces.chakra_order import add_in_order
from fabrictune.collectives.traces.chakra_requests import requests_of
from fabrictune.foundation.documents import load_json
from fabrictune.foundation.errors import Mistake, TraceError
from fabrictune.foundation.traces import CommTrace

GROUPS_FILE = "comm_group.json"
MAX_GROUPS_BYTES = 2**26
MAX_LISTED = 8  # ranks or groups that a note names
_RANK = re.compile(r"\.(\d{1,7})\.et$")


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
        nodes = read_nodes(files[rank])
        requests = requests_of(nodes, rank, everyone, groups.of_name)
        groups.count(requests.num_of_group)
        num_on_host += int(requests.is_on_host_N.sum())
        num_callers += add_in_order(builder, nodes, requests, rank)
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
        self.of_name = of_name
        self._of_all: Counter[str] = Counter()  # collectives of all ranks, by the name of their group; "" without one

    def count(self, num_of_group: Mapping[str, int]) -> None:
        """Take the numbers of collectives by the name of their group, "" without one."""
        self._of_all.update({name: count for name, count in num_of_group.items() if name not in self.of_name})

    def notes(self, groups: Iterable[tuple[int, ...]]) -> Iterator[str]:
        """Yield what was taken for granted of the groups that were asked, and which ranks have no file."""
        below = range(max(self.ranks)) if self._of_all else ()
        without_file = sorted({*below, *chain(*groups, *self.of_name.values())}.difference(self.ranks))
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
