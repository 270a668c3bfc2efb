"""The pcapng container: sections of blocks, whose packets name an interface that gives their link type and clock.

Source: draft-ietf-opsawg-pcapng, "PCAP Now Generic (pcapng) Capture File Format".
Left out: simple and obsolete packet blocks, which are counted and noted, and blocks of other kinds.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.units import NS_PER_S
from fabrictune.rdma_bench.captures.frames import CHUNK_FRAMES, MAX_FRAME_BYTES, Bytes, Frames, gather

SECTION, INTERFACE, OBSOLETE_PACKET, SIMPLE_PACKET, PACKET = 0x0A0D0D0A, 1, 2, 3, 6
BYTE_ORDER_MAGIC = 0x1A2B3C4D
RESOLUTION_OPTION, OFFSET_OPTION = 9, 14
MIN_BLOCK_BYTES = 12
PACKET_HEADER_BYTES = 28
MIN_PACKET_BYTES = PACKET_HEADER_BYTES + 4  # the length is repeated at the end
MAX_INTERFACES = 2**16
MAX_OPTION_BYTES = 2**12  # of an interface that are looked at

_ORDERS = ("<", ">")
_PACKET_FIELDS = ("kind", "length", "interface", "ticks_high", "ticks_low", "captured_bytes", "original_bytes")


@dataclass
class PcapngSection:
    """A section's byte order and interfaces, as far as it has been read; an interface is its row in the lists."""

    order: str
    link_type: list[int] = field(default_factory=list)
    ticks_per_s: list[int] = field(default_factory=list)
    offset_ns: list[int] = field(default_factory=list)


def is_pcapng(head: bytes) -> bool:
    """Return whether a file that begins like this is a pcapng."""
    return len(head) >= MIN_BLOCK_BYTES and head[:4] == SECTION.to_bytes(4) and _section_order(head, 0) is not None


def read_pcapng_frames(file: mmap, data: Bytes, notes: list[str]) -> Iterator[Frames]:
    """Yield the frames in chunks; where the file is cut or damaged they end, with a note."""
    section = PcapngSection(_section_order(file, 0) or "<")
    position, num_left_out, starts = 0, 0, list[int]()
    while position + MIN_BLOCK_BYTES <= len(file):
        kind, length = struct.unpack_from(f"{section.order}II", file, position)
        if kind == SECTION:
            yield _frames(data, starts, section, notes)
            section, starts = PcapngSection(_section_order(file, position) or section.order), []
            (length,) = struct.unpack_from(f"{section.order}I", file, position + 4)
        if length < MIN_BLOCK_BYTES:
            notes.append(f"damaged: the block at byte {position} claims {length} bytes; nothing behind it was read")
            position = len(file)
        elif position + length > len(file):
            break
        elif kind == PACKET and length >= MIN_PACKET_BYTES:
            position = _add_packets(file, position, section.order, starts)
            if len(starts) >= CHUNK_FRAMES:
                yield _frames(data, starts, section, notes)
                starts = []
        else:
            if kind == INTERFACE and len(section.link_type) < MAX_INTERFACES:
                _add_interface(bytes(file[position : position + min(length, MAX_OPTION_BYTES)]), section)
            num_left_out += kind in (SIMPLE_PACKET, OBSOLETE_PACKET)
            position += length + -length % 4
    yield _frames(data, starts, section, notes)
    if num_left_out:
        notes.append(f"packets in simple or obsolete blocks, which were left out: {num_left_out}")
    if position < len(file):
        notes.append(f"cut short: the last {len(file) - position} bytes are part of a block")


def _add_packets(file: mmap, position: int, order: str, starts: list[int]) -> int:
    """Add the starts of packet blocks that follow one another, and return where the first other block begins."""
    add, size = starts.append, len(file)
    block_at = struct.Struct(f"{order}II").unpack_from
    for _ in range(CHUNK_FRAMES - len(starts)):
        if position + MIN_PACKET_BYTES > size:
            break
        kind, length = block_at(file, position)
        if kind != PACKET or length < MIN_PACKET_BYTES or position + length > size:
            break
        add(position)
        position += length + -length % 4
    return position


def _frames(data: Bytes, starts: list[int], section: PcapngSection, notes: list[str]) -> Frames:
    """Return the frames of packet blocks; those of damaged blocks and unknown interfaces are noted and left out."""
    start_K = np.array(starts, np.int64)
    blocks = gather(data, start_K, np.dtype([(name, f"{section.order}u4") for name in _PACKET_FIELDS]))
    interface_K, captured_K = blocks["interface"].astype(np.int64), blocks["captured_bytes"].astype(np.int64)
    is_whole_K = (captured_K <= blocks["length"].astype(np.int64) - MIN_PACKET_BYTES) & (captured_K <= MAX_FRAME_BYTES)
    is_good_K = is_whole_K & (interface_K < len(section.link_type))
    if not is_good_K.all():
        found = "packets of an interface that is not described, or longer than their block, which were left out"
        notes.append(f"{found}: {int((~is_good_K).sum())}")
    blocks, interface_K = blocks[is_good_K], interface_K[is_good_K]
    ticks_K = blocks["ticks_high"].astype(np.uint64) << np.uint64(32) | blocks["ticks_low"].astype(np.uint64)
    return Frames(
        position_K=start_K[is_good_K] + PACKET_HEADER_BYTES,
        captured_bytes_K=captured_K[is_good_K],
        time_ns_K=_times_ns(ticks_K, interface_K, section),
        link_type_K=np.array(section.link_type, np.int64)[interface_K],
    )


def _times_ns(ticks_K: NDArray[np.uint64], interface_K: IntArray, section: PcapngSection) -> IntArray:
    """Return times in whole nanoseconds: seconds and the rest apart, so that nothing is rounded on the way."""
    ticks_per_s_K = np.array(section.ticks_per_s, np.uint64)[interface_K]
    seconds_K, rest_K = np.divmod(ticks_K, ticks_per_s_K)
    # The longest unit that keeps rest * 10**9 within 64 bits is 2**34 ticks; a finer clock loses what is below a ns.
    rest_ns_K = np.where(
        ticks_per_s_K <= 2**34,
        rest_K * np.uint64(NS_PER_S) // ticks_per_s_K,
        rest_K // np.maximum(ticks_per_s_K // np.uint64(NS_PER_S), 1),
    )
    total_K = (seconds_K & np.uint64(2**33 - 1)) * np.uint64(NS_PER_S) + rest_ns_K
    return total_K.astype(np.int64) + np.array(section.offset_ns, np.int64)[interface_K]


def _add_interface(block: bytes, section: PcapngSection) -> None:
    """Add the interface that a block describes; options that are damaged end the list of options."""
    link_type, ticks_per_s, offset_s = 0, 10**6, 0
    if len(block) >= 16 + 4:
        (link_type,) = struct.unpack_from(f"{section.order}H", block, 8)
    position = 16
    while position + 4 <= len(block) - 4:
        code, length = struct.unpack_from(f"{section.order}HH", block, position)
        value = block[position + 4 : position + 4 + length]
        if code == 0 or len(value) < length:
            break
        if code == RESOLUTION_OPTION and length == 1:
            ticks_per_s = 2 ** min(value[0] & 0x7F, 62) if value[0] & 0x80 else 10 ** min(value[0], 18)
        if code == OFFSET_OPTION and length == 8:
            (offset_s,) = struct.unpack(f"{section.order}q", value)
        position += 4 + length + -length % 4
    section.link_type.append(link_type)
    section.ticks_per_s.append(ticks_per_s)
    section.offset_ns.append(max(min(offset_s, 2**32), -(2**32)) * NS_PER_S)


def _section_order(data: bytes | mmap, position: int) -> str | None:
    """Return the byte order of the section that begins at `position`, None for what is no section."""
    for order in _ORDERS:
        if struct.unpack_from(f"{order}I", data, position + 8)[0] == BYTE_ORDER_MAGIC:
            return order
    return None
