"""pcap and pcapng in all their forms hold the same frames; where a file is cut, the frames before the cut are read."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.rdma_bench.captures import frames as frames_module
from fabrictune.rdma_bench.captures.reader import Capture, is_capture, read_capture
from tests.rdma_bench.captures.crafting import Frame, block, interface, option, packet, pcap, roce, section

ORDERS = ("<", ">")
TIMES_NS = (1_700_000_000_123_456_000, 1_700_000_001_000_001_000)


def read(tmp_path: Path, content: bytes) -> Capture:
    path = tmp_path / "capture"
    path.write_bytes(content)
    return read_capture(path)


def two_frames() -> list[Frame]:
    return [Frame(data=roce(psn), time_ns=time_ns) for psn, time_ns in enumerate(TIMES_NS)]


def bounds(capture: Capture) -> tuple[int, int]:
    return int(capture.flows.row_F["first_ns"].min()), int(capture.flows.row_F["last_ns"].max())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("is_ns", [False, True])
def test_a_pcap_is_read_in_both_byte_orders_and_resolutions(tmp_path: Path, order: str, is_ns: bool) -> None:
    """Two packets of one flow, with their times."""
    capture = read(tmp_path, pcap(two_frames(), order=order, is_ns=is_ns))
    assert (capture.counts.roce, len(capture.flows), capture.notes) == (2, 1, ())
    assert bounds(capture) == TIMES_NS


@pytest.mark.parametrize("order", ORDERS)
def test_a_pcapng_is_read_in_both_byte_orders(tmp_path: Path, order: str) -> None:
    """Interface 0 counts microseconds, by default; interface 1 nanoseconds; interface 2 in units of 2**-30 s."""
    ns, binary = option(9, b"\x09", order=order), option(9, b"\x9e", order=order)
    blocks = [section(order=order), interface(order=order)]
    blocks += [interface(order=order, options=options) for options in (ns, binary)]
    blocks += [block(5, b"statistics..", order=order), packet(roce(0), order=order, ticks=TIMES_NS[0] // 1000)]
    blocks += [packet(roce(1), order=order, ticks=TIMES_NS[1], number=1)]
    blocks += [packet(roce(2), order=order, ticks=(1_700_000_002 << 30) + 2**29, number=2)]
    capture = read(tmp_path, b"".join(blocks))
    assert (capture.counts.roce, capture.notes) == (3, ())
    assert bounds(capture) == (TIMES_NS[0], 1_700_000_002_500_000_000)


def test_a_pcapng_may_shift_its_clock_and_begin_a_section_of_the_other_byte_order(tmp_path: Path) -> None:
    """if_tsoffset adds whole seconds; a section forgets the interfaces of the one before."""
    shifted = interface(options=option(14, struct.pack("<q", 1_700_000_000)))
    first = section() + shifted + packet(roce(0), ticks=5)
    second = section(order=">") + interface(order=">", link_type=113) + interface(order=">")
    capture = read(tmp_path, first + second + packet(roce(1), order=">", ticks=7, number=1))
    assert capture.counts.roce == 2
    assert bounds(capture) == (7_000, 1_700_000_000_000_005_000)


def test_simple_blocks_and_packets_of_unknown_interfaces_are_counted_in_notes(tmp_path: Path) -> None:
    """They have no time, or no link type."""
    content = section() + interface() + packet(roce(), number=4) + block(3, struct.pack("<I", 4) + b"data") * 2
    capture = read(tmp_path, content)
    assert capture.counts.roce == 0
    assert [note.removeprefix(f"{capture.path}: ") for note in capture.notes] == [
        "packets of an interface that is not described, or longer than their block, which were left out: 1",
        "packets in simple or obsolete blocks, which were left out: 2",
    ]


@given(data=st.data())
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_a_cut_file_gives_the_packets_before_the_cut(
    tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject
) -> None:
    """Whatever byte the file ends at, exactly the whole packets are read, and the cut is noted."""
    heads = {"pcap": pcap([]), "pcapng": section() + interface()}
    bodies = {"pcap": pcap([Frame(data=roce())])[24:], "pcapng": packet(roce())}
    whole = heads[form] + bodies[form] * 4
    size = data.draw(st.integers(len(heads[form]), len(whole)))
    num_whole, rest = divmod(size - len(heads[form]), len(bodies[form]))
    capture = read(tmp_path_factory.mktemp("cut"), whole[:size])
    assert capture.counts.roce == num_whole
    assert [note.split(": ")[1] for note in capture.notes] == (["cut short"] if rest else [])


def test_a_damaged_length_ends_the_reading_with_a_note(tmp_path: Path) -> None:
    """A record of 2 GB and a block of no bytes; the packets before them count."""
    good = pcap([Frame(data=roce())])
    capture = read(tmp_path, good + struct.pack("<IIII", 0, 0, 2**31, 2**31) + roce())
    assert capture.counts.roce == 1
    assert capture.notes == (
        f"{capture.path}: damaged: the record at byte {len(good)} claims 2147483648 bytes; nothing behind it was read",
    )
    good = section() + interface() + packet(roce())
    capture = read(tmp_path, good + bytes(64))
    assert capture.counts.roce == 1
    assert capture.notes[0].endswith(f"the block at byte {len(good)} claims 0 bytes; nothing behind it was read")


@pytest.mark.parametrize("chunk_frames", [1, 2, 3, 7])
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_the_size_of_a_chunk_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_frames: int, form: str
) -> None:
    """Seven packets of two flows, with a gap and a repeat across chunks, give one table however they are cut."""
    sent = [roce(psn, qpn=qpn) for psn, qpn in ((5, 1), (9, 2), (6, 1), (8, 1), (10, 2), (7, 1), (8, 1))]
    content = pcap([Frame(data=data) for data in sent])
    if form == "pcapng":
        content = section() + interface() + b"".join(packet(data) for data in sent)
    expected = read(tmp_path, content)
    for module in ("pcap", "pcapng"):
        monkeypatch.setattr(f"fabrictune.rdma_bench.captures.{module}.CHUNK_FRAMES", chunk_frames)
    found = read(tmp_path, content)
    assert np.array_equal(found.flows.row_F, expected.flows.row_F)
    assert found.flows.packets_by_opcode() == expected.flows.packets_by_opcode() == {1: 7}
    assert expected.flows.row_F["missing_packets"].tolist() == [1, 0]
    assert expected.flows.row_F["repeated_packets"].tolist() == [2, 0]
    assert frames_module.CHUNK_FRAMES > 10**5, "large enough in use"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no capture: it begins with none of their magic numbers\n  allowed: pcap, pcapng"),
        (b"\n\r\r\n" + bytes(30), "no capture: it begins with none of their magic numbers\n  allowed: pcap, pcapng"),
        (
            b"\x1f\x8b\x08" + bytes(30),
            "a compressed file\n  allowed: pcap, pcapng\n  next: unpack it with gunzip",
        ),
    ],
)
def test_what_is_no_capture_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    """An empty file, a section without byte order, and a compressed file."""
    path = tmp_path / "file"
    path.write_bytes(content)
    assert not is_capture(path)
    with pytest.raises(InputError) as caught:
        read_capture(path)
    assert str(caught.value) == f"{path}: {message}"


def test_a_file_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    """No traceback for a wrong path."""
    with pytest.raises(InputError, match="no such file"):
        read_capture(tmp_path / "nowhere.pcap")


@given(position=st.integers(0, 5000), value=st.binary(min_size=1, max_size=8))
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_damage_anywhere_is_a_capture_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, form: str, position: int, value: bytes
) -> None:
    """Bytes overwritten at random: never a traceback, never more packets than records."""
    content = {
        "pcap": pcap([Frame(data=roce(psn)) for psn in range(4)]),
        "pcapng": section() + interface(options=option(9, b"\x06")) + b"".join(packet(roce(psn)) for psn in range(4)),
    }[form]
    position %= len(content)
    mutated = content[:position] + value + content[position + len(value) :]
    path = tmp_path_factory.mktemp("damaged") / "file"
    path.write_bytes(mutated)
    try:
        capture = read_capture(path)
    except InputError:
        return
    assert capture.counts.roce <= 4
    assert len(capture.observed()) == len(capture.flows)
