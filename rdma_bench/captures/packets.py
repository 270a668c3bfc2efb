"""Packets: the RoCEv2 headers of a chunk of frames, decoded all at once.

Ethernet with any number of VLAN tags up to MAX_TAGS, Linux cooked captures of both versions, and bare IP. A packet
needs only its headers in the capture (58 bytes after Ethernet without tags), so short snap lengths lose nothing that is
read here: sizes come from the UDP header.

Source: IEEE 802.3, 802.1Q; LINKTYPE_ registry of libpcap; RFC 791, RFC 768, RFC 3168; IBTA annex A17.
Left out, and counted: RoCEv1, RoCEv2 over IPv6, VXLAN and fragments of datagrams to RoCEv2's port. Other tunnels
(ERSPAN) are left out uncounted.

Shapes: K frames of a chunk, later K packets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.foundation.rocev2 import BTH_BYTES, CONGESTION_EXPERIENCED, ICRC_BYTES, IPV4_BYTES, UDP_BYTES, UDP_PORT
from fabrictune.rdma_bench.captures.frames import Bytes, Frames, gather
from fabrictune.rdma_bench.captures.opcodes import EXTENDED_BYTES

MAX_TAGS = 4
VLAN_TYPES = (0x8100, 0x88A8, 0x9100)
VLAN_BYTES = 4
IPV4_TYPE, IPV6_TYPE, ROCE_V1_TYPE = 0x0800, 0x86DD, 0x8915
IPV6_BYTES, IPV6_NEXT_AT = 40, 6
VXLAN_PORT = 4789
UDP_PROTOCOL = 17

NO_TYPE_FIELD = -1

BYTE = np.dtype([("value", "u1")])
BIG_ENDIAN_16 = np.dtype([("value", ">u2")])
IPV4 = np.dtype(
    [
        ("version_and_length", "u1"),
        ("type_of_service", "u1"),
        ("total_bytes", ">u2"),
        ("identification", ">u2"),
        ("fragment", ">u2"),
        ("time_to_live", "u1"),
        ("protocol", "u1"),
        ("checksum", ">u2"),
        ("source", ">u4"),
        ("destination", ">u4"),
    ]
)
UDP_AND_BTH = np.dtype(
    [
        ("source_port", ">u2"),
        ("destination_port", ">u2"),
        ("udp_bytes", ">u2"),
        ("udp_checksum", ">u2"),
        ("opcode", "u1"),
        ("flags", "u1"),
        ("partition_key", ">u2"),
        ("destination_qpn", ">u4"),
        ("psn", ">u4"),
    ]
)


@dataclass(frozen=True)
class LinkLayer:
    """Position of the type field of a link layer, and length of its header."""

    type_at: int
    header_bytes: int


LINK_LAYERS: Mapping[int, LinkLayer] = {
    1: LinkLayer(12, 14),  # Ethernet
    113: LinkLayer(14, 16),  # Linux cooked
    276: LinkLayer(0, 20),  # Linux cooked, version 2
    **{number: LinkLayer(NO_TYPE_FIELD, 0) for number in (12, 14, 101, 228)},  # bare IP
}


@dataclass(frozen=True, kw_only=True)
class RocePackets:
    """K RoCEv2 packets, in the order of the file."""

    time_ns_K: IntArray
    source_ipv4_K: IntArray
    destination_ipv4_K: IntArray
    source_port_K: IntArray
    opcode_K: IntArray
    destination_qpn_K: IntArray
    psn_K: IntArray
    payload_bytes_K: IntArray
    is_marked_K: BoolArray  # ECN: congestion experienced

    def __len__(self) -> int:
        return len(self.time_ns_K)


@dataclass
class FrameCounts:
    """Counts of the frames of a capture by their fate."""

    frames: int = 0
    roce: int = 0
    too_short: int = 0  # IPv4 and UDP to port 4791, but cut before the end of the base header
    unknown_link: int = 0  # of a link type that is not read
    roce_v1: int = 0  # RDMA that has no IP header
    roce_over_ipv6: int = 0
    fragments: int = 0  # first fragments of datagrams to RoCEv2's port
    vxlan: int = 0  # tunnels that may carry RoCEv2

    def add(self, more: "FrameCounts") -> None:
        """Add the counts of another chunk."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(more, field.name))


def decode(data: Bytes, frames: Frames) -> tuple[RocePackets, FrameCounts]:
    """Return the RoCEv2 packets among the frames, and what became of the others."""
    counts = FrameCounts(frames=len(frames.position_K))
    begin_K, type_K, is_known_K = _find_network_headers(data, frames)
    counts.unknown_link = int((~is_known_K).sum())
    end_K = frames.position_K + frames.captured_bytes_K
    counts.roce_v1 = int((is_known_K & (type_K == ROCE_V1_TYPE)).sum())
    counts.roce_over_ipv6 = _count_ipv6(data, begin_K[is_known_K & (type_K == IPV6_TYPE)])
    is_ipv4_K = is_known_K & (type_K == IPV4_TYPE)
    row = np.nonzero(is_ipv4_K & (begin_K + IPV4_BYTES <= end_K))[0]
    ipv4 = gather(data, begin_K[row], IPV4)
    header_bytes = (ipv4["version_and_length"] & 0xF).astype(np.int64) * 4
    is_udp = (ipv4["version_and_length"] >> 4 == 4) & (header_bytes >= IPV4_BYTES) & (ipv4["protocol"] == UDP_PROTOCOL)
    transport = begin_K[row] + header_bytes
    udp = gather(data, transport, UDP_AND_BTH)
    is_udp &= (ipv4["fragment"] & 0x1FFF == 0) & (transport + UDP_BYTES <= end_K[row])  # with an offset: no UDP header
    counts.vxlan = int((is_udp & (udp["destination_port"] == VXLAN_PORT)).sum())
    is_roce = is_udp & (udp["destination_port"] == UDP_PORT)
    is_fragment = ipv4["fragment"] & 0x2000 != 0
    counts.fragments = int((is_roce & is_fragment).sum())
    is_roce &= ~is_fragment
    is_whole = transport + UDP_BYTES + BTH_BYTES <= end_K[row]
    counts.too_short = int((is_roce & ~is_whole).sum())
    roce_rows = np.nonzero(is_roce & is_whole)[0]
    counts.roce = len(roce_rows)
    return _packets(ipv4[roce_rows], udp[roce_rows], frames.time_ns_K[row[roce_rows]]), counts


def _count_ipv6(data: Bytes, begin_K: IntArray) -> int:
    """Return how many IPv6 packets carry RoCEv2, without extension headers."""
    next_header = gather(data, begin_K + IPV6_NEXT_AT, BYTE)["value"]
    port = gather(data, begin_K + IPV6_BYTES + 2, BIG_ENDIAN_16)["value"]
    return int(((next_header == UDP_PROTOCOL) & (port == UDP_PORT)).sum())


def _find_network_headers(data: Bytes, frames: Frames) -> tuple[IntArray, IntArray, BoolArray]:
    """Return where the header behind each frame's link layer begins, its type, and whether the link type is known."""
    begin_K = frames.position_K.copy()
    type_at_K = np.full(len(begin_K), NO_TYPE_FIELD)
    is_known_K = np.zeros(len(begin_K), bool)
    for number in np.unique(frames.link_type_K).tolist():
        if number in LINK_LAYERS:
            is_this_K = frames.link_type_K == number
            layer = LINK_LAYERS[number]
            is_known_K |= is_this_K
            begin_K[is_this_K] += layer.header_bytes
            if layer.type_at != NO_TYPE_FIELD:
                type_at_K[is_this_K] = frames.position_K[is_this_K] + layer.type_at
    has_type_K = type_at_K != NO_TYPE_FIELD
    type_K = np.full(len(begin_K), IPV4_TYPE)
    type_K[has_type_K] = gather(data, type_at_K[has_type_K], BIG_ENDIAN_16)["value"]
    for _ in range(MAX_TAGS):
        tagged = np.nonzero(np.isin(type_K, VLAN_TYPES))[0]
        if not len(tagged):
            break
        type_K[tagged] = gather(data, begin_K[tagged] + 2, BIG_ENDIAN_16)["value"]
        begin_K[tagged] += VLAN_BYTES
    return begin_K, type_K, is_known_K


def _packets(ipv4: NDArray[np.void], udp: NDArray[np.void], time_ns_K: IntArray) -> RocePackets:
    opcode_K = udp["opcode"].astype(np.int64)
    pad_K = udp["flags"].astype(np.int64) >> 4 & 3
    overhead_K = UDP_BYTES + BTH_BYTES + EXTENDED_BYTES[opcode_K] + pad_K + ICRC_BYTES
    return RocePackets(
        time_ns_K=time_ns_K,
        source_ipv4_K=ipv4["source"].astype(np.int64),
        destination_ipv4_K=ipv4["destination"].astype(np.int64),
        source_port_K=udp["source_port"].astype(np.int64),
        opcode_K=opcode_K,
        destination_qpn_K=udp["destination_qpn"].astype(np.int64) & 0xFFFFFF,
        psn_K=udp["psn"].astype(np.int64) & 0xFFFFFF,
        payload_bytes_K=np.maximum(udp["udp_bytes"].astype(np.int64) - overhead_K, 0),
        is_marked_K=ipv4["type_of_service"] & 0b11 == CONGESTION_EXPERIENCED,
    )
