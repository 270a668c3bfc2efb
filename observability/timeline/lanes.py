"""Lanes: slices of one track that overlap without lying in one another are spread over several tracks.

Shapes: N slices.
"""

from heapq import heappop, heappush

import numpy as np

from fabrictune.foundation.arrays import IntArray


def lanes(key_N: IntArray, start_ns_N: IntArray, end_ns_N: IntArray, *, may_nest: bool) -> IntArray:
    """Return the lane of each slice among those of its key, 0 first; the fewest where none may nest.

    Slices of a lane lie apart, or, with `may_nest`, in one another.
    """
    lane_N = np.zeros(len(key_N), np.int64)
    order_N = np.lexsort((-end_ns_N, start_ns_N, key_N))
    place = _nested if may_nest else _apart
    for rows in np.split(order_N, np.flatnonzero(np.diff(key_N[order_N])) + 1):
        if len(rows):
            lane_N[rows] = place(start_ns_N[rows].tolist(), end_ns_N[rows].tolist())
    return lane_N


def _apart(starts: list[int], ends: list[int]) -> list[int]:
    """Return the lane of each slice: the lowest that is free, by start."""
    busy: list[tuple[int, int]] = []  # end and lane
    free: list[int] = []
    found, num_lanes = [], 0
    for start, end in zip(starts, ends, strict=True):
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        if not free:
            heappush(free, num_lanes)
            num_lanes += 1
        lane = heappop(free)
        heappush(busy, (end, lane))
        found.append(lane)
    return found


def _nested(starts: list[int], ends: list[int]) -> list[int]:
    """Return the lane of each slice: the first whose innermost open slice has it within, or is none."""
    open_ends: list[list[int]] = []  # of each lane, outermost first
    found = []
    for start, end in zip(starts, ends, strict=True):
        for stack in open_ends:
            while stack and stack[-1] <= start:
                stack.pop()
        fitting = (lane for lane, stack in enumerate(open_ends) if not stack or end <= stack[-1])
        lane = next(fitting, len(open_ends))
        if lane == len(open_ends):
            open_ends.append([])
        open_ends[lane].append(end)
        found.append(lane)
    return found
