"""Perfetto traces: a timeline as the packets that ui.perfetto.dev and its trace processor read.

Packets go out as they are made, so that memory is that of the timeline. Times are the timeline's, moved by the fact
`shift_ns` where some lie before zero.

Source: perfetto.dev, "Writing TrackEvent protos synthetically"; trace_packet.proto, track_event.proto,
track_descriptor.proto and debug_annotation.proto of Perfetto.
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from fabrictune.foundation.output_files import replaced_file
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.foundation.visible_text import printable
from fabrictune.observability.timeline.event_order import order_events
from fabrictune.observability.timeline.messages import message, number, text
from fabrictune.observability.timeline.packets import (
    counter_packets,
    facts_packet,
    first_packet,
    plain_packet,
    slice_packets,
)
from fabrictune.observability.timeline.timeline import Fact, Process, Timeline, Track

FIRST_PROCESS = 1_000_001  # above all threads, whose numbers Perfetto has in one space with processes
FACTS = "about this timeline"
UNORDERED = "arrows left out, that do not lead from before to after"
MAX_NAME = 300  # characters
BUFFER_BYTES = 2**20

_DESCRIPTOR, _INTERNED = 60, 12  # of a packet
_EVENT_NAMES, _ANNOTATION_NAMES = 2, 3  # of names
_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER, _MERGE = 1, 2, 3, 4, 5, 8, 15  # of a descriptor
_NO_MERGE = 2
_PID, _TID, _THREAD_NAME, _PROCESS_NAME, _LABELS, _UNIT = 1, 2, 5, 6, 8, 6  # of its parts


def write_perfetto(timeline: Timeline, path: Path) -> Mapping[str, Fact]:
    """Write a timeline as `path`, compressed where that ends in `.gz`; returns the facts that the file states.

    Raises InputError where nothing can be written.
    """
    with replaced_file(path) as half, _opened(half, is_compressed=path.suffix == ".gz") as file:
        return write_packets(timeline, file)


def write_packets(timeline: Timeline, file: BinaryIO) -> Mapping[str, Fact]:
    """Write a timeline's packets; returns the facts that they state."""
    order = order_events(timeline.slices, timeline.arrows)
    facts = dict(timeline.facts)
    if num_left_out := len(timeline.arrows) - int(order.is_kept_A.sum()):
        facts[UNORDERED] = num_left_out
    times_ns = (timeline.slices.start_ns_N, timeline.counters.time_ns_C)
    shift_ns = -min(int(column.min(initial=0)) for column in times_ns)
    if shift_ns:
        facts["shift_ns"] = shift_ns
    file.write(first_packet(message(_INTERNED, _names(timeline))))
    for descriptor in _descriptors(timeline):
        file.write(plain_packet(message(_DESCRIPTOR, descriptor)))
    file.write(facts_packet(facts, track=_facts_track(timeline), name=FACTS))
    file.writelines(counter_packets(timeline, shift_ns))
    file.writelines(slice_packets(timeline, order, shift_ns))
    return facts


@contextmanager
def _opened(path: Path, *, is_compressed: bool) -> Iterator[BinaryIO]:
    """Open a file to write; the same bytes give the same compressed file."""
    with path.open("wb", buffering=BUFFER_BYTES) as file:
        if not is_compressed:
            yield file
            return
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as compressed:
            yield cast("BinaryIO", compressed)


def _names(timeline: Timeline) -> bytes:
    """Return the names of slices, and of their facts, with their numbers."""
    slices = timeline.slices
    return _numbered(_EVENT_NAMES, slices.name_N.vocabulary) + _numbered(_ANNOTATION_NAMES, slices.facts)


def _numbered(field: int, names: Iterable[str]) -> bytes:
    return b"".join(message(field, number(1, place) + _text(2, name)) for place, name in enumerate(names, 1))


def _descriptors(timeline: Timeline) -> Iterator[bytes]:
    """Yield the processes, the tracks, and the track of the facts."""
    for place, process in enumerate(timeline.processes):
        yield number(_UUID, 1 + place) + message(_PROCESS, _process(process, FIRST_PROCESS + place))
    first = 1 + len(timeline.processes)
    for place, track in enumerate(timeline.tracks):
        yield number(_UUID, first + place) + _track(track, first)
    yield number(_UUID, _facts_track(timeline)) + text(_NAME, FACTS)


def _process(process: Process, pid: int) -> bytes:
    labels = b"".join(_text(_LABELS, label) for label in process.labels)
    return number(_PID, pid) + _text(_PROCESS_NAME, process.name) + labels


def _track(track: Track, first: int) -> bytes:
    if track.thread != UNKNOWN:
        thread = number(_PID, FIRST_PROCESS + track.process) + number(_TID, 1 + track.thread)
        return message(_THREAD, thread + _text(_THREAD_NAME, track.name))
    parent = 1 + track.process if track.parent == UNKNOWN else first + track.parent
    head = number(_PARENT, parent) + _text(_NAME, track.name)
    if track.is_counter:
        return head + message(_COUNTER, _text(_UNIT, track.unit))
    return head + number(_MERGE, _NO_MERGE)


def _facts_track(timeline: Timeline) -> int:
    return 1 + len(timeline.processes) + len(timeline.tracks)


def _text(field: int, value: str) -> bytes:
    """Return a field of text that may be others': one line, without what a reader would obey."""
    return text(field, printable(value.replace("\n", " "))[:MAX_NAME])
