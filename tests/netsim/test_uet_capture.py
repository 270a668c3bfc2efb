"""Captures of Ultra Ethernet packets, read back by bytes."""

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.uet import UET_UDP_PORT, PdsType
from fabrictune.netsim.capture import PacketType
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.path_choice import PathChoiceConfig
from fabrictune.netsim.config.switch import EcnConfig, PfcConfig, TrimmingConfig
from fabrictune.netsim.config.transport import CreditsConfig, TransportConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.packet import make_simulation, run
from tests.netsim.conftest import compiled, network_of, one_switch, traffic_of

PAIRS = [(source, 3) for source in range(3)]
UET = PacketConfig(
    mtu_bytes=1024,
    ecn=EcnConfig(kmin_bytes=2_000, kmax_bytes=8_000, pmax_fraction=1.0),
    pfc=PfcConfig(enabled=False),
    trimming=TrimmingConfig(enabled=True, threshold_bytes=8_000),
    path_choice=PathChoiceConfig(mode="entropy"),
    transport=TransportConfig(
        reliability="selective-repeat",
        reorder_window_ns=1_000_000,
        acknowledge_after_bytes=4096,
        credits=CreditsConfig(enabled=True, window_bytes=20_000),
    ),
)


@dataclass(frozen=True)
class Frame:
    """A frame's IPv4 type of service, UDP ports, and what UDP carries."""

    service: int
    source_port: int
    destination_port: int
    pds: bytes

    @property
    def kind(self) -> int:
        """Type of its PDS header."""
        return self.pds[0] >> 3

    @property
    def flags(self) -> int:
        """Flags of its PDS header."""
        return self.pds[1] & 0x7F

    @property
    def next_header(self) -> int:
        """Next header, or the type of a control packet."""
        return int.from_bytes(self.pds[:2], "big") >> 7 & 0xF

    @property
    def psn(self) -> int:
        """PSN, cumulative in acknowledgements."""
        return int.from_bytes(self.pds[4:8], "big")


def frames_of(path: Path) -> Iterator[Frame]:
    """Yield the frames of a pcap file."""
    content = path.read_bytes()
    place = 24
    while place < len(content):
        num_bytes = struct.unpack_from("<I", content, place + 8)[0]
        frame = content[place + 16 : place + 16 + num_bytes]
        assert frame[12:14] == b"\x08\x00"
        assert struct.unpack_from(">H", frame, 16)[0] == num_bytes - 14
        source_port, destination_port, udp_bytes = struct.unpack_from(">HHH", frame, 34)
        assert udp_bytes == num_bytes - 34
        yield Frame(frame[15], source_port, destination_port, frame[42:])
        place += 16 + num_bytes


def take(tmp_path: Path, at: str, config: PacketConfig = UET) -> tuple[RunRecord, list[Frame]]:
    """Return a run of three senders into one NIC, and what was captured of it."""
    network = network_of(one_switch(4), PAIRS)
    traffic = traffic_of([{"bytes": 60_000, "qp": qp} for qp in range(3)])
    record = run(network, traffic, compiled("none"), config, seed=3, capture=CaptureConfig(at=at, headers="uet"))
    return record, list(frames_of(record.write(tmp_path / "record") / "capture.pcap"))


def test_at_the_senders_every_packet_has_its_frame(tmp_path: Path) -> None:
    """Data, some of them again, and of the answers those that came back."""
    record, frames = take(tmp_path, "sender")
    kinds = Counter(frame.kind for frame in frames)
    packets = record.run["packets"]
    assert kinds[PdsType.RUD_CC_REQUEST] == packets["data_sent"]
    assert kinds[PdsType.NACK] == packets["data_trimmed"] > 0
    assert kinds[PdsType.ACK_CC] > 30
    controls = Counter(frame.next_header for frame in frames if frame.kind == PdsType.CONTROL)
    assert 0 < controls[7] <= packets["grants"]
    assert {frame.destination_port for frame in frames} == {UET_UDP_PORT}
    data = [frame for frame in frames if frame.kind == PdsType.RUD_CC_REQUEST]
    assert 50 < len({frame.source_port for frame in data}) <= UET.path_choice.entropy_values
    assert sum(frame.flags >> 4 & 1 for frame in data) == record.tables["transfers"]["packets_retransmitted"].sum()
    assert [len(frame.pds) - 16 for frame in data[:2]] == [1024, 1024]


def test_fields_of_a_request_stand_where_the_specification_has_them(tmp_path: Path) -> None:
    """Type 13 in five bits, PSN 0, context 0, and the first credit target: a packet of 1,106 B, five units of 256 B."""
    _, frames = take(tmp_path, "sender")
    first = frames[0].pds
    assert first[:16].hex() == "68000000000000000000000000000005"


def test_at_the_receiver_trimmed_packets_end_with_their_headers(tmp_path: Path) -> None:
    """What arrives whole has its payload and perhaps a mark; what was cut is 16 B of PDS header."""
    record, frames = take(tmp_path, "receiver")
    data = [frame for frame in frames if frame.kind == PdsType.RUD_CC_REQUEST]
    whole = [frame for frame in data if len(frame.pds) > 16]
    packets = record.run["packets"]
    assert (len(whole), len(data) - len(whole)) == (packets["data_delivered"], packets["data_trimmed"])
    assert sum(frame.service & 3 == 3 for frame in whole) > 10
    marked = [frame for frame in frames if frame.kind == PdsType.ACK_CC and frame.flags >> 5 & 1]
    assert len(marked) > 10


def test_an_acknowledgement_names_what_has_arrived(tmp_path: Path) -> None:
    """Cumulative PSN and bitmap together name, in the end, every packet of a message of 59."""
    _, frames = take(tmp_path, "receiver")
    named: dict[int, set[int]] = {qp: set() for qp in range(3)}
    for frame in frames:
        if frame.kind == PdsType.ACK_CC:
            (context,) = struct.unpack_from(">H", frame.pds, 8)
            (offset, bitmap) = struct.unpack_from(">hQ", frame.pds, 14)
            cumulative = frame.psn if frame.psn < 2**31 else frame.psn - 2**32
            named[context] |= set(range(cumulative + 1))
            named[context] |= {cumulative + offset + bit for bit in range(64) if bitmap >> bit & 1}
    assert named == {qp: set(range(59)) for qp in range(3)}


def test_a_grant_answers_no_packet() -> None:
    """So it has the sequence of none."""
    network = network_of(one_switch(4), PAIRS)
    traffic, law = traffic_of([{"bytes": 60_000, "qp": qp} for qp in range(3)]), compiled("none")
    capture = CaptureConfig(at="receiver", headers="uet")
    inputs = make_engine_inputs(network, traffic, law, UET, seed=3, probe=None, capture=capture)
    simulation = make_simulation(inputs, law)
    simulation.advance(10**8)
    columns = simulation.capture_columns()
    is_grant = columns["type"] == PacketType.CREDIT
    assert is_grant.sum() == simulation.packet_counts()["grants"] > 0
    assert not columns["sequence"][is_grant].any()


def test_frames_that_the_run_cannot_have_are_refused() -> None:
    """RoCE has no trimmed packets, and Ultra Ethernet no congestion notifications."""
    network, traffic = network_of(one_switch(4), PAIRS), traffic_of([{"bytes": 1}])
    with pytest.raises(InputError, match="switches that trim and receiver credits and coalesced acknowledgements"):
        run(network, traffic, compiled("none"), UET, capture=CaptureConfig())
    with pytest.raises(InputError, match="congestion notifications, which the law dcqcn reads"):
        run(network, traffic, compiled("dcqcn"), UET, capture=CaptureConfig(headers="uet"))
    plain = replace(UET, trimming=TrimmingConfig(), transport=TransportConfig())
    with pytest.raises(InputError, match="reliability go-back-n"):
        run(network, traffic, compiled("none"), plain, capture=CaptureConfig(headers="uet"))
