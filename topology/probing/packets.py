"""Probes and the replies to them, as bytes.

A probe is a whole RoCEv2 packet, so that a switch which hashes the queue-pair number behind the UDP header finds one.
It asks for nothing: an unreliable datagram to a queue pair that is not expected to exist, with a key of zero, which a
responder drops silently. Its distance and attempt are in the IPv4 identification, which no ECMP hash reads and
every reply quotes; so a reply says by itself which probe it answers, however late or often it comes. A target that
answers quotes the time to live that was left, from which its true distance follows, even if it was silent at first.

Source: RFC 792 (time exceeded, destination unreachable; a reply quotes the IPv4 header and eight bytes more); RFC 1812,
4.3.2.3; InfiniBand Architecture Specification vol. 1, 9.2.1 (opcodes) and 9.6 (what a responder drops).
Left out: what a reply quotes beyond eight bytes, MPLS extensions, and the checksum of the ICMP message, which the
addresses, ports and identification that must match stand in for.
"""

import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fabrictune.foundation.rocev2 import (
    BTH_BYTES,
    ETHERNET_BYTES,
    ICRC_BYTES,
    IPV4_BYTES,
    UDP_BYTES,
    UDP_PORT,
    BaseTransportHeader,
    pack_packet,
)
from fabrictune.topology.probing.plan import MAX_DISTANCE, UNUSED_QPN, ProbeFlow

UD_SEND_ONLY = 0x64
DATAGRAM_HEADER = bytes(8)  # queue key and source queue pair, both 0
PROBE_BYTES = IPV4_BYTES + UDP_BYTES + BTH_BYTES + len(DATAGRAM_HEADER) + ICRC_BYTES

_IPV4_START = struct.Struct(">BxxxHxxBBxxII")  # version and length, identification, TTL, protocol, addresses
_ICMP_BYTES = 8
_PROTOCOL_ICMP, _PROTOCOL_UDP = 1, 17
_UNREACHABLE, _TIME_EXCEEDED = 3, 11
_EXPIRED_IN_TRANSIT, _PORT_UNREACHABLE = 0, 3


class Probe(NamedTuple):
    """One packet of a flow that is to expire `distance` hops away."""

    flow: ProbeFlow
    distance: int
    attempt: int


class ReplyKind(StrEnum):
    """Outcome of a probe."""

    EXPIRED = "expired"  # on its way, at the hop that says so
    ARRIVED = "arrived"  # at the target, where no process has the port
    REFUSED = "refused"  # by a hop or the target: filtered, or no way on


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An ICMP message about one of our probes."""

    probe: Probe
    distance: int  # of the responder; a target may be nearer than the probe could have gone
    responder_ipv4: int
    kind: ReplyKind


def pack_probe(probe: Probe, *, dscp: int = 0, destination_qpn: int = UNUSED_QPN) -> bytes:
    """Return the probe as an IPv4 datagram."""
    header = BaseTransportHeader(opcode=UD_SEND_ONLY, destination_qpn=destination_qpn, psn=probe.distance)
    frame = pack_packet(
        header,
        source_ipv4=probe.flow.source_ipv4,
        destination_ipv4=probe.flow.target_ipv4,
        source_port=probe.flow.source_port,
        dscp=dscp,
        ecn=0,
        time_to_live=probe.distance,
        identification=probe.attempt << 8 | probe.distance,
        extended_header=DATAGRAM_HEADER,
    )
    return frame[ETHERNET_BYTES:]


def parse_reply(datagram: bytes) -> Reply | None:
    """Return what an IPv4 datagram says of a probe, or None if it is anything else, or cut short."""
    header = _read_ipv4(datagram, _PROTOCOL_ICMP)
    if header is None or len(header.payload) < _ICMP_BYTES:
        return None
    message_type, code = header.payload[:2]
    kind = _kind(message_type, code)
    quoted = _read_ipv4(header.payload[_ICMP_BYTES:], _PROTOCOL_UDP)
    probe = _probe_of(quoted) if quoted else None
    if kind is None or quoted is None or probe is None:
        return None
    distance = probe.distance
    if kind is ReplyKind.ARRIVED and 1 <= quoted.time_to_live <= probe.distance:
        distance -= quoted.time_to_live - 1
    return Reply(probe=probe, distance=distance, responder_ipv4=header.source_ipv4, kind=kind)


class _Ipv4(NamedTuple):
    source_ipv4: int
    destination_ipv4: int
    identification: int
    time_to_live: int
    payload: bytes


def _read_ipv4(datagram: bytes, protocol: int) -> _Ipv4 | None:
    if len(datagram) < IPV4_BYTES:
        return None
    version, identification, time_to_live, found_protocol, source, destination = _IPV4_START.unpack_from(datagram)
    header_bytes = (version & 0xF) * 4
    if version >> 4 != 4 or header_bytes < IPV4_BYTES or found_protocol != protocol:
        return None
    return _Ipv4(source, destination, identification, time_to_live, datagram[header_bytes:])


def _kind(message_type: int, code: int) -> ReplyKind | None:
    if message_type == _TIME_EXCEEDED and code == _EXPIRED_IN_TRANSIT:
        return ReplyKind.EXPIRED
    if message_type != _UNREACHABLE:
        return None
    return ReplyKind.ARRIVED if code == _PORT_UNREACHABLE else ReplyKind.REFUSED


def _probe_of(quoted: _Ipv4) -> Probe | None:
    if len(quoted.payload) < UDP_BYTES:
        return None
    source_port, destination_port = struct.unpack_from(">HH", quoted.payload)
    attempt, distance = divmod(quoted.identification, 1 << 8)
    if destination_port != UDP_PORT or not 1 <= distance <= MAX_DISTANCE:
        return None
    return Probe(ProbeFlow(quoted.source_ipv4, quoted.destination_ipv4, source_port), distance, attempt)
