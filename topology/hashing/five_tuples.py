"""The header fields a switch hashes: addresses, protocol and ports of F flows.

RoCEv2 fixes the protocol (UDP) and the destination port (4791), so the addresses and the source port carry all the
entropy there is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foundation.rocev2 import UDP_PORT
from topology.fabric import IntArray

UDP_PROTOCOL = 17
NUM_BYTES = 13


@dataclass(frozen=True, kw_only=True)
class FiveTuples:
    """The 5-tuples of F flows."""

    source_ipv4_F: IntArray
    destination_ipv4_F: IntArray
    source_port_F: IntArray

    def __len__(self) -> int:
        return len(self.source_port_F)

    def take(self, row_T: IntArray) -> "FiveTuples":
        """Return the 5-tuples of some rows."""
        return FiveTuples(
            source_ipv4_F=self.source_ipv4_F[row_T],
            destination_ipv4_F=self.destination_ipv4_F[row_T],
            source_port_F=self.source_port_F[row_T],
        )

    def words(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the fields as two 64-bit words: addresses, and protocol with ports."""
        source_F, destination_F, port_F = (
            column.astype(np.uint64) for column in (self.source_ipv4_F, self.destination_ipv4_F, self.source_port_F)
        )
        fixed = np.uint64(UDP_PROTOCOL << 32 | UDP_PORT)
        return source_F << np.uint64(32) | destination_F, port_F << np.uint64(16) | fixed

    def wire_bytes(self) -> NDArray[np.uint8]:
        """Return the fields in the order and byte order of the wire, shape (F, 13)."""
        packed_F = np.empty(len(self), _WIRE_FIELDS)
        packed_F["source"] = self.source_ipv4_F
        packed_F["destination"] = self.destination_ipv4_F
        packed_F["protocol"] = UDP_PROTOCOL
        packed_F["source_port"] = self.source_port_F
        packed_F["destination_port"] = UDP_PORT
        return packed_F.view(np.uint8).reshape(-1, NUM_BYTES)


_WIRE_FIELDS = np.dtype(
    [
        ("source", ">u4"),
        ("destination", ">u4"),
        ("protocol", "u1"),
        ("source_port", ">u2"),
        ("destination_port", ">u2"),
    ]
)
