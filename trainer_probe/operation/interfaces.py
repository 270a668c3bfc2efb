"""The address of a network interface, in the network namespace of this process."""

import fcntl
import socket
import struct

from fabrictune.foundation.errors import InputError, Mistake

_GET_ADDRESS = 0x8915  # SIOCGIFADDR, netdevice(7)


def address_of(interface: str) -> str:
    """Return the IPv4 address of an interface; raises InputError where it has none."""
    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), _GET_ADDRESS, request)
        except OSError as error:
            known = ", ".join(name for _, name in socket.if_nameindex())
            raise InputError(
                Mistake(where="--interface", found=f"{interface} ({error.strerror})", allowed=f"one of {known}")
            ) from error
    return socket.inet_ntoa(answer[20:24])
