"""A public capture of RoCEv2 traffic gives what a script counted in it."""

import os
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.flows import ipv4_text
from fabrictune.rdma_bench.captures.opcodes import opcode_name
from fabrictune.rdma_bench.captures.reader import is_capture, read_capture

pytestmark = pytest.mark.real

NAME = Path("pcap", "roce_rc_send_60.pcap")


def test_a_reliable_connection_with_sends(real_data: Path) -> None:
    """60 frames, 46 RoCEv2; sends to 0x45 with packet numbers 0 to 28 without a gap; no mark, no CNP."""
    capture = read_capture(real_data / NAME)
    assert (capture.counts.frames, capture.counts.roce, capture.notes) == (60, 46, ())
    assert {opcode_name(opcode): count for opcode, count in capture.flows.packets_by_opcode().items()} == {
        "SEND_FIRST": 15,
        "SEND_LAST_WITH_IMMEDIATE": 14,
        "SEND_ONLY_WITH_IMMEDIATE": 1,
        "ACKNOWLEDGE": 16,
    }
    rows = capture.flows.row_F
    assert {int(qpn) for qpn in rows["destination_qpn"]} == {0x45, 0x48}
    for column in ("psn_gaps", "missing_packets", "repeated_packets", "ecn_marked", "cnps"):
        assert rows[column].tolist() == [0, 0], column
    to_0x45 = rows[rows["destination_qpn"] == 0x45][0]
    assert (to_0x45["packets"], to_0x45["acknowledgements"], int(to_0x45["sequence"]["psn"])) == (30, 1, 28)


def test_the_two_directions_find_each_other(real_data: Path) -> None:
    """Each flow's own queue pair is the other's destination, though each direction has a source port of its own."""
    flows = read_capture(real_data / NAME).observed()
    assert {ipv4_text(address) for address in flows.source_ipv4_F.tolist()} == {"192.168.70.4", "192.168.70.6"}
    assert sorted(zip(flows.source_qpn_F.tolist(), flows.destination_qpn_F.tolist(), strict=True)) == [
        (0x45, 0x48),
        (0x48, 0x45),
    ]


def test_another_dissector_counts_the_same(real_data: Path) -> None:
    """tshark on the same file; it would take the source port 69 of one direction for TFTP."""
    if not shutil.which("tshark"):
        pytest.skip("tshark is not installed")
    fields = ("ip.src", "udp.srcport", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn")
    command = [
        "tshark",
        "-r",
        str(real_data / NAME),
        "--disable-protocol",
        "tftp",
        "-Y",
        "udp.dstport == 4791",
        "-T",
        "fields",
    ]
    command += [part for name in fields for part in ("-e", name)]
    environment = {**os.environ, "LC_ALL": "C"}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    lines = [line.split("\t") for line in shown.splitlines()]
    flows = read_capture(real_data / NAME).flows
    found = {
        (ipv4_text(int(row["source_ipv4"])), int(row["source_port"]), int(row["destination_qpn"])): int(row["packets"])
        for row in flows.row_F
    }
    expected: dict[tuple[str, int, int], int] = {}
    for source, port, _, qpn, _ in lines:
        key = (source, int(port), int(qpn, 16))
        expected[key] = expected.get(key, 0) + 1
    assert found == expected


@pytest.mark.slow
def test_ten_thousand_mutations_are_captures_or_input_errors(real_data: Path, tmp_path: Path) -> None:
    """One to four bytes overwritten, or the end cut off, at places that a checksum of the trial's number chooses."""
    content, path = (real_data / NAME).read_bytes(), tmp_path / "mutated.pcap"
    for trial in range(10_000):
        draw = zlib.crc32(trial.to_bytes(4)).to_bytes(4)
        # Half of the places lie in the first frames, where headers are denser than in payload.
        place = int.from_bytes(draw[:2]) % (len(content) if trial % 2 else 4096)
        is_cut = trial % 5 == 0
        path.write_bytes(content[:place] if is_cut else content[:place] + draw + content[place + len(draw) :])
        try:
            capture = read_capture(path)
        except InputError:
            assert place < 24, "only the file's own header makes it no capture"
            continue
        assert capture.counts.roce <= 60


def test_no_other_public_file_is_taken_for_a_capture(real_data: Path) -> None:
    """Magic numbers are enough to tell."""
    found = [path.name for path in sorted(real_data.rglob("*")) if path.is_file() and is_capture(path)]
    assert found == [NAME.name]
