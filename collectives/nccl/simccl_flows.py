"""Flows of SimCCL: the point-to-point messages that it decomposes a workload's collectives into.

`ncclFlowModel_detailed_flows.csv` of SimAI 1.7 has a row for each message, with ranks in place of hosts. Ranks are
dealt over the hosts in order, as SimAI does, and rank r of a host sends through the device `nic<r>` of it. Messages of
one channel between two ranks are one flow; those within a host, and what PXN relays there, do not reach the network.

Source: aliyun/SimAI 1.7, docs/getting_started/quickstart.md; SimCCL, README.md and docs (columns: collective, op,
data_size, algorithm, protocol, channel_id, flow_id, src, dest, flow_size, chunk_id, chunk_count, conn_type,
parent_flow_ids, prev_flow_ids; algorithm and protocol since its NCCL 2.30 mode).
Left out: which message waits for which (prev_flow_ids), so that all flows of a file run at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.flows import Endpoint, Flow, ObservedFlows, collect_flows
from fabrictune.foundation.foreign_files import open_foreign
from fabrictune.foundation.wording import count

MAX_FILE_BYTES = 2**34
MAX_LINE_BYTES = 2**20
MAX_FLOWS = 1_000_000
MAX_RANKS = 10_000_000
HEAD = b"flow_size,chunk_id"  # in the first line of every version
_NEEDED = ("channel_id", "src", "dest", "flow_size")
_DIGITS = 19  # of a number

Pair = tuple[int, int, int]  # source and destination rank, channel


@dataclass
class _Sum:
    """The messages of one channel between two ranks."""

    num_bytes: int
    num_messages: int
    line: int  # of the first


def simccl_flows(paths: Sequence[Path], hosts: Sequence[str]) -> ObservedFlows:
    """Return the flows between hosts; raises InputError for what is no such file, and where ranks fit no hosts."""
    if len(hosts) < 2:
        found, allowed = count(len(hosts), "host"), "two or more, in the order of their ranks"
        raise InputError(Mistake(where="hosts", found=found, allowed=allowed))
    reader = _Reader()
    for path in paths:
        reader.read(path)
    num_ranks = 1 + max((max(source, destination) for _, (source, destination, _) in reader.sums), default=-1)
    if not num_ranks or num_ranks % len(hosts):
        found = f"{count(num_ranks, 'rank')} on {count(len(hosts), 'host')}"
        raise InputError(Mistake(where="hosts", found=found, allowed="hosts of as many ranks each"))
    return collect_flows(
        list(_between(reader.sums, hosts, num_ranks // len(hosts))), list(reader.notes(num_ranks // len(hosts)))
    )


def _between(sums: Mapping[tuple[str, Pair], _Sum], hosts: Sequence[str], per_host: int) -> Iterator[Flow]:
    for (path, (source, destination, channel)), one in sums.items():
        if source // per_host != destination // per_host:
            ends = [
                Endpoint(host=hosts[rank // per_host], device=f"nic{rank % per_host}") for rank in (source, destination)
            ]
            origin = f"{path}:{one.line}: channel {channel}, rank {source} to {destination}"
            yield Flow(source=ends[0], destination=ends[1], num_bytes=one.num_bytes, origin=origin)


class _Reader:
    """Adds the messages of files up."""

    def __init__(self) -> None:
        self.sums: dict[tuple[str, Pair], _Sum] = {}
        self.num_damaged = 0
        self.has_order = False

    def read(self, path: Path) -> None:
        with open_foreign(path, max_bytes=MAX_FILE_BYTES) as file:
            places = _places(file.readline(MAX_LINE_BYTES), path)
            last = max(places)
            number, name = 1, str(path)
            while raw := file.readline(MAX_LINE_BYTES):
                number += 1
                cells = raw.rstrip(b"\r\n").split(b",", last + 1)
                self._add(cells, places, name, number)
                self.has_order = self.has_order or not raw.rstrip().endswith(b",")
                if len(self.sums) > MAX_FLOWS:
                    found = f"more than {MAX_FLOWS:,} pairs of ranks and channels"
                    raise InputError(Mistake(where=f"{path}:{number}", found=found, next_step="give fewer collectives"))

    def _add(self, cells: Sequence[bytes], places: Sequence[int], name: str, number: int) -> None:
        texts = [cells[place].strip() if place < len(cells) else b"" for place in places]
        if not any(cells):
            return
        if not all(text.isdigit() and len(text) <= _DIGITS for text in texts):
            self.num_damaged += 1
            return
        channel, source, destination, size = (int(text) for text in texts)
        if max(source, destination) >= MAX_RANKS or size >= 2**62:
            self.num_damaged += 1
            return
        one = self.sums.setdefault((name, (source, destination, channel)), _Sum(0, 0, number))
        one.num_bytes = min(one.num_bytes + size, 2**62)
        one.num_messages += 1

    def notes(self, per_host: int) -> Iterator[str]:
        inside = [
            one
            for (_, (source, destination, _)), one in self.sums.items()
            if source // per_host == destination // per_host
        ]
        num_messages = sum(one.num_messages for one in self.sums.values())
        yield f"SimCCL: {count(num_messages, 'message')} as {count(len(self.sums) - len(inside), 'flow')} between hosts"
        if inside:
            yield f"messages within hosts, left out: {sum(one.num_messages for one in inside):,}"
        if self.has_order:
            yield "the order of messages (prev_flow_ids) is left out: all flows begin at once"
        if self.num_damaged:
            yield f"rows without whole numbers in {', '.join(_NEEDED)}, left out: {self.num_damaged:,}"


def _places(head: bytes, path: Path) -> tuple[int, ...]:
    """Return the places of the columns that are needed; raises InputError where one is missing."""
    names = [name.strip() for name in head.decode(errors="replace").rstrip("\r\n").split(",")]
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        found, allowed = f"no column {', '.join(missing)}", "the columns of ncclFlowModel_detailed_flows.csv"
        raise InputError(Mistake(where=f"{path}:1", found=found, allowed=allowed))
    return tuple(names.index(name) for name in _NEEDED)
