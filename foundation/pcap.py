"""The pcap container: a file header, then for each frame 16 bytes and as much of it as was captured.

`rdma_bench/captures` reads it, from anyone; this writes it, with times in nanoseconds.

Source: draft-ietf-opsawg-pcap, "PCAP Capture File Format".
"""

import struct

MICROSECOND_MAGIC = 0xA1B2C3D4
NANOSECOND_MAGIC = 0xA1B23C4D
HEADER_BYTES = 24
RECORD_BYTES = 16
ETHERNET = 1  # LINKTYPE_


def pcap_header(snap_bytes: int) -> bytes:
    """Return the start of a file of Ethernet frames, each cut at `snap_bytes`."""
    return struct.pack("<IHHiIII", NANOSECOND_MAGIC, 2, 4, 0, 0, snap_bytes, ETHERNET)


def pcap_record(time_ns: int, frame: bytes, snap_bytes: int) -> bytes:
    """Return one frame with its record's head; `time_ns` counts from 1970."""
    captured = frame[:snap_bytes]
    head = struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(captured), len(frame))
    return head + captured
