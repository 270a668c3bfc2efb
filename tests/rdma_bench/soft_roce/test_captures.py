"""Packets of a real verbs device, captured by tcpdump, are read by our reader as scapy and the kernel see them."""

from ipaddress import IPv4Address
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.rocev2 import label_source_port, source_port
from fabrictune.rdma_bench.captures.reader import Capture, read_capture
from fabrictune.rdma_bench.measurement.pair import WorkerPair
from fabrictune.rdma_bench.soft_roce.machine import VirtualMachine
from fabrictune.rdma_bench.soft_roce.workers import soft_roce_pair
from fabrictune.rdma_bench.verbs.endpoint import ConnectionSpec
from tests.patience import patience

pytestmark = pytest.mark.real

SENDER_IPV4, RECEIVER_IPV4 = (int(IPv4Address(text)) for text in ("10.77.0.1", "10.77.0.2"))
NUM_RETRIES = 3
LABELS = (0, 1, 0x12345, 0xFFFFF)
SNAP_BYTES = 128
PATIENT = 21  # 8.6 s, so that a path that is alive sees no retransmission, however busy this machine is


@pytest.fixture(scope="module")
def capture_file(machine: VirtualMachine) -> Path:
    """Return where the wire's packets go until the tests of this module have read them."""
    machine.run(
        f"tcpdump -Z root -i wire_a -U --immediate-mode -s {SNAP_BYTES} -w /share/wire.pcap udp port 4791"
        f" >/run/tcpdump.log 2>&1 & {_within(20)} 'until grep -q listening /run/tcpdump.log; do sleep 0.1; done'"
    )
    return machine.share / "wire.pcap"


@pytest.fixture(scope="module")
def connections(machine: VirtualMachine, places: tuple[str, str], capture_file: Path) -> list[tuple[int, int, int]]:
    """Return the flow label and both queue-pair numbers of a few connections that wrote, the last on a dead path."""
    with soft_roce_pair(machine, *places) as pair:
        alive = [(label, *_write(pair, ConnectionSpec(flow_label=label, timeout_exponent=PATIENT))) for label in LABELS]
        dead = (0, *_write(pair, ConnectionSpec(retries=NUM_RETRIES), is_dead=True))
    machine.run(f"pkill -INT tcpdump; {_within(20)} 'while pgrep tcpdump; do sleep 0.1; done'")
    return [*alive, dead]


def _within(seconds: float) -> str:
    return f"timeout {patience(seconds):.0f} sh -c"


def _write(pair: WorkerPair, spec: ConnectionSpec, *, is_dead: bool = False) -> tuple[int, int]:
    with pair.connected(spec) as ends:
        if is_dead:
            pair.receiver.ask("cut")
        pair.sender.ask("trial", message_bytes=4096, limit_s=patience(20))
        return ends["sender"]["qpns"][0], ends["receiver"]["qpns"][0]


@pytest.fixture(scope="module")
def capture(connections: list[tuple[int, int, int]], capture_file: Path) -> Capture:
    """Return the capture as our reader has it."""
    return read_capture(capture_file)


def test_source_ports_follow_the_kernels_function(capture: Capture, connections: list[tuple[int, int, int]]) -> None:
    """With a flow label from that, without from both numbers: for every connection, in both directions."""
    rows = capture.flows.row_F
    seen = {(int(row["source_ipv4"]), int(row["destination_qpn"])): int(row["source_port"]) for row in rows}
    for label, near, far in connections:
        numbers = (np.array([near]), np.array([far]))
        expected = int((label_source_port(np.array([label])) if label else source_port(*numbers))[0])
        assert seen[SENDER_IPV4, far] == expected
        if (RECEIVER_IPV4, near) in seen:  # who drops what comes in acknowledges nothing
            assert seen[RECEIVER_IPV4, near] == expected


def test_retransmitted_numbers_are_found_and_counted(capture: Capture, connections: list[tuple[int, int, int]]) -> None:
    """A write of 4096 bytes is 4 packets; on the dead path they come 1 + 3 times, so 12 are repeated."""
    repeated = {int(row["destination_qpn"]): int(row["repeated_packets"]) for row in capture.flows.row_F}
    *alive, (_, _, dead) = connections
    assert repeated[dead] == 4 * NUM_RETRIES
    assert [repeated[far] for _, _, far in alive] == [0] * len(alive)


def test_scapy_decodes_the_same(capture: Capture, capture_file: Path) -> None:
    """Every packet's address, port, opcode, queue pair and number, counted."""
    scapy = pytest.importorskip("scapy.all")
    roce = pytest.importorskip("scapy.contrib.roce")
    packets = [packet for packet in scapy.rdpcap(str(capture_file)) if roce.BTH in packet]
    assert len(packets) == capture.counts.roce > 0
    theirs: dict[tuple[int, int, int], int] = {}
    for packet in packets:
        key = (int(IPv4Address(packet[scapy.IP].src)), packet[scapy.UDP].sport, packet[roce.BTH].dqpn)
        theirs[key] = theirs.get(key, 0) + 1
    rows = capture.flows.row_F
    ours = {
        (int(row["source_ipv4"]), int(row["source_port"]), int(row["destination_qpn"])): int(row["packets"])
        for row in rows
    }
    assert ours == theirs
