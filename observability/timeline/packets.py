"""Packets of a timeline's events, made a few at a time.

Numbers of tracks in the file: processes from 1 on, then the tracks. Names of slices and of their facts are numbers too,
from 1 on in the order of the timeline.

Shapes: N slices, E events, A arrows, C counter values.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import repeat

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import UNKNOWN
from fabrictune.observability.timeline.event_order import EventOrder
from fabrictune.observability.timeline.messages import double, fixed, message, number, text
from fabrictune.observability.timeline.timeline import Fact, Timeline

BATCH = 2**16  # events that are made at a time

_PACKET = 1
_TIMESTAMP, _SEQUENCE, _EVENT, _FLAGS = 8, 10, 11, 13  # of a packet
_ANNOTATION, _TYPE, _NAME_NUMBER, _TRACK, _NAME, _VALUE, _FLOW, _LAST_FLOW = 4, 9, 10, 11, 23, 44, 47, 48  # of an event
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # types of events
_OF_NAME_NUMBER, _OF_INTEGER, _OF_DOUBLE, _OF_TEXT, _OF_NAME = 1, 4, 5, 6, 10  # of an annotation
_CLEARED, _NEEDED = 1, 2  # flags: names are given anew, names given before are meant
_OWN = number(_SEQUENCE, 1)
_LATER = _OWN + number(_FLAGS, _NEEDED)


def first_packet(content: bytes) -> bytes:
    """Return the packet that gives the names."""
    return message(_PACKET, _OWN + number(_FLAGS, _CLEARED) + content)


def plain_packet(content: bytes) -> bytes:
    """Return a packet without a time."""
    return message(_PACKET, _OWN + content)


def facts_packet(facts: Mapping[str, Fact], *, track: int, name: str) -> bytes:
    """Return an instant at time 0 that has the facts."""
    annotations = b"".join(message(_ANNOTATION, text(_OF_NAME, key) + _fact(value)) for key, value in facts.items())
    event = number(_TYPE, _INSTANT) + number(_TRACK, track) + text(_NAME, name) + annotations
    return message(_PACKET, _OWN + number(_TIMESTAMP, 0) + message(_EVENT, event))


def counter_packets(timeline: Timeline, shift_ns: int) -> Iterator[bytes]:
    """Yield the values of the counters, in time."""
    counters, first = timeline.counters, 1 + len(timeline.processes)
    order_C = np.argsort(counters.time_ns_C, kind="stable")
    for begin in range(0, len(order_C), BATCH):
        rows = order_C[begin : begin + BATCH]
        values = (column[rows].tolist() for column in (counters.track_C, counters.time_ns_C, counters.value_C))
        for track, time_ns, value in zip(*values, strict=True):
            event = number(_TYPE, _COUNTER) + number(_TRACK, first + track) + double(_VALUE, value)
            yield _timed(time_ns + shift_ns, message(_EVENT, event))


def slice_packets(timeline: Timeline, order: EventOrder, shift_ns: int) -> Iterator[bytes]:
    """Yield the beginnings and ends of the slices."""
    slices, first = timeline.slices, 1 + len(timeline.processes)
    tracks = range(first, first + len(timeline.tracks))
    end_of = [message(_EVENT, number(_TYPE, _END) + number(_TRACK, track)) for track in tracks]
    begin_of = [number(_TYPE, _BEGIN) + number(_TRACK, track) for track in tracks]
    name_of = [number(_NAME_NUMBER, place) for place in range(1, len(slices.name_N.vocabulary) + 1)]
    flows = _Flows(timeline, order)
    facts = tuple(slices.facts.values())
    for at in range(0, len(order.event_E), BATCH):
        event_B = order.event_E[at : at + BATCH]
        is_end_B, row_B = event_B >= len(slices), event_B % len(slices)
        time_ns_B = np.where(is_end_B, slices.end_ns_N[row_B], slices.start_ns_N[row_B]) + shift_ns
        columns = (row_B, is_end_B, time_ns_B, slices.track_N[row_B], slices.name_N.place_N[row_B])
        values_B = zip(*(column[row_B].tolist() for column in facts), strict=True) if facts else repeat(())
        for row, is_end, time_ns, track, name, values in zip(
            *(column.tolist() for column in columns), values_B, strict=False
        ):
            if is_end:
                yield _timed(time_ns, end_of[track])
                continue
            event = begin_of[track] + name_of[name] + flows.of(row)
            for place, value in enumerate(values, 1):
                if value != UNKNOWN:
                    event += _annotation(place, value)
            yield _timed(time_ns, message(_EVENT, event))


@lru_cache(maxsize=BATCH)
def _annotation(name: int, value: int) -> bytes:
    """Return a fact of a slice."""
    return message(_ANNOTATION, number(_OF_NAME_NUMBER, name) + number(_OF_INTEGER, value))


class _Flows:
    """The ends of arrows at each slice, as fields of its beginning."""

    def __init__(self, timeline: Timeline, order: EventOrder) -> None:
        kept_A = np.flatnonzero(order.is_kept_A)
        num_slices = len(timeline.slices)
        self._out = _rows_by(timeline.arrows.from_A[kept_A], num_slices)
        self._in = _rows_by(timeline.arrows.to_A[kept_A], num_slices)
        self._has_any = np.zeros(num_slices, bool)
        for ends_A in (timeline.arrows.from_A, timeline.arrows.to_A):
            self._has_any[ends_A[kept_A]] = True

    def of(self, row: int) -> bytes:
        if not self._has_any[row]:
            return b""
        fields = ((_FLOW, self._out), (_LAST_FLOW, self._in))
        return b"".join(
            fixed(field, arrow + 1)
            for field, (first_N1, arrow_A) in fields
            for arrow in arrow_A[first_N1[row] : first_N1[row + 1]].tolist()
        )


def _rows_by(row_A: IntArray, num_rows: int) -> tuple[IntArray, IntArray]:
    """Return the arrows of each slice, in compressed rows."""
    first_N1 = np.zeros(num_rows + 1, np.int64)
    np.cumsum(np.bincount(row_A, minlength=num_rows), out=first_N1[1:])
    return first_N1, np.argsort(row_A, kind="stable")


def _timed(time_ns: int, content: bytes) -> bytes:
    return message(_PACKET, number(_TIMESTAMP, time_ns) + _LATER + content)


def _fact(value: Fact) -> bytes:
    if isinstance(value, str):
        return text(_OF_TEXT, value)
    return double(_OF_DOUBLE, value) if isinstance(value, float) else number(_OF_INTEGER, value)
