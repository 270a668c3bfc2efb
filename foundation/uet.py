"""Ultra Ethernet Transport on the wire: headers of the packet delivery sublayer (PDS) over UDP.

A packet is Ethernet, IPv4, UDP to port 4793, whose source port is the entropy value, the PDS header, and what the next
header says. The first two bytes of a PDS header are alike: type (5 bits), next header or type of a control packet (4),
flags (7). Sequence numbers (PSN) count packets; an acknowledgement gives the last one below which all have arrived
(CACK_PSN), and others as offsets from it.

Source: Ultra Ethernet Specification 1.0, section 3.5.11, by the structures of two public implementations that agree on
these fields: the XDP2 project's `uet-pds.h` and the Linux patches of March 2025.
Left out: TSS (encryption), ROD, RUDI and UUD, the semantic sublayer's headers, the optional CRC.
"""

import struct
from enum import IntEnum
from typing import Any

from fabrictune.foundation.rocev2 import pack_datagram

UET_UDP_PORT = 4793
CREDIT_UNIT_BYTES = 256
PSN_LIMIT = 2**32
CONTEXT_LIMIT = 2**16  # packet delivery contexts
CREDIT_LIMIT = 2**24


class PdsType(IntEnum):
    """Types of PDS packets."""

    RUD_REQUEST = 2
    ACK = 7
    ACK_CC = 8
    NACK = 10
    CONTROL = 11
    RUD_CC_REQUEST = 13


class ControlType(IntEnum):
    """Types of control packets."""

    CREDIT = 7
    CREDIT_REQUEST = 8


class NackCode(IntEnum):
    """Reasons of negative acknowledgements."""

    TRIMMED = 1
    TRIMMED_LAST_HOP = 2


RETRANSMITTED, MARKED = 0b0010000, 0b0100000  # flags: `retx` of every type, `m` of acknowledgements


def pack_request(*, psn: int, context: int, is_repeated: bool, credit_target_bytes: int | None = None) -> bytes:
    """Return the header of a data packet under unordered delivery (RUD), with a credit target if there is one."""
    kind = PdsType.RUD_REQUEST if credit_target_bytes is None else PdsType.RUD_CC_REQUEST
    header = _pack(kind, 0, RETRANSMITTED * is_repeated, 0, psn, context)
    if credit_target_bytes is None:
        return header
    return header + struct.pack(
        ">I", _credit_count(credit_target_bytes)
    )  # context 0 of congestion control, and 24 bits


def pack_ack(*, psn: int, cumulative_psn: int, context: int, is_marked: bool) -> bytes:
    """Return the header of an acknowledgement of one packet and of all up to `cumulative_psn`."""
    return _pack(PdsType.ACK, 0, MARKED * is_marked, psn - cumulative_psn, cumulative_psn, context)


def pack_ack_cc(*, psn: int, cumulative_psn: int, context: int, is_marked: bool, bitmap_psn: int, bitmap: int) -> bytes:
    """Return the header of an acknowledgement with a bitmap of 64 packets from `bitmap_psn` on, lowest bit first."""
    header = _pack(PdsType.ACK_CC, 0, MARKED * is_marked, psn - cumulative_psn, cumulative_psn, context)
    return header + struct.pack(">BBhQQ", 0, 0, _offset(bitmap_psn - cumulative_psn), bitmap, 0)


def pack_nack(*, psn: int, code: NackCode, context: int, is_marked: bool) -> bytes:
    """Return the header of a negative acknowledgement of one packet."""
    prologue = _prologue(PdsType.NACK, 0, MARKED * is_marked)
    return struct.pack(">HBBIHHI", prologue, code, 0, psn % PSN_LIMIT, context, context, 0)


def pack_credit(kind: ControlType, *, credit_bytes: int, context: int) -> bytes:
    """Return the header of a control packet that grants credit or asks for it, up to a running count."""
    return _pack(PdsType.CONTROL, kind, 0, 0, 0, context) + struct.pack(">I", _credit_count(credit_bytes) << 8)


def pack_frame(header: bytes, *, entropy: int, payload: bytes = b"", **addresses: Any) -> bytes:
    """Return a whole Ethernet frame without its FCS; `addresses` as `pack_datagram` takes them."""
    transport = header + payload
    return pack_datagram(transport, source_port=entropy, destination_port=UET_UDP_PORT, **addresses)


def _pack(kind: PdsType, next_header: int, flags: int, offset: int, psn: int, context: int) -> bytes:
    prologue = _prologue(kind, next_header, flags)
    return struct.pack(">HhIHH", prologue, _offset(offset), psn % PSN_LIMIT, context, context)


def _prologue(kind: PdsType, next_header: int, flags: int) -> int:
    return kind << 11 | next_header << 7 | flags


def _offset(difference: int) -> int:
    """Return an offset as its 16 bits hold it."""
    return (difference + 2**15) % 2**16 - 2**15


def _credit_count(num_bytes: int) -> int:
    return -(-num_bytes // CREDIT_UNIT_BYTES) % CREDIT_LIMIT
