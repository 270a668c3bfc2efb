"""Ultra Ethernet frames of a capture, one for each packet of the engine.

A queue pair is a packet delivery context, numbered by its row at both ends; PSNs count its packets from 0. The source
port is a packet's entropy value, or the queue pair's port where packets have none. A data packet carries its credit
target where there are credits, and zeros as payload; a trimmed one ends with its headers. An acknowledgement has the
bitmap of 64 packets where acknowledgements are coalesced.

Zero, for nothing models it: next headers (no semantic header follows), SYN and acknowledgement-request flags,
CLEAR_PSN_OFFSET, MPR, service time, received bytes and the count of packets out of order. The retransmission flag is
set where a context's PSN was captured before. Frames have no CRC of UET's own.
"""

from dataclasses import dataclass, field
from typing import Any

from fabrictune.foundation.rocev2 import CONGESTION_EXPERIENCED, ECN_CAPABLE
from fabrictune.foundation.uet import (
    CONTEXT_LIMIT,
    ControlType,
    NackCode,
    pack_ack,
    pack_ack_cc,
    pack_credit,
    pack_frame,
    pack_nack,
    pack_request,
)
from fabrictune.netsim.config.packet import PacketConfig

BITMAP_MASK = 2**64 - 1


@dataclass(frozen=True, kw_only=True)
class UetPacket:
    """What a capture knows of a packet besides its type."""

    sequence: int
    is_marked: bool
    entropy: int
    expected_sequence: int  # of an acknowledgement: all below has arrived
    report_first: int  # and the packet of the first of its 64 bits
    report_bits: int
    credit_bytes: int  # count that is wanted or granted
    is_last_hop: bool  # of a trimmed packet and its answer


@dataclass(frozen=True, kw_only=True)
class UetDscps:
    """DSCP of a queue pair's packets."""

    data: int
    answer: int  # and of all that is control
    trimmed: int


@dataclass(kw_only=True)
class UetFrames:
    """Frames of one queue pair; `addresses` are those of its frames to the sender (0) and the receiver (1)."""

    row: int
    addresses: tuple[dict[str, Any], dict[str, Any]]
    dscps: UetDscps
    source_port: int
    config: PacketConfig
    seen: set[int] = field(default_factory=set)

    def data(self, packet: UetPacket, payload_bytes: int) -> bytes:
        """Return a data packet."""
        header = self._request(packet)
        self.seen.add(packet.sequence)
        return self._frame(header, 1, packet, self.dscps.data, ecn=_ecn(packet), payload=bytes(payload_bytes))

    def trimmed(self, packet: UetPacket) -> bytes:
        """Return a data packet of which a switch has left the headers."""
        return self._frame(self._request(packet), 1, packet, self.dscps.trimmed, ecn=_ecn(packet))

    def acknowledgement(self, packet: UetPacket) -> bytes:
        """Return an acknowledgement."""
        common: dict[str, Any] = {
            "psn": packet.sequence,
            "cumulative_psn": packet.expected_sequence - 1,
            "context": self._context,
            "is_marked": packet.is_marked,
        }
        if not self.config.transport.coalesces:
            return self._frame(pack_ack(**common), 0, packet, self.dscps.answer)
        bitmap = packet.report_bits & BITMAP_MASK
        first = packet.report_first if bitmap else packet.expected_sequence
        header = pack_ack_cc(**common, bitmap_psn=first, bitmap=bitmap)
        return self._frame(header, 0, packet, self.dscps.answer)

    def trim_answer(self, packet: UetPacket) -> bytes:
        """Return the negative acknowledgement of a trimmed packet."""
        code = NackCode.TRIMMED_LAST_HOP if packet.is_last_hop else NackCode.TRIMMED
        header = pack_nack(psn=packet.sequence, code=code, context=self._context, is_marked=packet.is_marked)
        return self._frame(header, 0, packet, self.dscps.answer)

    def credit(self, packet: UetPacket, *, is_request: bool) -> bytes:
        """Return a grant, or a request of one."""
        kind = ControlType.CREDIT_REQUEST if is_request else ControlType.CREDIT
        header = pack_credit(kind, credit_bytes=packet.credit_bytes, context=self._context)
        return self._frame(header, int(is_request), packet, self.dscps.answer)

    @property
    def _context(self) -> int:
        return self.row % CONTEXT_LIMIT

    def _request(self, packet: UetPacket) -> bytes:
        has_credits = self.config.transport.credits.enabled
        return pack_request(
            psn=packet.sequence,
            context=self._context,
            is_repeated=packet.sequence in self.seen,
            credit_target_bytes=packet.credit_bytes if has_credits else None,
        )

    def _frame(
        self, header: bytes, end: int, packet: UetPacket, dscp: int, *, ecn: int = ECN_CAPABLE, payload: bytes = b""
    ) -> bytes:
        has_entropy = self.config.path_choice.mode == "entropy"
        entropy = packet.entropy if has_entropy else self.source_port
        return pack_frame(header, entropy=entropy, payload=payload, dscp=dscp, ecn=ecn, **self.addresses[end])


def _ecn(packet: UetPacket) -> int:
    return CONGESTION_EXPERIENCED if packet.is_marked else ECN_CAPABLE
