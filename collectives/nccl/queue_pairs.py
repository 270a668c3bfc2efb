"""The queue pairs that a log of NCCL tells of, given to the connections that opened them.

With NCCL_DEBUG_SUBSYS=INIT,NET (or ALL) the sending side logs each queue pair it opens: number, device, address; and
then, up to NCCL 2.25, the number of the remote one. These messages name no channel. They are given to the connections
of their host, GPU and device in the order in which both were logged, and only where their counts agree; remote numbers
to local ones of a thread likewise. Later versions log the own number in both places: a number that is repeated is no
remote one.

Source: NCCL, src/transport/net_ib.cc (ncclIbConnect) and src/transport/net_ib/connect.cc.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from collectives.nccl.connections import Connection
from collectives.nccl.log import NcclLog
from foundation.flows import UNKNOWN

Opener = tuple[str, int, int]  # host, GPU, index of the network device


@dataclass(frozen=True)
class QueuePairNumbers:
    """Both ends' numbers, UNKNOWN where they are not told."""

    local: int = UNKNOWN
    remote: int = UNKNOWN


def assign_queue_pairs(
    log: NcclLog, connections: Sequence[Connection], qps_per_connection: Sequence[int]
) -> tuple[list[list[QueuePairNumbers]], int]:
    """Return the queue pairs of each connection, and how many of the connections got no numbers."""
    opened = _opened(log)
    mine: dict[Opener, list[int]] = defaultdict(list)  # rows of `connections`
    for row, connection in enumerate(connections):
        mine[connection.source.host, connection.opener_gpu, connection.device].append(row)
    assigned = [[QueuePairNumbers()] * count for count in qps_per_connection]
    num_unnumbered = len(connections)
    for opener, rows in mine.items():
        numbers = opened.get(opener, [])
        if len(numbers) == sum(qps_per_connection[row] for row in rows):
            supply = iter(numbers)
            for row in rows:
                assigned[row] = [next(supply) for _ in range(qps_per_connection[row])]
            num_unnumbered -= len(rows)
    return assigned, num_unnumbered


def _opened(log: NcclLog) -> dict[Opener, list[QueuePairNumbers]]:
    """Return the queue pairs that each process opened through each device."""
    handshakes: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    announced: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for handshake in log.handshakes:
        handshakes[handshake.host, handshake.pid, handshake.tid].append(handshake.qpn)
    for fact in log.queue_pairs:
        announced[fact.host, fact.pid, fact.tid].append(fact.qpn)
    remotes = {thread: iter(_remote_numbers(own, handshakes[thread])) for thread, own in announced.items()}
    opened: dict[Opener, list[QueuePairNumbers]] = defaultdict(list)
    for fact in log.queue_pairs:
        remote = next(remotes[fact.host, fact.pid, fact.tid])
        opened[fact.host, fact.gpu, fact.device].append(QueuePairNumbers(fact.qpn, remote))
    return opened


def _remote_numbers(own: Sequence[int], handshakes: Sequence[int]) -> list[int]:
    """Return the remote number of each queue pair of a thread."""
    if len(handshakes) != len(own) or set(handshakes) & set(own):
        return [UNKNOWN] * len(own)
    return list(handshakes)
