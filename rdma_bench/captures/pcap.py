"""The pcap container: a file header, then records of 16 bytes and the frame.

Both byte orders, times in microseconds and in nanoseconds. Finding the records is the one step that cannot be done in
bulk, since each has the offset of the next; all else is.

Source: draft-ietf-opsawg-pcap, "PCAP Capture File Format".
Left out: the modified pcap of Kuznetzov, with its longer records.
"""

import struct
from collections.abc import Iterator
from mmap import mmap

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.pcap import HEADER_BYTES, MICROSECOND_MAGIC, NANOSECOND_MAGIC, RECORD_BYTES
from fabrictune.rdma_bench.captures.frames import CHUNK_FRAMES, MAX_FRAME_BYTES, Bytes, Frames, gather

NS_PER_TICK = {MICROSECOND_MAGIC: 1000, NANOSECOND_MAGIC: 1}

_ORDERS = ("<", ">")


def is_pcap(head: bytes) -> bool:
    """Return whether a file that begins like this is a pcap."""
    return len(head) >= HEADER_BYTES and any(_magic(head, order) in NS_PER_TICK for order in _ORDERS)


def read_pcap_frames(file: mmap, data: Bytes, notes: list[str]) -> Iterator[Frames]:
    """Yield the frames in chunks; where the file is cut or damaged they end, with a note."""
    order = next(order for order in _ORDERS if _magic(file[:4], order) in NS_PER_TICK)
    ns_per_tick = NS_PER_TICK[_magic(file[:4], order)]
    (link_field,) = struct.unpack_from(f"{order}I", file, 20)
    layout = np.dtype([(name, f"{order}u4") for name in ("seconds", "ticks", "captured_bytes", "original_bytes")])
    position = HEADER_BYTES
    while position < len(file):
        start_K, position = _record_starts(file, position, struct.Struct(f"{order}8xI"))
        records = gather(data, start_K, layout)
        captured_K = records["captured_bytes"].astype(np.int64)
        is_whole_K = (start_K + RECORD_BYTES + captured_K <= len(file)) & (captured_K <= MAX_FRAME_BYTES)
        num_whole = len(start_K) if is_whole_K.all() else int(np.argmin(is_whole_K))
        yield Frames(
            position_K=start_K[:num_whole] + RECORD_BYTES,
            captured_bytes_K=captured_K[:num_whole],
            time_ns_K=(records["seconds"].astype(np.int64) * 10**9 + records["ticks"] * ns_per_tick)[:num_whole],
            link_type_K=np.full(num_whole, link_field & 0xFFFF),  # the high bits say how long the checksum is
        )
        if num_whole < len(start_K):
            notes.append(_note_of_damage(int(start_K[num_whole]), int(captured_K[num_whole])))
            return
        if len(start_K) < CHUNK_FRAMES and position < len(file):
            notes.append(f"cut short: the last {len(file) - position} bytes are part of a record")
            return


def _record_starts(file: mmap, position: int, length_field: struct.Struct) -> tuple[IntArray, int]:
    """Return the starts of the next records, and where the record after them would begin."""
    starts: list[int] = []
    add, length_at = starts.append, length_field.unpack_from
    try:
        for _ in range(CHUNK_FRAMES):
            (length,) = length_at(file, position)
            add(position)
            position += RECORD_BYTES + length
    except struct.error:  # the end of the file lies in or before the record's own header
        pass
    return np.array(starts, np.int64), position


def _note_of_damage(position: int, captured_bytes: int) -> str:
    if captured_bytes > MAX_FRAME_BYTES:
        return f"damaged: the record at byte {position} claims {captured_bytes} bytes; nothing behind it was read"
    return f"cut short: the record at byte {position} is not there whole"


def _magic(head: bytes, order: str) -> int:
    magic: int = struct.unpack_from(f"{order}I", head)[0]
    return magic
