"""Our RoCEv2 bytes against hand-worked numbers, two dissectors that are not ours, and a real capture."""

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.rocev2 import (
    ACK_FRAME_BYTES,
    ETHERNET_BYTES,
    ICRC_BYTES,
    IPV4_BYTES,
    UDP_BYTES,
    UDP_PORT,
    WIRE_OVERHEAD_BYTES,
    BaseTransportHeader,
    Opcode,
    flow_label,
    invariant_crc,
    label_source_port,
    pack_packet,
    source_port,
)

TRANSPORT = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES  # where the base transport header begins in a frame
QPNS = st.integers(0, 2**24 - 1)


def test_a_data_packet_costs_82_bytes_beyond_its_payload() -> None:
    """Preamble 8, gap 12, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4."""
    assert WIRE_OVERHEAD_BYTES == 8 + 12 + 14 + 20 + 8 + 12 + 4 + 4 == 82


def test_an_acknowledgement_is_a_frame_of_66_bytes() -> None:
    """The headers above without preamble and gap, and 4 B of AETH: 62 B in a capture, which has no FCS, and 66 with."""
    acknowledgement = BaseTransportHeader(opcode=Opcode.ACKNOWLEDGE, destination_qpn=1, psn=1)
    frame = pack_packet(
        acknowledgement, source_ipv4=1, destination_ipv4=2, source_port=49152, extended_header=b"\x00" * 4
    )
    assert len(frame) + 4 == ACK_FRAME_BYTES == 66


@pytest.mark.parametrize(
    ("local_qpn", "remote_qpn", "label", "port"),
    [
        (0x45, 0x48, 0x01368, 0xD368),
        (0x123456, 0xABCDEF, 0xAC3E3, 0xC3C8),
        (0x400, 0x400, 0x00001, 0xC001),
    ],
)
def test_a_source_port_follows_from_the_two_queue_pair_numbers(
    local_qpn: int, remote_qpn: int, label: int, port: int
) -> None:
    """Worked by hand, with v the product.

    0x45 x 0x48 = 0x1368: nothing to fold; low 14 bits 0x1368, high 6 bits 0; 0x1368 | 0xC000 = 0xD368.
    0x123456 x 0xABCDEF = 0xC379A59BA4A; xor 0xC379A5 (v >> 20) = 0xC379A9AC3EF; xor 0xC (v >> 40) = 0xC379A9AC3E3;
    label 0xAC3E3; low 14 bits 0x03E3, high 6 bits 0x2B; xor 0x03C8; 0xC3C8.
    0x400 x 0x400 = 0x100000; xor 0x1 (v >> 20) = 0x100001; label 0x00001; 0xC001.
    """
    assert flow_label(np.array([local_qpn]), np.array([remote_qpn])).tolist() == [label]
    assert source_port(np.array([local_qpn]), np.array([remote_qpn])).tolist() == [port]


@given(QPNS, QPNS)
def test_both_directions_have_one_source_port_in_the_dynamic_range(local_qpn: int, remote_qpn: int) -> None:
    """The product is symmetric; 14 bits over 0xC000 are 49152 to 65535."""
    there, back = (
        int(source_port(np.array([a]), np.array([b]))[0]) for a, b in ((local_qpn, remote_qpn), (remote_qpn, local_qpn))
    )
    assert there == back
    assert 49152 <= there <= 65535


def test_every_label_bit_moves_the_port() -> None:
    """Bits 0 to 13 land in place; bits 14 to 19 land on bits 0 to 5."""
    ports = label_source_port(np.array([1 << bit for bit in range(20)])) & 0x3FFF
    assert ports.tolist() == [1 << bit for bit in range(14)] + [1 << bit for bit in range(6)]


HEADERS = st.builds(
    BaseTransportHeader,
    opcode=st.sampled_from(Opcode),
    destination_qpn=QPNS,
    psn=st.integers(0, 2**24 - 1),
    ack_request=st.booleans(),
    partition_key=st.integers(0, 0xFFFF),
    fecn=st.booleans(),
    becn=st.booleans(),
    pad_count=st.integers(0, 3),
    solicited=st.booleans(),
    migrated=st.booleans(),
)


@given(HEADERS)
def test_a_header_survives_its_twelve_bytes(header: BaseTransportHeader) -> None:
    """Every field has bits of its own."""
    packed = header.pack()
    assert len(packed) == 12
    assert BaseTransportHeader.unpack(packed) == header


@given(HEADERS, st.integers(0, 2**32 - 1), st.integers(0, 63), st.integers(0, 3), st.binary(max_size=64))
def test_scapy_reads_the_same_fields_and_computes_the_same_crc(
    header: BaseTransportHeader, address: int, dscp: int, ecn: int, payload: bytes
) -> None:
    """scapy.contrib.roce was written by others from the same annexes; it also recomputes both checksums."""
    layers = pytest.importorskip("scapy.layers.all", reason="scapy is not installed (extra: probe)")
    roce = pytest.importorskip("scapy.contrib.roce")
    frame = pack_packet(
        header, source_ipv4=address, destination_ipv4=1, source_port=50000, dscp=dscp, ecn=ecn, payload=payload
    )
    packet = layers.Ether(frame)
    bth = packet[roce.BTH]
    assert (bth.opcode, bth.dqpn, bth.psn, bth.pkey) == (
        header.opcode,
        header.destination_qpn,
        header.psn,
        header.partition_key,
    )
    assert [bth.ackreq, bth.fecn, bth.becn, bth.padcount, bth.solicited, bth.migreq] == [
        header.ack_request,
        header.fecn,
        header.becn,
        header.pad_count,
        header.solicited,
        header.migrated,
    ]
    assert (packet[layers.IP].tos, packet[layers.UDP].dport) == (dscp << 2 | ecn, UDP_PORT)
    del packet[layers.IP].chksum
    del packet[roce.BTH].icrc
    assert bytes(packet) == frame


@pytest.mark.parametrize("offset", [1, 8, 26, 27, 32], ids=["tos", "ttl", "udp checksum", "", "congestion"])
def test_what_changes_on_the_way_leaves_the_crc_alone(offset: int) -> None:
    """A switch marks ECN, lowers the time to live and mends the checksum; the receiver's CRC must still agree."""
    datagram = bytes(range(64))
    changed = bytearray(datagram)
    changed[offset] ^= 0xFF
    assert invariant_crc(bytes(changed)) == invariant_crc(datagram)


def test_a_changed_payload_changes_the_crc() -> None:
    """One bit of payload or of an address is seen by any CRC."""
    datagram = bytes(range(64))
    for offset in (12, 16, 60):
        changed = bytearray(datagram)
        changed[offset] ^= 1
        assert invariant_crc(bytes(changed)) != invariant_crc(datagram)


@pytest.mark.real
def test_wireshark_reads_the_same_fields(tmp_path: Path) -> None:
    """A third reading of the annexes: fields of a write, an acknowledgement and a congestion notification."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    headers = [
        BaseTransportHeader(opcode=Opcode.WRITE_MIDDLE, destination_qpn=0xABCDEF, psn=0x123456, ack_request=True),
        BaseTransportHeader(opcode=Opcode.ACKNOWLEDGE, destination_qpn=1, psn=2, migrated=True),
        BaseTransportHeader(opcode=Opcode.CNP, destination_qpn=3, psn=0, becn=True),
    ]
    extended = [b"", b"\x1f\x00\x00\x07", b"\x00" * 16]
    frames = [
        pack_packet(
            header, source_ipv4=0x0A000001, destination_ipv4=0x0A000002, source_port=50000, extended_header=more
        )
        for header, more in zip(headers, extended, strict=True)
    ]
    (tmp_path / "frames.pcap").write_bytes(make_pcap(frames))
    names = ["opcode", "destqp", "psn", "a", "m"]
    command = ["tshark", "-r", str(tmp_path / "frames.pcap"), "-T", "fields"]
    command += [part for name in names for part in ("-e", f"infiniband.bth.{name}")]
    command += ["-e", "infiniband.aeth.msn", "-E", "separator=,"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = text.replace("True", "1").replace("False", "0").split()  # which word depends on its version
    assert rows == ["7,0xabcdef,1193046,1,0,", "17,0x000001,2,0,1,7", "129,0x000003,0,0,0,"]


@pytest.mark.real
def test_our_crc_is_that_of_a_real_capture(real_data: Path) -> None:
    """46 RoCEv2 frames sent by real adapters: each one's last four bytes are our CRC of the rest."""
    roce = [frame for frame in read_pcap(real_data / "pcap" / "roce_rc_send_60.pcap") if is_roce(frame)]
    assert len(roce) == 46
    for frame in roce:
        assert invariant_crc(frame[ETHERNET_BYTES:-ICRC_BYTES]) == int.from_bytes(frame[-ICRC_BYTES:], "little")


@pytest.mark.real
def test_the_headers_of_a_real_capture_read_as_its_message(real_data: Path) -> None:
    """Requests to queue pair 0x45 number 0 to 28 without a gap, and 16 acknowledgements answer on both queue pairs."""
    frames = read_pcap(real_data / "pcap" / "roce_rc_send_60.pcap")
    headers = [BaseTransportHeader.unpack(frame[TRANSPORT:]) for frame in frames if is_roce(frame)]
    requests = [header for header in headers if header.opcode != Opcode.ACKNOWLEDGE]
    assert [header.psn for header in requests if header.destination_qpn == 0x45] == list(range(29))
    assert len(headers) - len(requests) == 16
    assert {header.destination_qpn for header in headers} == {0x45, 0x48}


def make_pcap(frames: list[bytes]) -> bytes:
    """Return a capture of Ethernet frames: a 24-byte head, then 16 bytes before each frame."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in frames)


def read_pcap(path: Path) -> list[bytes]:
    """Return the frames of a little-endian capture."""
    content, frames, offset = path.read_bytes(), [], 24
    while offset < len(content):
        (length,) = struct.unpack_from("<I", content, offset + 8)
        frames.append(content[offset + 16 : offset + 16 + length])
        offset += 16 + length
    return frames


def is_roce(frame: bytes) -> bool:
    """Tell RoCEv2 over IPv4 from the rest of a capture."""
    is_udp = frame[12:14] == b"\x08\x00" and frame[23] == 17
    return is_udp and int.from_bytes(frame[36:38], "big") == UDP_PORT
