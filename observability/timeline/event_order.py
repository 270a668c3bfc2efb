"""Order of the events of a timeline in its file: by time, and at one time so that a reader nests slices as they lie.

A slice is two events, its begin and its end. Events of one track at one time keep the order in which its slices nest.
The begin that an arrow leads to comes after the one that it leaves; where tracks lead to one another at one instant,
some arrows can not be kept.

Shapes: N slices, E = 2 N events: begins of the slices, then their ends; A arrows.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray
from fabrictune.observability.timeline.timeline import Arrows, Slices

MAX_ROUNDS = 8  # arrows one after another at one instant


@dataclass(frozen=True, kw_only=True)
class EventOrder:
    """Events in the order of the file, and the arrows that it keeps."""

    event_E: IntArray  # slice, or N + slice for its end
    is_kept_A: BoolArray


def order_events(slices: Slices, arrows: Arrows) -> EventOrder:
    """Return the order of a timeline's events."""
    num = len(slices)
    place_E = _places_in_tracks(slices)
    time_E = np.concatenate([slices.start_ns_N, slices.end_ns_N])
    round_E = _rounds(slices, arrows, place_E, time_E)
    event_E = np.lexsort((place_E, round_E, time_E))
    position_E = np.empty(2 * num, np.int64)
    position_E[event_E] = np.arange(2 * num)
    return EventOrder(event_E=event_E, is_kept_A=position_E[arrows.from_A] < position_E[arrows.to_A])


def _places_in_tracks(slices: Slices) -> IntArray:
    """Return a number of each event, ascending along its track as its slices begin, nest and end."""
    num = len(slices)
    order = np.lexsort((-slices.end_ns_N, slices.start_ns_N, slices.track_N))
    track, starts, ends = (column[order].tolist() for column in (slices.track_N, slices.start_ns_N, slices.end_ns_N))
    places, place = [0] * (2 * num), 0
    bounds = np.flatnonzero(np.diff(slices.track_N[order], prepend=-1, append=-1)).tolist() if num else []
    rows = order.tolist()
    for first, last in pairwise(bounds):
        open_slices: list[int] = []
        for at in range(first, last):
            while open_slices and ends[open_slices[-1]] <= starts[at]:
                places[num + rows[open_slices.pop()]] = place
                place += 1
            assert not open_slices or ends[at] <= ends[open_slices[-1]], f"slices of track {track[at]} that overlap"
            places[rows[at]] = place
            place += 1
            open_slices.append(at)
        while open_slices:
            places[num + rows[open_slices.pop()]] = place
            place += 1
    return np.array(places, np.int64)


def _rounds(slices: Slices, arrows: Arrows, place_E: IntArray, time_E: IntArray) -> IntArray:
    """Return the round of each event among those of its time: an arrow's end is a round after its beginning."""
    round_E = np.zeros(len(time_E), np.int64)
    is_instant_A = time_E[arrows.from_A] == time_E[arrows.to_A]
    begin, end = arrows.from_A[is_instant_A], arrows.to_A[is_instant_A]
    if not len(begin):
        return round_E
    track_E = np.concatenate([slices.track_N, slices.track_N])
    order_E = np.lexsort((place_E, time_E, track_E))
    is_first_E = np.ones(len(order_E), bool)
    is_first_E[1:] = (np.diff(track_E[order_E]) != 0) | (np.diff(time_E[order_E]) != 0)
    run_E = np.cumsum(is_first_E) * (MAX_ROUNDS + 1)
    for _ in range(MAX_ROUNDS):
        later = round_E.copy()
        np.maximum.at(later, end, np.minimum(round_E[begin] + 1, MAX_ROUNDS))
        later[order_E] = np.maximum.accumulate(later[order_E] + run_E) - run_E  # what follows in the track and instant
        if (later == round_E).all():
            break
        round_E = later
    return round_E
