"""Reader of the flows of a capture file, which is mapped, not read, and decoded in chunks.

A file that ends in the middle of a packet gives the packets before it, and a note; so does one that is damaged.

Left out: compressed captures, which are to be unpacked first.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from mmap import ACCESS_READ, MADV_DONTNEED, MADV_SEQUENTIAL, mmap
from pathlib import Path

import numpy as np

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.flows import ObservedFlows
from fabrictune.foundation.foreign_files import open_foreign
from fabrictune.rdma_bench.captures import pcap, pcapng
from fabrictune.rdma_bench.captures.flow_table import CaptureFlows, FlowTable
from fabrictune.rdma_bench.captures.frames import Bytes, Frames
from fabrictune.rdma_bench.captures.packets import FrameCounts, decode

HEAD_BYTES = 24
MAX_FILE_BYTES = 2**40
GZIP_MAGIC = b"\x1f\x8b"

ReadFrames = Callable[[mmap, Bytes, list[str]], Iterator[Frames]]


@dataclass(frozen=True)
class Container:
    """A file format for frames."""

    recognises: Callable[[bytes], bool]
    read_frames: ReadFrames


CONTAINERS: Mapping[str, Container] = {
    "pcap": Container(pcap.is_pcap, pcap.read_pcap_frames),
    "pcapng": Container(pcapng.is_pcapng, pcapng.read_pcapng_frames),
}


@dataclass(frozen=True, kw_only=True)
class Capture:
    """Contents of a capture file."""

    path: Path
    flows: CaptureFlows
    counts: FrameCounts
    notes: tuple[str, ...]  # what was cut, damaged or left out

    def observed(self) -> ObservedFlows:
        """Return its flows in the form that all readers share."""
        return self.flows.observed(str(self.path), self.notes)


def is_capture(path: Path) -> bool:
    """Return whether a file begins like a capture."""
    head = _read_head(path)
    return any(container.recognises(head) for container in CONTAINERS.values())


def read_capture(path: Path) -> Capture:
    """Read a capture file; raises InputError for what is none."""
    head = _read_head(path)
    container = next((one for one in CONTAINERS.values() if one.recognises(head)), None)
    if container is None:
        is_packed = head.startswith(GZIP_MAGIC)
        raise InputError(
            Mistake(
                where=str(path),
                found="a compressed file" if is_packed else "no capture: it begins with none of their magic numbers",
                allowed=", ".join(CONTAINERS),
                next_step="unpack it with gunzip" if is_packed else "",
            )
        )
    table, counts, notes = FlowTable(), FrameCounts(), list[str]()
    with open_foreign(path, max_bytes=MAX_FILE_BYTES) as file:
        mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
    mapped.madvise(MADV_SEQUENTIAL)
    data = np.frombuffer(mapped, np.uint8)
    for frames in container.read_frames(mapped, data, notes):
        packets, chunk_counts = decode(data, frames)
        counts.add(chunk_counts)
        table.add(packets)
        mapped.madvise(MADV_DONTNEED)  # or the whole file would come to count as this process's memory
    notes.extend(_notes_on(counts))
    return Capture(
        path=path, flows=table.finish(), counts=counts, notes=tuple(f"{path}: {note}" for note in _folded(notes))
    )


def _read_head(path: Path) -> bytes:
    with open_foreign(path, max_bytes=MAX_FILE_BYTES) as file:
        return file.read(HEAD_BYTES)


def _notes_on(counts: FrameCounts) -> Iterator[str]:
    if counts.too_short:
        yield (
            f"RoCEv2 packets cut before the end of their headers: {counts.too_short} of "
            f"{counts.roce + counts.too_short}; capture 64 bytes of each or more"
        )
    unread = (
        (counts.unknown_link, "frames of a link type that is not read"),
        (counts.roce_v1, "frames of RoCEv1, which has no IP addresses and is not read"),
        (counts.roce_over_ipv6, "packets of RoCEv2 over IPv6, which are not read"),
        (counts.fragments, "fragments of datagrams to RoCEv2's port, which are not read"),
        (counts.vxlan, "packets of VXLAN, which are not looked into"),
    )
    for count, what in unread:
        if count:
            yield f"{what}: {count} of {counts.frames}"


def _folded(notes: Sequence[str]) -> Iterator[str]:
    """Yield each note once; those that end in a count are summed over the chunks."""
    totals: dict[str, int] = {}
    for note in notes:
        text, _, count = note.rpartition(": ")
        if count.isdigit() and text:
            totals[text] = totals.get(text, 0) + int(count)
        else:
            yield note
    yield from (f"{text}: {total}" for text, total in totals.items())
