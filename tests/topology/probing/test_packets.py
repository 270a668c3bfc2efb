"""Probes and replies as bytes, against a second implementation and against garbage."""

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.rocev2 import UDP_PORT, invariant_crc
from fabrictune.topology.probing.packets import PROBE_BYTES, Probe, Reply, ReplyKind, pack_probe, parse_reply
from fabrictune.topology.probing.plan import MAX_DISTANCE, ProbeFlow
from tests.topology.simulated_wire import FILTERED, SOURCE, TARGET, TIME_EXCEEDED, UNREACHABLE, icmp

HOP = int(IPv4Address("10.9.1.3"))
PROBE = Probe(ProbeFlow(SOURCE, TARGET, 50_123), 3, 2)


def expired(datagram: bytes, time_to_live: int = 1) -> bytes:
    """Return a datagram as the hop quotes it that has it last."""
    return datagram[:8] + bytes([time_to_live]) + datagram[9:]


@given(st.integers(1024, 65535), st.integers(1, MAX_DISTANCE), st.integers(0, 5), st.integers(0, 63))
def test_scapy_reads_a_probe_as_a_harmless_datagram(port: int, distance: int, attempt: int, dscp: int) -> None:
    """Fields by name, both checks valid; the opcode is that of an unreliable datagram, which nobody acknowledges."""
    layers = pytest.importorskip("scapy.layers.inet", reason="scapy is not installed (extra: probe)")
    roce = pytest.importorskip("scapy.contrib.roce")
    datagram = pack_probe(Probe(ProbeFlow(SOURCE, TARGET, port), distance, attempt), dscp=dscp, destination_qpn=77)
    packet = layers.IP(datagram)
    assert (packet.src, packet.dst, packet.ttl, packet.tos) == ("10.0.0.1", "10.0.0.2", distance, dscp << 2)
    assert (packet[layers.UDP].sport, packet[layers.UDP].dport, packet[layers.UDP].chksum) == (port, UDP_PORT, 0)
    assert (packet.len, packet[layers.UDP].len, len(datagram)) == (PROBE_BYTES, PROBE_BYTES - 20, PROBE_BYTES)
    bth = packet[roce.BTH]
    assert (bth.opcode, bth.dqpn, bth.ackreq) == (roce.opcode("UD", "SEND_ONLY")[0], 77, 0)
    del packet.chksum
    assert bytes(packet)[:20] == datagram[:20]
    assert invariant_crc(datagram[:-4]) == int.from_bytes(datagram[-4:], "little")


def test_all_probes_of_a_flow_share_what_switches_hash() -> None:
    """Protocol (byte 9), addresses, ports (12 to 24) and queue pair (33 to 36) are the same at every distance."""
    probes = [pack_probe(Probe(PROBE.flow, distance, attempt)) for distance in (1, 2, 9) for attempt in (0, 3)]
    assert len({(probe[9], probe[12:24], probe[33:36]) for probe in probes}) == 1
    assert len({probe[4:6] for probe in probes}) == len(probes)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (TIME_EXCEEDED, ReplyKind.EXPIRED),
        (UNREACHABLE, ReplyKind.ARRIVED),
        (FILTERED, ReplyKind.REFUSED),
        ((3, 1), ReplyKind.REFUSED),
    ],
)
def test_a_reply_says_which_probe_it_answers(message: tuple[int, int], kind: ReplyKind) -> None:
    """The quoted 28 bytes are enough."""
    quoted = expired(pack_probe(PROBE))
    assert parse_reply(icmp(HOP, message, quoted)) == Reply(probe=PROBE, distance=3, responder_ipv4=HOP, kind=kind)


@pytest.mark.parametrize(("time_to_live", "distance"), [(1, 9), (2, 8), (6, 4), (9, 1), (0, 9), (10, 9), (64, 9)])
def test_a_target_tells_how_far_it_is(time_to_live: int, distance: int) -> None:
    """Sent with 9, arrived with 6: three hops took one each, so it is the fourth; what cannot be is ignored."""
    probe = Probe(PROBE.flow, 9, 0)
    reply = parse_reply(icmp(TARGET, UNREACHABLE, expired(pack_probe(probe), time_to_live)))
    assert reply == Reply(probe=probe, distance=distance, responder_ipv4=TARGET, kind=ReplyKind.ARRIVED)


def test_a_reply_that_scapy_made_is_read() -> None:
    """With IPv4 options before the ICMP message, which move everything by four bytes."""
    layers = pytest.importorskip("scapy.layers.inet", reason="scapy is not installed (extra: probe)")
    head = layers.IP(src="10.9.1.3", dst="10.0.0.1", options=[layers.IPOption_NOP()] * 4)
    reply = bytes(head / layers.ICMP(type=11, code=0) / expired(pack_probe(PROBE)))
    assert parse_reply(reply) == Reply(probe=PROBE, distance=3, responder_ipv4=HOP, kind=ReplyKind.EXPIRED)


@pytest.mark.parametrize(
    "datagram",
    [
        pytest.param(icmp(HOP, (0, 0), pack_probe(PROBE)), id="echo reply"),
        pytest.param(icmp(HOP, (11, 1), pack_probe(PROBE)), id="reassembly timed out"),
        pytest.param(icmp(HOP, TIME_EXCEEDED, pack_probe(PROBE)[:27]), id="quote cut short"),
        pytest.param(icmp(HOP, TIME_EXCEEDED, pack_probe(PROBE)[:9] + b"\x06" + pack_probe(PROBE)[10:]), id="TCP"),
        pytest.param(icmp(HOP, TIME_EXCEEDED, pack_probe(PROBE)[:22] + b"\x00\x35" + bytes(8)), id="DNS"),
        pytest.param(
            icmp(HOP, TIME_EXCEEDED, pack_probe(PROBE)[:4] + b"\x00\x00" + pack_probe(PROBE)[6:]), id="not us"
        ),
        pytest.param(pack_probe(PROBE), id="no ICMP"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_other_messages_are_none_of_ours(datagram: bytes) -> None:
    """A raw socket hears every ICMP message of the machine."""
    assert parse_reply(datagram) is None


@given(st.binary(max_size=80), st.integers(0, 60), st.integers(0, 255))
def test_no_bytes_can_stop_the_reader(garbage: bytes, place: int, byte: int) -> None:
    """Random bytes, and a true reply with one byte changed: a reply or nothing, never an error."""
    changed = bytearray(icmp(HOP, TIME_EXCEEDED, pack_probe(PROBE)))
    changed[place % len(changed)] = byte
    for datagram in (garbage, bytes(changed), bytes(changed)[:place]):
        reply = parse_reply(datagram)
        assert reply is None or 1 <= reply.probe.distance <= MAX_DISTANCE
