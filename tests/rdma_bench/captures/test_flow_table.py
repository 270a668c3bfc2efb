"""Flows, their sequence numbers, and how the two directions of a connection find each other."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.flows import UNKNOWN
from fabrictune.foundation.rocev2 import Opcode, source_port
from fabrictune.rdma_bench.captures.reader import Capture, read_capture
from tests.rdma_bench.captures.crafting import RECEIVER, SENDER, Frame, acknowledgement, pcap, roce


def read(tmp_path: Path, *frames: bytes) -> Capture:
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap([Frame(data=frame, time_ns=1000 * row) for row, frame in enumerate(frames)]))
    return read_capture(path)


@pytest.mark.parametrize(
    ("psns", "gaps", "missing", "repeats"),
    [
        ((5, 6, 7), 0, 0, 0),
        ((5, 8, 9), 1, 2, 0),  # 6 and 7 are missing
        ((5, 6, 7, 6, 7, 8), 0, 0, 2),  # go-back-2
        ((5, 7, 6, 8), 1, 1, 1),  # overtaken on the way
        ((2**24 - 1, 0, 1), 0, 0, 0),  # wraps
        ((2**24 - 1, 1), 1, 1, 0),
        ((0, 2**24 - 1), 0, 0, 1),
    ],
)
def test_gaps_and_repeats_are_told_from_order(
    tmp_path: Path, psns: tuple[int, ...], gaps: int, missing: int, repeats: int
) -> None:
    """By hand, for each row."""
    (row,) = read(tmp_path, *(roce(psn) for psn in psns)).flows.row_F
    assert (row["psn_gaps"], row["missing_packets"], row["repeated_packets"]) == (gaps, missing, repeats)


def test_a_read_request_takes_as_many_numbers_as_its_response_has_packets(tmp_path: Path) -> None:
    """After a read of four packets at 5 the next request is 9: no gap."""
    (row,) = read(tmp_path, roce(5, opcode=Opcode.READ_REQUEST, extended=bytes(16), payload=b""), roce(9)).flows.row_F
    assert row["psn_gaps"] == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), min_size=1, max_size=30))
def test_the_sequence_is_judged_as_one_packet_after_another_would_be(
    tmp_path_factory: pytest.TempPathFactory, sent: list[tuple[int, int]]
) -> None:
    """A plain loop with the highest number so far, beside the bulk computation."""
    flows = read(tmp_path_factory.mktemp("psn"), *(roce(psn, qpn=qpn) for qpn, psn in sent)).flows
    highest: dict[int, int] = {}
    missing, repeats = dict.fromkeys(range(3), 0), dict.fromkeys(range(3), 0)
    for qpn, psn in sent:
        expected = highest.get(qpn, psn - 1) + 1
        missing[qpn] += max(psn - expected, 0)
        repeats[qpn] += psn < expected
        highest[qpn] = max(highest.get(qpn, psn), psn)
    for row in flows.row_F:
        qpn = int(row["destination_qpn"])
        assert (row["missing_packets"], row["repeated_packets"]) == (missing[qpn], repeats[qpn])


def test_the_opposite_flow_tells_the_source_queue_pair(tmp_path: Path) -> None:
    """0x45 and 0x48 use one port in both directions, so each flow's own number is the other's destination."""
    flows = read(tmp_path, roce(), acknowledgement()).observed()
    assert flows.source_qpn_F.tolist() == [0x45, 0x48]
    assert flows.destination_qpn_F.tolist() == [0x48, 0x45]
    assert flows.bytes_F.tolist() == [1024, 0]
    assert (flows.first_ns_F.tolist(), flows.last_ns_F.tolist()) == ([0, 1000], [0, 1000])


def test_of_several_flows_through_one_port_the_one_that_gives_the_port_is_taken(tmp_path: Path) -> None:
    """0x45 with 0x48 gives 0xD368; 0x99 with 0x48 does not."""
    assert source_port(np.array([0x99]), np.array([0x48]))[0] != 0xD368
    back = [roce(qpn=qpn, source=RECEIVER, destination=SENDER) for qpn in (0x99, 0x45)]
    flows = read(tmp_path, roce(), *back).observed()
    assert flows.source_qpn_F.tolist() == [0x45, 0x48, 0x48]


def test_two_directions_with_ports_of_their_own_are_paired_only_where_they_are_alone(tmp_path: Path) -> None:
    """An adapter may choose another port for each direction; with a second connection nobody can tell."""
    there, back = roce(port=50001), roce(qpn=0x45, port=50002, source=RECEIVER, destination=SENDER)
    assert read(tmp_path, there, back).observed().source_qpn_F.tolist() == [0x45, 0x48]
    second = roce(qpn=0x50, port=50003)
    assert read(tmp_path, there, back, second).observed().source_qpn_F.tolist() == [UNKNOWN, UNKNOWN, UNKNOWN]


def test_flows_that_share_a_slot_stay_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a single slot every flow drives the others out of it, and nothing changes."""
    frames = [roce(psn, qpn=qpn, port=port) for psn in range(3) for qpn in (1, 2) for port in (50000, 50001)]
    expected = read(tmp_path, *frames).flows.row_F
    monkeypatch.setattr("fabrictune.rdma_bench.captures.flow_table.NUM_SLOTS", 1)
    monkeypatch.setattr("fabrictune.rdma_bench.captures.pcap.CHUNK_FRAMES", 5)
    assert np.array_equal(read(tmp_path, *frames).flows.row_F, expected)
    assert expected["packets"].tolist() == [3, 3, 3, 3]


def test_too_many_flows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory grows with the flows, so their number is bounded."""
    monkeypatch.setattr("fabrictune.rdma_bench.captures.flow_table.MAX_FLOWS", 2)
    with pytest.raises(InputError, match="more than 2 flows"):
        read(tmp_path, *(roce(qpn=qpn) for qpn in range(3)))
