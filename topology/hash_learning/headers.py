"""Headers as bits: addresses, protocol, ports and queue pair of a RoCEv2 flow, in the order of the wire.

Bit 0 is the first bit of the source address. A header is an integer of `NUM_BITS` bits with bit 0 on top: the bytes of
`FiveTuples.wire_bytes`.
"""

from dataclasses import dataclass

from fabrictune.foundation.rocev2 import UDP_PORT
from fabrictune.topology.hashing.five_tuples import UDP_PROTOCOL, HeaderField

NUM_BITS = 128
BITS_OF: dict[HeaderField, range] = {
    "source_ip": range(32),
    "destination_ip": range(32, 64),
    "protocol": range(64, 72),
    "source_port": range(72, 88),
    "destination_port": range(88, 104),
    "destination_qp": range(104, 128),
}
VARIED: tuple[HeaderField, ...] = ("source_ip", "destination_ip", "source_port", "destination_qp")


@dataclass(frozen=True, kw_only=True)
class FlowHeader:
    """What differs between the headers of RoCEv2 flows."""

    source_ipv4: int
    destination_ipv4: int
    source_port: int
    destination_qpn: int = 0

    @property
    def bits(self) -> int:
        """The header as an integer."""
        fixed = UDP_PROTOCOL << 32 | self.source_port << 16 | UDP_PORT
        return self.source_ipv4 << 96 | self.destination_ipv4 << 64 | fixed << 24 | self.destination_qpn


def bit_vector(bit: int) -> int:
    """Return the header that has one bit alone."""
    return 1 << NUM_BITS - 1 - bit
