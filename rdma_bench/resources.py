"""Queue pairs as a host lists them: `rdma -j resource show qp`, one file a host.

A listing has the device and both numbers of every connected queue pair, but neither the other host nor addresses. Where
the listings of both hosts are at hand, a row of one that has its two numbers swapped in the other names the other end;
where several have, it is unknown. The file's name without its ending is taken as the host's name.

Nothing in a listing says which end sends, so a connection gives two flows, one from each end.

Source: iproute2, rdma-resource(8); Linux, drivers/infiniband/core/nldev.c (which fields a queue pair has).
Left out: the drivers' own fields (`-dd`), and queue pairs of other types than RC and UC, which have no other end.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabrictune.foundation.documents import Document, load_json
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.flows import UNKNOWN, Endpoint, Flow, ObservedFlows, collect_flows

MAX_QPN = 2**24 - 1
MAX_MISTAKES = 100
CONNECTED_TYPES = ("RC", "UC")
WORKING_STATES = ("RTR", "RTS", "SQD")


@dataclass(frozen=True, kw_only=True)
class ListedQueuePair:
    """One row of a listing."""

    host: str
    device: str
    port: int  # of the device
    local_qpn: int
    remote_qpn: int  # UNKNOWN until it is connected
    type: str
    state: str
    pid: int  # UNKNOWN for the kernel's own
    command: str
    where: str

    @property
    def is_connected(self) -> bool:
        """Whether it has another end that it may send to."""
        return self.remote_qpn != UNKNOWN and self.type in CONNECTED_TYPES and self.state in WORKING_STATES


def read_listing(path: Path) -> tuple[ListedQueuePair, ...]:
    """Return the queue pairs of a host; raises InputError with every mistake of the file."""
    document = load_json(path)
    if not isinstance(document.tree, list):
        found, next_step = "not a list of queue pairs", "write the file with: rdma -j resource show qp"
        raise InputError(Mistake(where=document.where(), found=found, next_step=next_step))
    reader = _Reader(document, path.stem)
    queue_pairs = tuple(reader.read(row, entry) for row, entry in enumerate(document.tree) if not reader.is_full)
    if reader.mistakes:
        raise InputError(*reader.mistakes)
    return queue_pairs


def listed_flows(queue_pairs: Sequence[ListedQueuePair]) -> ObservedFlows:
    """Return a flow from each connected queue pair whose other end is in a listing too; notes count the others."""
    connected = [queue_pair for queue_pair in queue_pairs if queue_pair.is_connected]
    by_numbers: dict[tuple[int, int], list[ListedQueuePair]] = defaultdict(list)
    for queue_pair in connected:
        by_numbers[queue_pair.local_qpn, queue_pair.remote_qpn].append(queue_pair)
    rows, num_alone, num_ambiguous = list[Flow](), 0, 0
    for queue_pair in connected:
        others = by_numbers.get((queue_pair.remote_qpn, queue_pair.local_qpn), [])
        twins = by_numbers[queue_pair.local_qpn, queue_pair.remote_qpn]
        others = [other for other in others if other is not queue_pair]
        if len(others) == 1 and (len(twins) == 1 or queue_pair.local_qpn == queue_pair.remote_qpn):
            rows.append(_flow(queue_pair, others[0]))
        elif others:
            num_ambiguous += 1
        else:
            num_alone += 1
    return collect_flows(rows, list(_notes(num_alone, num_ambiguous)))


def _flow(queue_pair: ListedQueuePair, other: ListedQueuePair) -> Flow:
    return Flow(
        source=Endpoint(host=queue_pair.host, device=queue_pair.device),
        destination=Endpoint(host=other.host, device=other.device),
        source_qpn=queue_pair.local_qpn,
        destination_qpn=queue_pair.remote_qpn,
        origin=queue_pair.where,
    )


def _notes(num_alone: int, num_ambiguous: int) -> Iterator[str]:
    if num_alone:
        yield f"queue pairs whose other end is in no listing, left out: {num_alone}"
    if num_ambiguous:
        yield f"queue pairs whose two numbers fit more than one other end, left out: {num_ambiguous}"


class _Reader:
    """Reads one document's rows."""

    def __init__(self, document: Document, host: str) -> None:
        self.document = document
        self.host = host
        self.mistakes: list[Mistake] = []

    @property
    def is_full(self) -> bool:
        return len(self.mistakes) >= MAX_MISTAKES

    def read(self, row: int, entry: Any) -> ListedQueuePair:
        if not isinstance(entry, dict):
            self._mistake("not a mapping", "a queue pair", row)
            entry = {}
        elif "ifname" not in entry or "lqpn" not in entry:
            self._mistake("a row without ifname or lqpn", "a queue pair, not another resource", row)
        return ListedQueuePair(
            host=self.host,
            device=self._text(entry, row, "ifname"),
            port=self._number(entry, row, "port", 255),
            local_qpn=self._number(entry, row, "lqpn", MAX_QPN),
            remote_qpn=self._number(entry, row, "rqpn", MAX_QPN),
            type=self._text(entry, row, "type"),
            state=self._text(entry, row, "state"),
            pid=self._number(entry, row, "pid", 2**31 - 1),
            command=self._text(entry, row, "comm"),
            where=f"{self.document.path}: row {row}",
        )

    def _text(self, entry: dict[str, Any], row: int, key: str) -> str:
        value = entry.get(key, "")
        if not isinstance(value, str):
            self._mistake(repr(value)[:40], "text", row, key)
            return ""
        return value

    def _number(self, entry: dict[str, Any], row: int, key: str, highest: int) -> int:
        value = entry.get(key, UNKNOWN)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if key in entry and not (is_number and 0 <= value <= highest):
            self._mistake(repr(value)[:40], f"0 to {highest}", row, key)
            return UNKNOWN
        return int(value)

    def _mistake(self, found: str, allowed: str, row: int, *keys: str) -> None:
        self.mistakes.append(Mistake(where=self.document.where(row, *keys), found=found, allowed=allowed))
