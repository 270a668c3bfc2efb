"""Headers decoded in bulk: every link layer, tags, options, short captures; and scapy reads the same."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.rocev2 import Opcode
from fabrictune.rdma_bench.captures.opcodes import EXTENDED_BYTES, IS_REQUEST, opcode_name
from fabrictune.rdma_bench.captures.reader import Capture, read_capture
from tests.rdma_bench.captures.crafting import Frame, acknowledgement, pcap, roce

ETHERNET_BYTES = 14


def read(tmp_path: Path, *frames: bytes, link_type: int = 1) -> Capture:
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap([Frame(data=frame) for frame in frames], link_type=link_type))
    return read_capture(path)


def tagged(frame: bytes, *types: int) -> bytes:
    """Return the frame with a VLAN tag of each type, outermost first."""
    tags = b"".join(struct.pack(">HH", vlan_type, 100) for vlan_type in types)
    return frame[:12] + tags + frame[12:]


@pytest.mark.parametrize("types", [(), (0x8100,), (0x88A8, 0x8100), (0x9100, 0x8100, 0x8100, 0x8100)])
def test_vlan_tags_are_stepped_over(tmp_path: Path, types: tuple[int, ...]) -> None:
    """None, one, two (802.1ad), four."""
    capture = read(tmp_path, tagged(roce(7), *types), roce(8))
    assert capture.flows.row_F["packets"].tolist() == [2]
    assert capture.flows.row_F["psn_gaps"].tolist() == [0]


@pytest.mark.parametrize(
    ("link_type", "head"),
    [
        (101, b""),
        (228, b""),
        (113, bytes(14) + b"\x08\x00"),
        (113, bytes(14) + b"\x81\x00\x00\x64\x08\x00"),
        (276, b"\x08\x00" + bytes(18)),
    ],
)
def test_cooked_and_bare_captures_are_read(tmp_path: Path, link_type: int, head: bytes) -> None:
    """Linux cooked of both versions, with a tag too, and bare IP."""
    capture = read(tmp_path, head + roce(7)[ETHERNET_BYTES:], link_type=link_type)
    assert capture.counts.roce == 1
    assert capture.flows.row_F["payload_bytes"].tolist() == [1024]


def test_an_unknown_link_type_is_noted(tmp_path: Path) -> None:
    """802.11 frames are not read, and not taken for something else."""
    capture = read(tmp_path, roce(), link_type=105)
    assert capture.counts.roce == 0
    assert capture.notes == (f"{capture.path}: frames of a link type that is not read: 1 of 1",)


def test_what_is_rdma_and_not_read_is_counted(tmp_path: Path) -> None:
    """RoCEv1, RoCEv2 over IPv6, a first fragment, a VXLAN tunnel, beside one packet that is read and one of ARP."""
    ethernet, ip = roce()[:12], roce()[ETHERNET_BYTES:]
    ipv6 = struct.pack(">IHBB", 6 << 28, len(ip) - 20, 17, 64) + bytes(32) + ip[20:]
    fragment = bytearray(roce())
    fragment[ETHERNET_BYTES + 6] |= 0x20
    tunnel = bytearray(roce())
    tunnel[ETHERNET_BYTES + 22 : ETHERNET_BYTES + 24] = struct.pack(">H", 4789)
    frames = [
        roce(),
        tagged(ethernet + b"\x89\x15" + bytes(60), 0x8100),
        ethernet + b"\x86\xdd" + ipv6,
        bytes(fragment),
        bytes(tunnel),
        ethernet + b"\x08\x06" + bytes(46),
    ]
    capture = read(tmp_path, *frames)
    assert capture.counts.roce == 1
    assert capture.notes == (
        f"{capture.path}: frames of RoCEv1, which has no IP addresses and is not read: 1 of 6",
        f"{capture.path}: packets of RoCEv2 over IPv6, which are not read: 1 of 6",
        f"{capture.path}: fragments of datagrams to RoCEv2's port, which are not read: 1 of 6",
        f"{capture.path}: packets of VXLAN, which are not looked into: 1 of 6",
    )


def test_ipv4_options_move_the_headers_behind_them(tmp_path: Path) -> None:
    """Header length 6: four bytes of options between the addresses and UDP."""
    frame = bytearray(roce(7))
    frame[ETHERNET_BYTES] = 0x46
    capture = read(tmp_path, bytes(frame[:34]) + b"\x01\x01\x01\x00" + bytes(frame[34:]))
    assert capture.flows.row_F["destination_qpn"].tolist() == [0x48]


def other_port(frame: bytearray) -> None:
    frame[36:38] = struct.pack(">H", 4792)


def tcp(frame: bytearray) -> None:
    frame[ETHERNET_BYTES + 9] = 6


def fragment(frame: bytearray) -> None:
    frame[ETHERNET_BYTES + 6 : ETHERNET_BYTES + 8] = b"\x20\x00"


def ipv6(frame: bytearray) -> None:
    frame[12:14] = b"\x86\xdd"


@pytest.mark.parametrize("change", [other_port, tcp, fragment, ipv6])
def test_what_is_no_rocev2_over_ipv4_is_passed_over(tmp_path: Path, change: object) -> None:
    """Another port, another protocol, a fragment, IPv6: frames, but no packets."""
    frame = bytearray(roce())
    change(frame)  # type: ignore[operator]
    capture = read(tmp_path, bytes(frame), roce())
    assert (capture.counts.frames, capture.counts.roce) == (2, 1)


def test_a_snap_length_loses_nothing_above_the_headers(tmp_path: Path) -> None:
    """Ethernet 14, IPv4 20, UDP 8, BTH 12: 54 bytes tell all; one less is counted as too short."""
    path = tmp_path / "short.pcap"
    frames = [Frame(data=roce(psn)[:size], original_bytes=1082) for psn, size in ((0, 54), (1, 53), (2, 42), (3, 30))]
    path.write_bytes(pcap(frames))
    capture = read_capture(path)
    assert capture.flows.row_F["payload_bytes"].tolist() == [1024]
    assert (capture.counts.roce, capture.counts.too_short) == (1, 2)
    assert capture.notes == (
        f"{path}: RoCEv2 packets cut before the end of their headers: 2 of 3; capture 64 bytes of each or more",
    )


@pytest.mark.parametrize(
    ("opcode", "extended", "name"),
    [
        (Opcode.WRITE_ONLY, 16, "WRITE_ONLY"),
        (Opcode.SEND_LAST_WITH_IMMEDIATE, 4, "SEND_LAST_WITH_IMMEDIATE"),
        (0x0D, 4, "READ_RESPONSE_FIRST"),
        (0x14, 28, "FETCH_AND_ADD"),
        (0x64, 8, "UD_SEND_ONLY"),
        (0xAA, 20, "XRC_WRITE_ONLY"),
        (Opcode.CNP, 16, "CNP"),
        (0xFF, 0, "0xFF"),
    ],
)
def test_extended_headers_are_no_payload(tmp_path: Path, opcode: int, extended: int, name: str) -> None:
    """RETH 16, immediate 4, AETH 4, atomic 28, DETH 8, XRC 4; a CNP carries 16 reserved bytes."""
    capture = read(tmp_path, roce(opcode=opcode, extended=bytes(extended), payload=b"x" * 100))
    assert capture.flows.row_F["payload_bytes"].tolist() == [100]
    assert (int(EXTENDED_BYTES[opcode]), opcode_name(opcode)) == (extended, name)


def test_only_requests_of_reliable_connections_are_numbered_in_order() -> None:
    """Responses repeat the numbers of the requests; datagrams and CNPs have none to follow."""
    names = {opcode_name(opcode) for opcode in np.nonzero(IS_REQUEST)[0].tolist()}
    assert {"SEND_ONLY", "READ_REQUEST", "FETCH_AND_ADD", "XRC_WRITE_FIRST"} <= names
    assert not names & {"ACKNOWLEDGE", "READ_RESPONSE_ONLY", "ATOMIC_ACKNOWLEDGE", "UD_SEND_ONLY", "CNP"}


def test_marks_notifications_and_acknowledgements_are_counted(tmp_path: Path) -> None:
    """Three requests of which one is marked (ECN 11), and back: two acknowledgements and a CNP."""
    cnp = roce(opcode=Opcode.CNP, qpn=0x45, payload=b"", extended=bytes(16), source=0x0A000002, destination=0x0A000001)
    sent = (roce(0), roce(1, ecn=0b11), roce(2), acknowledgement(0), acknowledgement(2), cnp)
    row_F = read(tmp_path, *sent).flows.row_F
    assert row_F["ecn_marked"].tolist() == [1, 0]
    assert row_F["acknowledgements"].tolist() == [0, 2]
    assert row_F["cnps"].tolist() == [0, 1]


FIELDS = st.tuples(
    st.sampled_from([Opcode.SEND_ONLY, Opcode.WRITE_MIDDLE, Opcode.ACKNOWLEDGE, Opcode.CNP]),
    st.integers(0, 2**24 - 1),
    st.integers(0, 2**24 - 1),
    st.integers(1024, 65535),
    st.integers(0, 3),
    st.booleans(),
)


@given(st.lists(FIELDS, min_size=1, max_size=6))
def test_scapy_finds_the_same_fields(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, ...]]) -> None:
    """A file that scapy writes from its own layers, read by ours."""
    layers = pytest.importorskip("scapy.layers.all", reason="scapy is not installed (extra: probe)")
    roce_layers, files = pytest.importorskip("scapy.contrib.roce"), pytest.importorskip("scapy.utils")
    packets = []
    for opcode, qpn, psn, port, ecn, has_tag in rows:
        ether = layers.Ether() / layers.Dot1Q(vlan=5) if has_tag else layers.Ether()
        ip = layers.IP(src="10.0.0.1", dst="10.0.0.2", tos=ecn)
        packets.append(
            ether / ip / layers.UDP(sport=port, dport=4791) / roce_layers.BTH(opcode=opcode, dqpn=qpn, psn=psn)
        )
    path = tmp_path_factory.mktemp("scapy") / "scapy.pcap"
    files.wrpcap(str(path), packets)
    flows = read_capture(path).flows
    expected = {(port, qpn) for _, qpn, _, port, _, _ in rows}
    found = set(zip(flows.row_F["source_port"].tolist(), flows.row_F["destination_qpn"].tolist(), strict=True))
    assert found == expected
    assert int(flows.row_F["ecn_marked"].sum()) == sum(ecn == 3 for *_, ecn, _ in rows)
    assert flows.packets_by_opcode() == {
        int(opcode): sum(row[0] == opcode for row in rows) for opcode in sorted({row[0] for row in rows})
    }
