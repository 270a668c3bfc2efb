"""Captures of simulated packets, read by our own reader, by scapy and by tshark."""

import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.netsim.config.capture import CaptureConfig
from fabrictune.netsim.config.packet import PacketConfig
from fabrictune.netsim.config.queues import PriorityConfig, QueuesConfig
from fabrictune.netsim.config.switch import EcnConfig
from fabrictune.netsim.config.transport import RnrConfig, TransportConfig
from fabrictune.netsim.engine_inputs.inputs import make_engine_inputs
from fabrictune.netsim.packet import make_simulation, run
from fabrictune.rdma_bench.captures.reader import Capture, read_capture
from tests.netsim.conftest import Rows, compiled, network_of, one_switch, traffic_of

PAIRS = [(0, 3), (1, 3), (2, 3), (3, 0)]
ROWS: Rows = [{"bytes": 100_001, "qp": qp} for qp in range(3)] + [
    {"bytes": 0, "qp": 3},
    {"bytes": 1, "qp": 3},
    {"bytes": 9_000, "qp": 3},
]
LOSSY = PacketConfig(
    mtu_bytes=1024,
    loss_fraction=0.01,
    ecn=EcnConfig(kmin_bytes=2_000, kmax_bytes=40_000, pmax_fraction=0.5),
    transport=TransportConfig(timeout_ns=50_000),
)

Take = Callable[..., tuple[RunRecord, Path]]


@pytest.fixture
def take(tmp_path: Path) -> Take:
    """Return a function that runs three senders into one NIC, which also answers, and writes the record."""

    def run_and_write(capture: CaptureConfig, config: PacketConfig = LOSSY) -> tuple[RunRecord, Path]:
        network = network_of(one_switch(4), PAIRS)
        record = run(network, traffic_of(ROWS), compiled("dcqcn"), config, seed=3, capture=capture)
        return record, record.write(tmp_path / "record") / "capture.pcap"

    return run_and_write


def to_destination(capture: Capture, nic: int) -> np.ndarray:
    """Return the rows of the flows to one of the four NICs, whose addresses follow one another."""
    rows = capture.flows.row_F
    first = min(rows["destination_ipv4"].min(), rows["source_ipv4"].min())
    chosen: np.ndarray = rows[rows["destination_ipv4"] == first + nic]
    return chosen


def test_the_flows_observed_are_the_flows_run(take: Take) -> None:
    """At the senders: every packet sent, in both senses, and every answer that came back; counted by another reader."""
    record, path = take(CaptureConfig())
    capture = read_capture(path)
    assert not capture.notes
    transfers = record.tables["transfers"]
    forth = to_destination(capture, 3)
    data = forth[forth["packets"] > forth["acknowledgements"] + forth["cnps"]]
    sent = [int(transfers["packets_sent"][transfers["qp"] == qp].sum()) for qp in range(3)]
    assert sorted((data["packets"] - data["acknowledgements"] - data["cnps"]).tolist()) == sorted(sent)
    assert data["repeated_packets"].sum() == transfers["packets_retransmitted"][:3].sum() > 0
    cnps = capture.flows.row_F["cnps"].sum()
    assert cnps >= transfers["cnps"].sum() > 0  # some came when all was acknowledged


def test_what_the_receiver_captures_arrived_there(take: Take) -> None:
    """Data packets less those lost on the way; marks are on the packets, as the switch made them."""
    record, path = take(CaptureConfig(at="receiver"))
    by_opcode = read_capture(path).flows.packets_by_opcode()
    num_data = sum(count for opcode, count in by_opcode.items() if opcode < 0x0C)
    assert num_data == record.run["packets"]["data_delivered"]
    num_marked = int(read_capture(path).flows.row_F["ecn_marked"].sum())
    assert 0 < num_marked <= record.tables["ports"]["ecn_marked_packets"].sum()


def test_a_switch_port_is_captured_in_both_directions(take: Take) -> None:
    """The ToR's port to host 3: what its ledger counts out, and what the other direction brought in without a loss."""
    record, path = take(CaptureConfig(at="tor0:down3"), PacketConfig())
    fabric, ports = record.tables["fabric"], record.tables["ports"]
    (out,) = np.nonzero((fabric["node_name"] == "tor0") & (fabric["port_name"] == "down3"))[0]
    back = fabric["peer_port"][out]
    assert read_capture(path).counts.roce == ports["tx_packets"][out] + ports["tx_packets"][back]


def test_flows_and_hosts_choose_what_is_captured(take: Take) -> None:
    """Queue pair 1 runs from host 1; all four begin or end at host 3."""
    _, path = take(CaptureConfig(flows=(1,)))
    assert len(read_capture(path).flows) == 2  # there and back
    _, path = take(CaptureConfig(hosts=("host1",)))
    assert len(read_capture(path).flows) == 2
    _, path = take(CaptureConfig(hosts=("host3",)))
    assert len(read_capture(path).flows) == 8


def test_a_full_capture_says_what_it_left_out(take: Take) -> None:
    """The first 50 packets are kept, and the record counts the others."""
    record, path = take(CaptureConfig(max_packets=50))
    left_out = record.run["capture"]["left_out"]
    assert (record.run["capture"]["packets"], read_capture(path).counts.roce) == (50, 50)
    assert left_out > 300
    (finding,) = [finding for finding in record.findings if finding.id == "netsim.capture-truncated"]
    assert (finding.expected, finding.actual) == (
        f"all {50 + left_out} packets",
        "only the first 50 packets are captured",
    )


def test_snap_cuts_payloads_and_keeps_headers(take: Take) -> None:
    """128 B hold every header; lengths as sent stand in each record and in the UDP header."""
    whole, cut = (read_capture(take(CaptureConfig(snap_bytes=snap))[1]) for snap in (2**16, 128))
    assert (whole.flows.row_F == cut.flows.row_F).all()
    _, path = take(CaptureConfig(snap_bytes=128))
    lengths = [length for length, _ in records(path)]
    assert (min(lengths), max(lengths)) == (62, 128)


def test_messages_are_writes_whose_sizes_add_up(take: Take) -> None:
    """0 B, 1 B and 9,000 B are one, one and nine packets of up to 1,024 B; the RETH tells each size."""
    _, path = take(CaptureConfig(flows=(3,)), PacketConfig(mtu_bytes=1024))
    frames = [frame for _, frame in records(path) if frame[42] != 0x11]
    assert [frame[42] for frame in frames] == [0x0A, 0x0A, 0x06] + 7 * [0x07] + [0x08]
    assert [int.from_bytes(frame[66:70]) for frame in frames[:3]] == [0, 1, 9000]
    assert [int.from_bytes(frame[51:54]) for frame in frames] == list(range(11))  # packet sequence numbers
    answers = [frame for _, frame in records(path) if frame[42] == 0x11]
    assert [int.from_bytes(frame[55:58]) for frame in answers] == [1, 2] + 8 * [2] + [3]  # messages complete


def test_a_receiver_that_is_not_ready_says_so(take: Take) -> None:
    """One receive, posted anew after 10 us: queue pair 3's second message comes too early, and waits 0.64 ms (code 12).

    Only writes with immediate data take a receive.
    """
    config = PacketConfig(mtu_bytes=1024, transport=TransportConfig(rnr=RnrConfig(receives=1, replenish_ns=10_000)))
    _, path = take(CaptureConfig(flows=(3,)), config)
    frames = [frame for _, frame in records(path)]
    rnr_naks = [frame for frame in frames if frame[42] == 0x11 and frame[54] >> 5 == 1]
    assert rnr_naks
    assert {frame[54] for frame in rnr_naks} == {0x20 + 12}
    assert {int.from_bytes(frame[51:54]) for frame in rnr_naks} <= {1, 2}  # the first packets of both later messages
    assert {frame[42] for frame in frames} == {0x0B, 0x06, 0x07, 0x09, 0x11}


def test_packets_carry_the_dscp_of_their_priority(take: Take) -> None:
    """Data at priority 3 have 26; acknowledgements at 5 have 8 * 5, and CNPs at 6 have 48."""
    numbers = tuple(PriorityConfig(priority=number, lossless=number == 3) for number in (3, 5, 6))
    queues = QueuesConfig(priorities=numbers, acknowledgements=5, cnp=6)
    _, path = take(CaptureConfig(at="receiver"), replace(LOSSY, queues=queues))
    seen = {(frame[42], frame[15] >> 2) for _, frame in records(path)}
    assert {dscp for opcode, dscp in seen if opcode == 0x11} == {40}
    assert {dscp for opcode, dscp in seen if opcode == 0x81} == {48}
    assert {dscp for opcode, dscp in seen if opcode not in (0x11, 0x81)} == {26}


def test_scapy_decodes_every_packet_and_agrees_on_every_checksum(take: Take) -> None:
    """scapy.contrib.roce recomputes ICRC and IPv4 checksum; it names BTH, AETH and CNP by layers of its own."""
    layers = pytest.importorskip("scapy.layers.all", reason="scapy is not installed (extra: probe)")
    roce = pytest.importorskip("scapy.contrib.roce")
    _, path = take(CaptureConfig(at="receiver"))
    seen: dict[str, int] = {}
    for _, frame in records(path):
        packet = layers.Ether(frame)
        for layer in ("BTH", "AETH", "CNPPadding"):
            seen[layer] = seen.get(layer, 0) + packet.haslayer(getattr(roce, layer))
        del packet[layers.IP].chksum
        del packet[roce.BTH].icrc
        assert bytes(packet) == frame
    by_opcode = read_capture(path).flows.packets_by_opcode()
    assert seen == {"BTH": sum(by_opcode.values()), "AETH": by_opcode[0x11], "CNPPadding": by_opcode[0x81]}


@pytest.mark.real
@pytest.mark.parametrize("at", ["sender", "receiver", "tor0:down3"])
def test_tshark_finds_nothing_malformed(take: Take, at: str) -> None:
    """Its dissector reads every packet as RoCEv2, and complains of none."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    record, path = take(CaptureConfig(at=at))
    shown = subprocess.run(["tshark", "-r", str(path)], capture_output=True, text=True, check=True).stdout
    assert shown.count("RRoCE") == len(shown.splitlines()) == record.run["capture"]["packets"]
    assert "alformed" not in shown
    command = ["tshark", "-r", str(path), "-Y", "_ws.malformed or _ws.expert.severity >= warning"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.parametrize(
    ("capture", "message"),
    [
        (CaptureConfig(at="tor0:down9"), "capture.at: unknown port of tor0 'down9'"),
        (CaptureConfig(at="sendr"), "capture.at: 'sendr'"),
        (CaptureConfig(hosts=("hots1",)), "capture.hosts: unknown node 'hots1'"),
        (CaptureConfig(flows=(4,)), "capture.flows: 4\n  allowed: a row of the network's 4 queue pairs"),
    ],
)
def test_what_is_not_there_cannot_be_captured(take: Take, capture: CaptureConfig, message: str) -> None:
    """The mistake names the key and what would do."""
    with pytest.raises(InputError) as error:
        take(capture)
    assert str(error.value).startswith(message)


def test_a_capture_may_not_outgrow_its_bound() -> None:
    """2**30 B of file at 65,536 + 16 B a packet are 16,380 packets."""
    with pytest.raises(InputError, match="up to 16380 of that snap"):
        CaptureConfig(max_packets=16_381)


def records(path: Path) -> list[tuple[int, bytes]]:
    """Return the length kept and the bytes of each record of a little-endian pcap."""
    content, found, offset = path.read_bytes(), [], 24
    while offset < len(content):
        (length,) = struct.unpack_from("<I", content, offset + 8)
        found.append((length, content[offset + 16 : offset + 16 + length]))
        offset += 16 + length
    return found


def test_a_message_longer_than_its_header_can_say_is_refused_before_the_run() -> None:
    """4,294,967,296 B in 32 bits were a struct.error after the run; InfiniBand allows 2 GiB."""
    network, traffic = network_of(one_switch(4), PAIRS), traffic_of([{"bytes": 2**32, "qp": 0}])
    with pytest.raises(InputError, match=r"^capture: a message of 4294967296 B\n  allowed: up to 2147483648 B, "):
        run(network, traffic, compiled("dcqcn"), PacketConfig(), seed=3, capture=CaptureConfig())


def test_what_a_transport_does_not_say_is_0() -> None:
    """Go-back-N over one path, without receiver credits and trimming."""
    network, traffic, law = network_of(one_switch(4), PAIRS), traffic_of(ROWS), compiled("dcqcn")
    capture = CaptureConfig(at="sender")
    simulation = make_simulation(
        make_engine_inputs(network, traffic, law, LOSSY, seed=3, probe=None, capture=capture), law
    )
    simulation.advance(10**8)
    columns = simulation.capture_columns()
    unsaid = ("is_last_hop", "entropy", "expected_sequence", "report_first", "report_bits", "credit_bytes")
    assert len(columns["qp"]) > 100
    assert [name for name in unsaid if columns[name].any()] == []
