"""The header fields a switch hashes: addresses, protocol and ports of F flows, and the queue pair they go to.

RoCEv2 fixes the protocol (UDP) and the destination port (4791), so the addresses and the source port carry all the
entropy that a 5-tuple has. Switches that read on into the transport header (E-ECMP) add the destination's queue-pair
number. A field that is not among the chosen ones counts as zero, as a chip's selection bitmap makes it.

Source: Meta's E-ECMP: Gangidi et al., "RDMA over Ethernet for distributed AI training at Meta scale", SIGCOMM'24.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.rocev2 import UDP_PORT

UDP_PROTOCOL = 17
NUM_BYTES = 13

HeaderField = Literal["source_ip", "destination_ip", "protocol", "source_port", "destination_port", "destination_qp"]
HEADER_FIELDS: tuple[HeaderField, ...] = get_args(HeaderField)
FIVE_TUPLE: tuple[HeaderField, ...] = HEADER_FIELDS[:5]


@dataclass(frozen=True, kw_only=True)
class FiveTuples:
    """The headers of F flows, and which of their fields are hashed."""

    source_ipv4_F: IntArray
    destination_ipv4_F: IntArray
    source_port_F: IntArray
    destination_qpn_F: IntArray | None = None  # needed where "destination_qp" is hashed
    fields: Sequence[HeaderField] = FIVE_TUPLE

    def __post_init__(self) -> None:
        assert "destination_qp" not in self.fields or self.destination_qpn_F is not None, "queue-pair numbers to hash"

    def __len__(self) -> int:
        return len(self.source_port_F)

    def take(self, row_T: IntArray) -> "FiveTuples":
        """Return the headers of some rows."""
        return replace(
            self,
            source_ipv4_F=self.source_ipv4_F[row_T],
            destination_ipv4_F=self.destination_ipv4_F[row_T],
            source_port_F=self.source_port_F[row_T],
            destination_qpn_F=None if self.destination_qpn_F is None else self.destination_qpn_F[row_T],
        )

    def choosing(self, fields: Sequence[HeaderField]) -> "FiveTuples":
        """Return the same flows with other fields hashed."""
        return replace(self, fields=fields)

    def words(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the fields as two 64-bit words: addresses, and queue pair (24), protocol (8) and ports (16 each)."""
        source_F = self._or_zero("source_ip", self.source_ipv4_F)
        destination_F = self._or_zero("destination_ip", self.destination_ipv4_F)
        port_F = self._or_zero("source_port", self.source_port_F)
        qpn_F = self._or_zero("destination_qp", self.destination_qpn_F)
        fixed = np.uint64(self._constant("protocol", UDP_PROTOCOL) << 32 | self._constant("destination_port", UDP_PORT))
        return source_F << np.uint64(32) | destination_F, qpn_F << np.uint64(40) | port_F << np.uint64(16) | fixed

    def wire_bytes(self) -> NDArray[np.uint8]:
        """Return the fields in the order and byte order of the wire: shape (F, 13), (F, 16) with the queue pair."""
        addresses_F, ports_F = self.words()
        packed_F = np.empty(len(self), _WIRE_FIELDS)
        packed_F["addresses"] = addresses_F
        packed_F["protocol"] = ports_F >> np.uint64(32) & np.uint64(0xFF)
        packed_F["ports"] = ports_F & np.uint64(0xFFFFFFFF)
        if "destination_qp" not in self.fields:
            return packed_F.view(np.uint8).reshape(-1, packed_F.itemsize)[:, :NUM_BYTES]
        packed_F["queue_pair"] = ports_F >> np.uint64(40) << np.uint64(8)
        return packed_F.view(np.uint8).reshape(-1, packed_F.itemsize)[:, :-1]

    def _or_zero(self, field: HeaderField, column_F: IntArray | None) -> NDArray[np.uint64]:
        if column_F is None or field not in self.fields:
            return np.zeros(len(self), np.uint64)
        return column_F.astype(np.uint64)

    def _constant(self, field: HeaderField, value: int) -> int:
        return value if field in self.fields else 0


_WIRE_FIELDS = np.dtype([("addresses", ">u8"), ("protocol", "u1"), ("ports", ">u4"), ("queue_pair", ">u4")])
