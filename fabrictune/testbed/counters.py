"""Counters of every port of a testbed at a moment: what was sent, what waits, what was discarded, carrier lost.

Shapes: P ports.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import FloatArray, IntArray
from fabrictune.testbed.netlink import NamespaceSocket
from fabrictune.testbed.wiring import NamespaceFabric

INCOMING = "clsact"  # the queueing discipline that holds filters of what comes in


@dataclass(frozen=True, kw_only=True)
class LinkReading:
    """What every port's counters say at a moment."""

    time_s_P: FloatArray  # when each was asked
    sent_bytes_P: IntArray
    sent_packets_P: IntArray
    waiting_bytes_P: IntArray  # in its queue now
    queue_drops_P: IntArray  # of what was to be sent
    receive_drops_P: IntArray  # of what came in
    carrier_changes_P: IntArray


class LinkCounters:
    """The counters of all ports of a testbed."""

    def __init__(self, built: NamespaceFabric, sockets: Sequence[NamespaceSocket]) -> None:
        self._sockets, self._num_ports = sockets, built.fabric.num_ports
        name = built.fabric.port_name_P
        self._port_of_name = [
            {name[port]: port for port in built.ports_of(node)} for node in range(built.fabric.num_nodes)
        ]
        self._port = [
            {number: ports[link] for link, (number, _) in own.links().items() if link in ports}
            for own, ports in zip(sockets, self._port_of_name, strict=True)
        ]

    def read(self) -> LinkReading:
        """Return the counters of all ports now."""
        columns = {field: np.zeros(self._num_ports, np.int64) for field in LinkReading.__dataclass_fields__}
        del columns["time_s_P"]
        time_s_P = np.zeros(self._num_ports)
        for own, port_of, port_of_name in zip(self._sockets, self._port, self._port_of_name, strict=True):
            asked_s, queues = time.monotonic(), list(own.queues())
            time_s_P[list(port_of.values())] = (asked_s + time.monotonic()) / 2
            for queue in queues:
                if (port := port_of.get(queue.interface)) is None:
                    continue
                if queue.kind == INCOMING:
                    columns["receive_drops_P"][port] += queue.drops
                else:
                    columns["sent_bytes_P"][port] += queue.sent_bytes
                    columns["sent_packets_P"][port] += queue.sent_packets
                    columns["waiting_bytes_P"][port] += queue.backlog_bytes
                    columns["queue_drops_P"][port] += queue.drops
            for name, (_, changes) in own.links().items():
                if name in port_of_name:
                    columns["carrier_changes_P"][port_of_name[name]] = changes
        return LinkReading(time_s_P=time_s_P, **columns)


@contextmanager
def link_counters(built: NamespaceFabric) -> Iterator[LinkCounters]:
    """Give the counters of all ports of a testbed while the block runs."""
    with ExitStack() as stack:
        sockets = []
        for node in built.fabric.node_name_N:
            sockets.append(NamespaceSocket(built.namespace(node)))
            stack.callback(sockets[-1].close)
        yield LinkCounters(built, sockets)
