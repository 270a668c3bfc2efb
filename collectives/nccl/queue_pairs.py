"""Queue pairs in a log of NCCL, by the connections that opened them.

With NCCL_DEBUG_SUBSYS=INIT,NET (or ALL) the sending side logs each queue pair it opens: number, device, address. The
other end's number follows up to NCCL 2.25; later versions log the own number again, which is of no use (a number that
is repeated is no remote one), but since 2.29 the receiving side logs its queue pairs too.

These messages name no channel. Numbers are given to the connections of their host, GPU and device in the order in which
both were logged, and only where their counts agree; remote numbers to local ones of a thread in the same way.

Source: NCCL, src/transport/net_ib.cc (ncclIbConnect) and src/transport/net_ib/connect.cc.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fabrictune.collectives.nccl.connections import Connection, ConnectionEnd
from fabrictune.collectives.nccl.log import NcclLog
from fabrictune.foundation.flows import UNKNOWN

Opener = tuple[str, int, int]  # host, GPU, index of the network device
Thread = tuple[str, int, int]  # host, process, thread


@dataclass(frozen=True)
class QueuePairNumbers:
    """Both ends' numbers, UNKNOWN where they are not logged."""

    source: int = UNKNOWN
    destination: int = UNKNOWN


def assign_queue_pairs(
    log: NcclLog, connections: Sequence[Connection], qps_per_connection: Sequence[int]
) -> list[list[QueuePairNumbers]]:
    """Return the queue pairs of each connection, as many as `qps_per_connection` says of it."""
    sources, destinations = (
        [connection.source for connection in connections],
        [connection.destination for connection in connections],
    )
    local, remote = _sent(log)
    received = _received(log)
    columns = (
        _distribute(local, sources, qps_per_connection),
        _distribute(remote, sources, qps_per_connection),
        _distribute(received, destinations, qps_per_connection),
    )
    return [
        [
            QueuePairNumbers(own, remote if remote != UNKNOWN else opened)
            for own, remote, opened in zip(*numbers, strict=True)
        ]
        for numbers in zip(*columns, strict=True)
    ]


def _distribute(
    numbers: Mapping[Opener, Sequence[int]], ends: Sequence[ConnectionEnd], counts: Sequence[int]
) -> list[list[int]]:
    """Return the numbers of each end, in the order of the ends' own messages."""
    ends_of: dict[Opener, list[int]] = defaultdict(list)
    for place in sorted(range(len(ends)), key=lambda place: ends[place].row):
        if ends[place].row != UNKNOWN:
            ends_of[ends[place].endpoint.host, ends[place].gpu, ends[place].device].append(place)
    result = [[UNKNOWN] * count for count in counts]
    for opener, places in ends_of.items():
        supply = numbers.get(opener, ())
        if len(supply) == sum(counts[place] for place in places):
            rest = iter(supply)
            for place in places:
                result[place] = [next(rest) for _ in range(counts[place])]
    return result


def _sent(log: NcclLog) -> tuple[dict[Opener, list[int]], dict[Opener, list[int]]]:
    """Return the local and the remote numbers of the queue pairs that each process opened to send."""
    handshakes: dict[Thread, list[int]] = defaultdict(list)
    announced: dict[Thread, list[int]] = defaultdict(list)
    for handshake in log.handshakes:
        handshakes[handshake.host, handshake.pid, handshake.tid].append(handshake.qpn)
    for fact in log.queue_pairs:
        announced[fact.host, fact.pid, fact.tid].append(fact.qpn)
    remotes = {thread: iter(_remote_numbers(own, handshakes[thread])) for thread, own in announced.items()}
    local: dict[Opener, list[int]] = defaultdict(list)
    remote: dict[Opener, list[int]] = defaultdict(list)
    for fact in log.queue_pairs:
        local[fact.host, fact.gpu, fact.device].append(fact.qpn)
        remote[fact.host, fact.gpu, fact.device].append(next(remotes[fact.host, fact.pid, fact.tid]))
    return local, remote


def _received(log: NcclLog) -> dict[Opener, list[int]]:
    """Return the numbers of the queue pairs that each process opened to receive."""
    numbers: dict[Opener, list[int]] = defaultdict(list)
    for fact in log.receiving_queue_pairs:
        numbers[fact.host, fact.gpu, fact.device].append(fact.qpn)
    return numbers


def _remote_numbers(own: Sequence[int], handshakes: Sequence[int]) -> list[int]:
    """Return the remote number of each queue pair of a thread."""
    if len(handshakes) != len(own) or set(handshakes) & set(own):
        return [UNKNOWN] * len(own)
    return list(handshakes)
