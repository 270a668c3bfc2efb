"""RoCEv2 on the wire: header layout, invariant CRC, and the UDP source port a queue pair gets.

A RoCEv2 packet is Ethernet, IPv4, UDP to port 4791, the InfiniBand base transport header (BTH), an extended header that
depends on the opcode, the payload, and the invariant CRC (ICRC). The UDP source port is the only field in which the
flows of two hosts differ, so it decides which of the equal-cost paths each takes.

Source: InfiniBand Architecture Specification vol. 1, annexes A16 and A17 (RoCE, RoCEv2); IEEE 802.3; Linux
`rdma_calc_flow_label` and `rdma_flow_label_to_udp_sport`, which mlx5, irdma and rxe share.
Left out: IPv6 and IPv4 options, VLAN tags, and firmware that assigns source ports by its own rule.
"""

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

import numpy as np

from fabrictune.foundation.arrays import IntArray

UDP_PORT = 4791

ETHERNET_BYTES = 14
IPV4_BYTES = 20
UDP_BYTES = 8
BTH_BYTES = 12
RETH_BYTES = 16
AETH_BYTES = 4
IMMEDIATE_BYTES = 4
CNP_RESERVED_BYTES = 16
ICRC_BYTES = 4
FCS_BYTES = 4
PREAMBLE_AND_GAP_BYTES = 20  # preamble and start delimiter 8, interframe gap 12

# What a data packet costs beyond its payload, on a wire with preamble and gap: 82 B.
WIRE_OVERHEAD_BYTES = (
    PREAMBLE_AND_GAP_BYTES + ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + BTH_BYTES + ICRC_BYTES + FCS_BYTES
)
ACK_FRAME_BYTES = WIRE_OVERHEAD_BYTES - PREAMBLE_AND_GAP_BYTES + AETH_BYTES  # 66 with its FCS; 86 on the wire

NO_ECN, ECN_CAPABLE, CONGESTION_EXPERIENCED = 0b00, 0b10, 0b11  # RFC 3168; ECT(0) of the two capable codes

FIRST_DYNAMIC_PORT = 0xC000  # source ports lie in 49152..65535: 14 bits of entropy
_LABEL_MASK = 0xFFFFF


class Opcode(IntEnum):
    """Reliable-connection opcodes of the base transport header, and the congestion notification packet."""

    SEND_FIRST = 0x00
    SEND_MIDDLE = 0x01
    SEND_LAST = 0x02
    SEND_LAST_WITH_IMMEDIATE = 0x03
    SEND_ONLY = 0x04
    SEND_ONLY_WITH_IMMEDIATE = 0x05
    WRITE_FIRST = 0x06
    WRITE_MIDDLE = 0x07
    WRITE_LAST = 0x08
    WRITE_LAST_WITH_IMMEDIATE = 0x09
    WRITE_ONLY = 0x0A
    WRITE_ONLY_WITH_IMMEDIATE = 0x0B
    READ_REQUEST = 0x0C
    ACKNOWLEDGE = 0x11
    CNP = 0x81


class Syndrome(IntEnum):
    """The meaning of an acknowledgement extended header; credits are not counted."""

    ACK = 0x1F
    RNR_NAK = 0x20  # plus the timer code
    NAK_SEQUENCE_ERROR = 0x60


@dataclass(frozen=True, kw_only=True)
class BaseTransportHeader:
    """The 12 bytes every RoCE packet carries."""

    opcode: int
    destination_qpn: int  # 24 bits
    psn: int  # 24 bits
    ack_request: bool = False
    partition_key: int = 0xFFFF
    fecn: bool = False
    becn: bool = False
    pad_count: int = 0  # bytes that fill the payload up to a multiple of four
    solicited: bool = False
    migrated: bool = False

    def pack(self) -> bytes:
        """Return the header's 12 bytes."""
        return struct.pack(
            ">BBHII",
            self.opcode,
            self.solicited << 7 | self.migrated << 6 | self.pad_count << 4,
            self.partition_key,
            (self.fecn << 31) | (self.becn << 30) | self.destination_qpn,
            (self.ack_request << 31) | self.psn,
        )

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Read the header from the first 12 of `data`."""
        opcode, flags, partition_key, qpn, psn = struct.unpack_from(">BBHII", data)
        return cls(
            opcode=opcode,
            destination_qpn=qpn & 0xFFFFFF,
            psn=psn & 0xFFFFFF,
            ack_request=bool(psn >> 31),
            partition_key=partition_key,
            fecn=bool(qpn >> 31),
            becn=bool(qpn >> 30 & 1),
            pad_count=flags >> 4 & 3,
            solicited=bool(flags >> 7),
            migrated=bool(flags >> 6 & 1),
        )


def pack_reth(*, num_bytes: int, virtual_address: int = 0, remote_key: int = 0) -> bytes:
    """Return the RDMA extended header that a write's first packet carries: where to, and how much."""
    return struct.pack(">QII", virtual_address, remote_key, num_bytes)


def pack_aeth(syndrome: int, num_messages: int) -> bytes:
    """Return the acknowledgement extended header: what became of the packet, and how many messages are complete."""
    return (syndrome << 24 | num_messages % 2**24).to_bytes(AETH_BYTES)


def pack_packet(
    header: BaseTransportHeader,
    *,
    source_ipv4: int,
    destination_ipv4: int,
    source_port: int,
    dscp: int = 26,
    ecn: int = ECN_CAPABLE,
    time_to_live: int = 64,
    identification: int = 0,
    extended_header: bytes = b"",
    payload: bytes = b"",
    source_mac: bytes = b"\x02\x00\x00\x00\x00\x01",
    destination_mac: bytes = b"\x02\x00\x00\x00\x00\x02",
) -> bytes:
    """Return a whole Ethernet frame without its FCS: valid IPv4 checksum, UDP checksum zero, valid ICRC."""
    frame = pack_datagram(
        header.pack() + extended_header + payload + bytes(ICRC_BYTES),
        source_ipv4=source_ipv4,
        destination_ipv4=destination_ipv4,
        source_port=source_port,
        destination_port=UDP_PORT,
        dscp=dscp,
        ecn=ecn,
        time_to_live=time_to_live,
        identification=identification,
        source_mac=source_mac,
        destination_mac=destination_mac,
    )
    without_crc = frame[:-ICRC_BYTES]
    return without_crc + invariant_crc(without_crc[ETHERNET_BYTES:]).to_bytes(ICRC_BYTES, "little")


def pack_datagram(
    transport: bytes,
    *,
    source_ipv4: int,
    destination_ipv4: int,
    source_port: int,
    destination_port: int,
    dscp: int,
    ecn: int,
    time_to_live: int = 64,
    identification: int = 0,
    source_mac: bytes,
    destination_mac: bytes,
) -> bytes:
    """Return an Ethernet frame without its FCS that carries a UDP datagram: valid IPv4 checksum, UDP checksum zero."""
    udp_bytes = UDP_BYTES + len(transport)
    ipv4 = bytearray(
        struct.pack(
            ">BBHHHBBHII",
            0x45,
            dscp << 2 | ecn,
            IPV4_BYTES + udp_bytes,
            identification,
            0x4000,
            time_to_live,
            17,
            0,
            source_ipv4,
            destination_ipv4,
        )
    )
    struct.pack_into(">H", ipv4, 10, _internet_checksum(bytes(ipv4)))
    udp = struct.pack(">HHHH", source_port, destination_port, udp_bytes, 0)
    return destination_mac + source_mac + b"\x08\x00" + bytes(ipv4) + udp + transport


def invariant_crc(datagram: bytes) -> int:
    """Return the ICRC of an IPv4 datagram without its ICRC (annex A17.3.3); it goes on the wire little-endian.

    Fields that change on the way (type of service, time to live, both checksums, the BTH's congestion byte) count as
    ones, and eight bytes of ones replace the local route header that Ethernet does not have.
    """
    masked = bytearray(datagram)
    for offset in (1, 8, 10, 11, IPV4_BYTES + 6, IPV4_BYTES + 7, IPV4_BYTES + UDP_BYTES + 4):
        masked[offset] = 0xFF
    return zlib.crc32(b"\xff" * 8 + bytes(masked))


def flow_label(local_qpn: IntArray, remote_qpn: IntArray) -> IntArray:
    """Return the 20-bit flow label the kernel derives from two 24-bit queue-pair numbers; symmetric in the two."""
    mixed = np.asarray(local_qpn, dtype=np.uint64) * np.asarray(remote_qpn, dtype=np.uint64)
    mixed ^= mixed >> np.uint64(20)
    mixed ^= mixed >> np.uint64(40)
    return (mixed & np.uint64(_LABEL_MASK)).astype(np.int64)


def label_source_port(label: IntArray) -> IntArray:
    """Return the UDP source port of a 20-bit flow label: its low 14 bits xor its high 6, in the dynamic range."""
    label = np.asarray(label, dtype=np.int64)
    return ((label & 0x3FFF) ^ ((label & 0xFC000) >> 14)) | FIRST_DYNAMIC_PORT


def source_port(local_qpn: IntArray, remote_qpn: IntArray) -> IntArray:
    """Return the UDP source port of each queue pair that was given no flow label."""
    return label_source_port(flow_label(local_qpn, remote_qpn))


def _internet_checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
