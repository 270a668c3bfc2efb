"""Endless TCP streams between hosts of a testbed, all of this one process: its sockets are in the hosts' namespaces."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address

from fabrictune.foundation.network_namespaces import made_inside
from fabrictune.testbed.wiring import NamespaceFabric

_PIECE_BYTES = 1 << 16
_PORT = 5201


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A stream from NIC to NIC; its source port decides its path."""

    source_nic: int
    destination_nic: int
    source_port: int = 0  # one that the kernel chooses


@contextmanager
def streams(built: NamespaceFabric, wanted: Sequence[Stream]) -> Iterator[None]:
    """Keep streams busy while the block runs."""
    with ExitStack() as stack:
        listener = {nic: _listener(built, nic) for nic in {stream.destination_nic for stream in wanted}}
        for one in listener.values():
            stack.callback(one.close)
        for stream in wanted:
            _start(built, stream, listener[stream.destination_nic], stack)
        yield


def _listener(built: NamespaceFabric, nic: int) -> socket.socket:
    return made_inside(_namespace(built, nic), lambda: socket.create_server((_address(built, nic), _PORT)))


def _start(built: NamespaceFabric, stream: Stream, listener: socket.socket, stack: ExitStack) -> None:
    own = (_address(built, stream.source_nic), stream.source_port)
    target = (_address(built, stream.destination_nic), _PORT)
    sender = made_inside(
        _namespace(built, stream.source_nic), lambda: socket.create_connection(target, source_address=own)
    )
    receiver, _ = listener.accept()
    threads = [threading.Thread(target=_send, args=(sender,)), threading.Thread(target=_receive, args=(receiver,))]
    for thread in threads:
        stack.callback(thread.join)
    for end in (receiver, sender):
        stack.callback(_end, end)
    for thread in threads:
        thread.start()


def _send(sender: socket.socket) -> None:
    piece = bytes(_PIECE_BYTES)
    with suppress(OSError), sender:
        while True:
            sender.sendall(piece)


def _receive(receiver: socket.socket) -> None:
    buffer = bytearray(_PIECE_BYTES)
    with suppress(OSError), receiver:
        while receiver.recv_into(buffer):
            pass


def _end(end: socket.socket) -> None:
    with suppress(OSError):  # closed by its thread already
        end.shutdown(socket.SHUT_RDWR)


def _namespace(built: NamespaceFabric, nic: int) -> str:
    return built.namespace(built.fabric.node_name_N[built.fabric.nic_host_C[nic]])


def _address(built: NamespaceFabric, nic: int) -> str:
    return str(IPv4Address(int(built.fabric.nic_ipv4_C[nic])))
