"""Questions to the kernel about one network namespace: its interfaces, and the queues of each.

A socket belongs to the namespace in which it was opened, so one process asks all of them, at any moment.

Source: rtnetlink(7); Linux, `include/uapi/linux/rtnetlink.h`, `if_link.h`, `gen_stats.h`, `pkt_sched.h`.
"""

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from fabrictune.foundation.network_namespaces import made_inside

_GET_LINK, _GET_QDISC, _DONE, _ERROR = 18, 38, 3, 2
_REQUEST_DUMP = 0x301
_HEADER, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
_LINK_BYTES, _QDISC_BYTES = 16, 20  # of their own headers
_NAME, _CARRIER_CHANGES = 3, 35  # attributes of a link
_KIND, _STATISTICS = 1, 7  # of a queue
_BASIC, _QUEUE = 1, 3  # of statistics
_TYPE_BITS = 0x3FFF
_ANSWER_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Queue:
    """What the kernel counts of one queueing discipline."""

    interface: int
    kind: str
    sent_bytes: int
    sent_packets: int
    backlog_bytes: int
    drops: int


class NamespaceSocket:
    """An open question-and-answer socket of a namespace; closed by `close`."""

    def __init__(self, namespace: str) -> None:
        self._socket = made_inside(namespace, _opened)

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def links(self) -> dict[str, tuple[int, int]]:
        """Return number and changes of carrier of every interface, by its name."""
        found = {}
        for body in self._ask(_GET_LINK, struct.pack("=BxHiII", 0, 0, 0, 0, 0)):
            number = struct.unpack_from("=i", body, 4)[0]
            values = dict(_attributes(body[_LINK_BYTES:]))
            name = values[_NAME].split(b"\0")[0].decode()
            found[name] = (number, struct.unpack_from("=I", values[_CARRIER_CHANGES])[0])
        return found

    def queues(self) -> Iterator[Queue]:
        """Yield every queueing discipline of every interface."""
        for body in self._ask(_GET_QDISC, bytes(_QDISC_BYTES)):
            values = dict(_attributes(body[_QDISC_BYTES:]))
            counted = dict(_attributes(values[_STATISTICS]))
            sent_bytes, sent_packets = struct.unpack_from("=QI", counted[_BASIC])
            _, backlog, drops = struct.unpack_from("=III", counted[_QUEUE])
            yield Queue(
                interface=struct.unpack_from("=i", body, 4)[0],
                kind=values[_KIND].split(b"\0")[0].decode(),
                sent_bytes=sent_bytes,
                sent_packets=sent_packets,
                backlog_bytes=backlog,
                drops=drops,
            )

    def _ask(self, kind: int, body: bytes) -> Iterator[bytes]:
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST_DUMP, 1, 0) + body)
        while True:
            answer = self._socket.recv(_ANSWER_BYTES)
            while answer:
                length, answered, *_ = _HEADER.unpack_from(answer)
                if answered == _DONE:
                    return
                assert answered != _ERROR, "a question that the kernel does not know"
                yield answer[_HEADER.size : length]
                answer = answer[_padded(length) :]


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    while len(content) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(content)
        yield kind & _TYPE_BITS, content[_ATTRIBUTE.size : length]
        content = content[_padded(length) :]


def _padded(length: int) -> int:
    return (length + 3) & ~3


def _opened() -> socket.socket:
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    opened.bind((0, 0))
    return opened
