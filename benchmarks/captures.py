"""Speed of the capture reader: packets a second from a file to its table of flows, and the memory that takes.

The capture is made here: 2 million RoCEv2 packets of 512 flows at a snap length of 128 bytes, in the page cache. Hosts,
queue pairs and source ports are drawn at random; packet numbers go up in each flow.

Run: `python -m benchmarks.run captures`
"""

import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from fabrictune.foundation.rocev2 import BaseTransportHeader, Opcode, pack_packet
from fabrictune.rdma_bench.captures.reader import read_capture

RUNS = 5
NUM_PACKETS = 2_000_000
NUM_FLOWS = 512
SNAP_BYTES = 128
SEED = 1
PCAP_HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAP_BYTES, 1)
PCAP_RECORD = [("seconds", "<u4"), ("ticks", "<u4"), ("captured", "<u4"), ("original", "<u4")]
PCAPNG_HEAD = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28) + struct.pack(
    "<IIHHII", 1, 20, 1, 0, 0, 20
)
PCAPNG_RECORD = [(name, "<u4") for name in ("kind", "length", "interface", "high", "low", "captured", "original")]
PEAK = """
import sys
from pathlib import Path
from fabrictune.rdma_bench.captures.reader import read_capture
read_capture(Path(sys.argv[1]))
print(next(line.split()[1] for line in Path("/proc/self/status").open() if line.startswith("VmHWM")))
"""  # ru_maxrss would begin with this process's own peak


def benchmarks() -> list[dict[str, Any]]:
    """Return packets a second and peak memory for both containers, as rows of benchmarks/results.json."""
    frames, original_bytes = _frames()
    files = {"pcap": _pcap(frames, original_bytes), "pcapng": _pcapng(frames, original_bytes)}
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for form, content in files.items():
            path = Path(folder, f"synthetic.{form}")
            path.write_bytes(content)
            rows.append(_row(f"rdma_bench.capture-{form}", [_packets_per_s(path) for _ in range(RUNS)]))
            rows.append(_peak_row(f"rdma_bench.capture-{form}.peak-memory", path))
            path.unlink()
    return rows


def _frames() -> tuple[np.ndarray[Any, Any], int]:
    """Return the first SNAP_BYTES of every packet, shape (NUM_PACKETS, SNAP_BYTES), and a whole packet's length."""
    header = BaseTransportHeader(opcode=Opcode.WRITE_MIDDLE, destination_qpn=0, psn=0)
    packet = pack_packet(header, source_ipv4=0, destination_ipv4=0, source_port=0, payload=bytes(1024))
    random = np.random.default_rng(SEED)
    flow_K = random.integers(0, NUM_FLOWS, NUM_PACKETS)
    order_K = np.argsort(flow_K, kind="stable")
    psn_K = np.empty(NUM_PACKETS, np.int64)
    psn_K[order_K] = np.arange(NUM_PACKETS) - np.searchsorted(flow_K[order_K], flow_K[order_K])
    frames = np.tile(np.frombuffer(packet[:SNAP_BYTES], np.uint8), (NUM_PACKETS, 1))
    for begin, num_bytes, value_F in (
        (26, 4, 0x0A000000 + random.permutation(NUM_FLOWS)),
        (30, 4, 0x0A000000 + random.permutation(NUM_FLOWS)),
        (34, 2, random.integers(0xC000, 0x10000, NUM_FLOWS)),
        (47, 3, random.integers(0, 2**24, NUM_FLOWS)),
    ):
        _put(frames, begin, num_bytes, value_F[flow_K])
    _put(frames, 51, 3, psn_K)
    return frames, len(packet)


def _put(frames: np.ndarray[Any, Any], begin: int, num_bytes: int, value_K: np.ndarray[Any, Any]) -> None:
    """Write a number, its most significant byte first, into the same place of every frame."""
    for place in range(num_bytes):
        frames[:, begin + place] = value_K >> 8 * (num_bytes - 1 - place) & 0xFF


def _pcap(frames: np.ndarray[Any, Any], original_bytes: int) -> bytes:
    records = np.zeros(NUM_PACKETS, np.dtype([*PCAP_RECORD, ("frame", "u1", SNAP_BYTES)]))
    records["seconds"], records["ticks"] = np.divmod(np.arange(NUM_PACKETS), 10**6)
    records["captured"], records["original"], records["frame"] = SNAP_BYTES, original_bytes, frames
    return PCAP_HEAD + records.tobytes()


def _pcapng(frames: np.ndarray[Any, Any], original_bytes: int) -> bytes:
    layout = np.dtype([*PCAPNG_RECORD, ("frame", "u1", SNAP_BYTES), ("length_again", "<u4")])
    records = np.zeros(NUM_PACKETS, layout)
    records["kind"], records["length"], records["length_again"] = 6, layout.itemsize, layout.itemsize
    records["low"] = np.arange(NUM_PACKETS)
    records["captured"], records["original"], records["frame"] = SNAP_BYTES, original_bytes, frames
    return PCAPNG_HEAD + records.tobytes()


def _packets_per_s(path: Path) -> float:
    started = time.process_time()
    capture = read_capture(path)
    seconds = time.process_time() - started
    is_right = (capture.counts.roce, len(capture.flows), capture.notes) == (NUM_PACKETS, NUM_FLOWS, ())
    assert is_right, "every packet is read into its flow"
    assert not capture.flows.row_F["psn_gaps"].any(), "every flow is in order"
    return NUM_PACKETS / seconds


def _row(name: str, values: list[float]) -> dict[str, Any]:
    return {
        "name": name,
        "value": statistics.median(values),
        "unit": "packets/s",
        "spread": f"median of {RUNS}, {min(values) / 1e6:.2f} to {max(values) / 1e6:.2f} M",
    }


def _peak_row(name: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", PEAK, str(path)]
    peak_mib = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024
    size_mib = path.stat().st_size / 2**20
    return {"name": name, "value": peak_mib, "unit": "MiB", "spread": f"whole process, a file of {size_mib:.0f} MiB"}
