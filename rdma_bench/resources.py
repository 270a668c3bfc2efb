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
from fabrictune.foundation.foreign_files import read_head

MAX_QPN = 2**24 - 1
MAX_MISTAKES = 100
CONNECTED_TYPES = ("RC", "UC")
WORKING_STATES = ("RTR", "RTS", "SQD")
FAILED_STATES = ("ERR", "SQE")
LOOKED_AT_BYTES = 2**14


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
        return self.has_other_end and self.state in WORKING_STATES

    @property
    def has_other_end(self) -> bool:
        """Whether it has, or had before it failed, another end."""
        return self.remote_qpn != UNKNOWN and self.type in CONNECTED_TYPES

    @property
    def has_failed(self) -> bool:
        """Whether an error has ended it, such as retries that ran out."""
        return self.state in FAILED_STATES


def read_listing(path: Path) -> tuple[ListedQueuePair, ...]:
    """Return the queue pairs of a host; raises InputError with every mistake of the file."""
    return parse_listing(load_json(path), path.stem)


def is_listing(path: Path) -> bool:
    """Return whether a file begins as a listing."""
    return b'"lqpn"' in read_head(path, LOOKED_AT_BYTES)


def parse_listing(document: Document, host: str) -> tuple[ListedQueuePair, ...]:
    """Return the queue pairs of a host's listing; raises InputError with every mistake."""
    if not isinstance(document.tree, list):
        found, next_step = "not a list of queue pairs", "write the file with: rdma -j resource show qp"
        raise InputError(Mistake(where=document.where(), found=found, next_step=next_step))
    reader = _Reader(document, host)
    queue_pairs = tuple(reader.read(row, entry) for row, entry in enumerate(document.tree) if not reader.is_full)
    if reader.mistakes:
        raise InputError(*reader.mistakes)
    return queue_pairs


def listed_flows(queue_pairs: Sequence[ListedQueuePair]) -> ObservedFlows:
    """Return a flow from each connected queue pair whose other end is in a listing too; notes count the others."""
    pairs, notes = joined_ends([queue_pair for queue_pair in queue_pairs if queue_pair.is_connected])
    return collect_flows([flow_between(*ends) for ends in pairs], notes)


def joined_ends(
    queue_pairs: Sequence[ListedQueuePair],
) -> tuple[list[tuple[ListedQueuePair, ListedQueuePair]], list[str]]:
    """Return each queue pair with its other end, and notes on those whose other end is not known."""
    by_numbers: dict[tuple[int, int], list[ListedQueuePair]] = defaultdict(list)
    for queue_pair in queue_pairs:
        by_numbers[queue_pair.local_qpn, queue_pair.remote_qpn].append(queue_pair)
    pairs, num_alone, num_ambiguous = list[tuple[ListedQueuePair, ListedQueuePair]](), 0, 0
    for queue_pair in queue_pairs:
        others = by_numbers.get((queue_pair.remote_qpn, queue_pair.local_qpn), [])
        twins = by_numbers[queue_pair.local_qpn, queue_pair.remote_qpn]
        others = [other for other in others if other is not queue_pair]
        if len(others) == 1 and (len(twins) == 1 or queue_pair.local_qpn == queue_pair.remote_qpn):
            pairs.append((queue_pair, others[0]))
        elif others:
            num_ambiguous += 1
        else:
            num_alone += 1
    return pairs, list(_notes(num_alone, num_ambiguous))


def flow_between(queue_pair: ListedQueuePair, other: ListedQueuePair) -> Flow:
    """Return the flow from a queue pair to its other end."""
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
