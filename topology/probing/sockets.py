"""The edge to the real network: two raw sockets of Linux, one that sends whole IPv4 datagrams and one that hears ICMP.

Both need CAP_NET_RAW and are closed on the way out, whatever happens. The sending one receives nothing; of the ICMP
messages the kernel passes on only the two kinds that answer a probe.
"""

import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import IPv4Address

from fabrictune.foundation.errors import Mistake, UnavailableError
from fabrictune.foundation.rocev2 import UDP_PORT

_SOL_RAW, _ICMP_FILTER = 255, 1  # linux/icmp.h, which Python's socket module does not have
_HEARD_TYPES = 1 << 3 | 1 << 11  # destination unreachable, time exceeded
_RECEIVE_BUFFER_BYTES = 1 << 20
_MAX_DATAGRAM_BYTES = 1 << 16
_MAX_DATAGRAMS = 1000  # taken at once, so that a flood of them cannot hold up the clock
_DESTINATION = slice(16, 20)  # of an IPv4 header


class RawSockets:
    """The wire of `discover`, on this machine."""

    def __init__(self, sender: socket.socket, receiver: socket.socket) -> None:
        self.sender = sender
        self.receiver = receiver

    def now_s(self) -> float:
        """Return the time of a clock that never steps."""
        return time.monotonic()

    def source_ipv4(self, target_ipv4: int) -> int:
        """Return the address that the kernel would send from; sends nothing. Raises UnavailableError."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            try:
                asking.connect((str(IPv4Address(target_ipv4)), UDP_PORT))
            except OSError as error:
                raise _unreachable(target_ipv4, error) from error
            return int(IPv4Address(asking.getsockname()[0]))

    def send(self, datagram: bytes) -> None:
        """Send an IPv4 datagram to the address in it; raises UnavailableError."""
        destination = IPv4Address(datagram[_DESTINATION])
        try:
            self.sender.sendto(datagram, (str(destination), 0))
        except OSError as error:
            raise _unreachable(int(destination), error) from error

    def receive(self, until_s: float) -> Sequence[bytes]:
        """Return the ICMP datagrams that are here, or the next to come before `until_s`."""
        patience_s = max(until_s - time.monotonic(), 0.0)
        if not select.select([self.receiver], [], [], patience_s)[0]:
            return []
        datagrams: list[bytes] = []
        with suppress(BlockingIOError):
            while len(datagrams) < _MAX_DATAGRAMS:
                datagrams.append(self.receiver.recv(_MAX_DATAGRAM_BYTES))
        return datagrams


@contextmanager
def open_raw_sockets() -> Iterator[RawSockets]:
    """Give the sockets; raises UnavailableError where this user or system does not allow them."""
    with ExitStack() as stack:
        try:
            sender = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW))
            receiver = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
            receiver.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", ~_HEARD_TYPES & 0xFFFFFFFF))
        except PermissionError:
            raise UnavailableError(
                Mistake(
                    where="raw sockets",
                    found="not allowed: this process has no CAP_NET_RAW",
                    next_step="run as root, or in a container or network namespace that grants CAP_NET_RAW",
                )
            ) from None
        except OSError as error:
            found = f"not to be had on this system ({error.strerror})"
            raise UnavailableError(Mistake(where="raw sockets", found=found, next_step="probe from Linux")) from error
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        receiver.setblocking(False)
        yield RawSockets(sender, receiver)


def _unreachable(target_ipv4: int, error: OSError) -> UnavailableError:
    target = IPv4Address(target_ipv4)
    return UnavailableError(
        Mistake(
            where=str(target),
            found=f"this machine cannot send there ({error.strerror})",
            next_step=f"see what `ip route get {target}` says",
        )
    )
