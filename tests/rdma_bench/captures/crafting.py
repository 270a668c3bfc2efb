"""Capture files made by hand, byte by byte, in every form that the reader takes."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from fabrictune.foundation.rocev2 import BaseTransportHeader, Opcode, pack_packet

SENDER, RECEIVER = 0x0A000001, 0x0A000002


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A frame and when it was captured; `original_bytes` where the capture cut it."""

    data: bytes
    time_ns: int = 0
    original_bytes: int = 0


def roce(
    psn: int = 0,
    *,
    opcode: int = Opcode.SEND_MIDDLE,
    qpn: int = 0x48,
    port: int = 0xD368,
    payload: bytes = b"x" * 1024,
    source: int = SENDER,
    destination: int = RECEIVER,
    extended: bytes = b"",
    ecn: int = 0b10,
) -> bytes:
    """Return an Ethernet frame with a RoCEv2 packet."""
    return pack_packet(
        BaseTransportHeader(opcode=opcode, destination_qpn=qpn, psn=psn),
        source_ipv4=source,
        destination_ipv4=destination,
        source_port=port,
        ecn=ecn,
        extended_header=extended,
        payload=payload,
    )


def acknowledgement(psn: int = 0) -> bytes:
    """Return the acknowledgement of what `roce` sends."""
    return roce(
        psn,
        opcode=Opcode.ACKNOWLEDGE,
        qpn=0x45,
        payload=b"",
        source=RECEIVER,
        destination=SENDER,
        extended=b"\x00\x00\x00\x01",
    )


def pcap(frames: Sequence[Frame], *, order: str = "<", is_ns: bool = False, link_type: int = 1) -> bytes:
    """Return a pcap file."""
    magic, ns_per_tick = (0xA1B23C4D, 1) if is_ns else (0xA1B2C3D4, 1000)
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 2**18, link_type)
    return head + b"".join(
        struct.pack(
            f"{order}IIII",
            frame.time_ns // 10**9,
            frame.time_ns % 10**9 // ns_per_tick,
            len(frame.data),
            frame.original_bytes or len(frame.data),
        )
        + frame.data
        for frame in frames
    )


def block(kind: int, body: bytes, *, order: str = "<") -> bytes:
    """Return a pcapng block."""
    length = 12 + len(body) + -len(body) % 4
    return struct.pack(f"{order}II", kind, length) + body + bytes(-len(body) % 4) + struct.pack(f"{order}I", length)


def section(*, order: str = "<") -> bytes:
    """Return the block that begins a pcapng section."""
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order=order)


def interface(*, order: str = "<", link_type: int = 1, options: bytes = b"") -> bytes:
    """Return the block that describes an interface."""
    return block(1, struct.pack(f"{order}HHI", link_type, 0, 0) + options, order=order)


def option(code: int, value: bytes, *, order: str = "<") -> bytes:
    """Return an option of a block."""
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


def packet(data: bytes, *, order: str = "<", ticks: int = 0, number: int = 0) -> bytes:
    """Return an enhanced packet block of interface `number`."""
    head = struct.pack(f"{order}IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(6, head + data, order=order)
