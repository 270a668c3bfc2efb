"""Segments of a series: ranges of sizes of which each follows a line of its own.

Times change their line where NCCL changes its protocol or algorithm, and where a NIC no longer inlines. A cut is made
where it makes the times likelier than cuts of a straight line would by chance, for errors relative to the measured
times whose sizes have Laplace's distribution. An error counts at most as some of those between neighbouring sizes, so
that an outlier does not cut. Programs print times with three or four digits: below that no error counts.

Source: Bai and Perron, "Computation and analysis of multiple structural change models", J. Applied Econometrics 18
(2003), for the search, and for critical values by simulation.

Shapes: E points of a series, C places where it may be cut.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fabrictune.foundation.arrays import FloatArray

FEWEST_SIZES = 3  # of a segment
MOST_SEGMENTS = 6
_MOST_POINTS = 4096  # that are looked at, spread evenly over a series
_MOST_PLACES = 64  # where a series is tried to be cut, spread evenly over its sizes
_LEAST_ERROR = 3e-3
_MOST_DEVIATIONS = 4.0  # of an error that counts
FEWEST_CUT = 8  # sizes of a series that is cut
# What the first and every further cut gain by chance in one of 50 straight series with normal errors, of 8 to 64 sizes:
# 98th percentiles of 400 draws, rounded up.
_FIRST_GAIN, _FURTHER_GAIN = 17.0, 12.0


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Points `first` to `end` - 1 of a series."""

    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first


def find_segments(size_bytes: Sequence[int], time_ns: Sequence[float]) -> list[Segment]:
    """Return the segments of a series by rising size, one at least."""
    num_points = len(size_bytes)
    if num_points < FEWEST_CUT:
        return [Segment(first=0, end=num_points)]
    if num_points > _MOST_POINTS:
        step = math.ceil(num_points / _MOST_POINTS)
        coarse = find_segments(size_bytes[::step], time_ns[::step])
        return [Segment(first=one.first * step, end=min(one.end * step, num_points)) for one in coarse]
    places_C = _places(num_points)
    error_CC = _errors(np.array(size_bytes, np.float64), np.array(time_ns, np.float64), places_C)
    best: list[int] = []
    least = math.inf
    for cuts, error in _best_cuts(error_CC, places_C):
        mean = max(error / num_points, _LEAST_ERROR)
        criterion = 2 * num_points * math.log(mean) + _by_chance(len(cuts) - 2)
        if criterion < least:
            best, least = cuts, criterion
    return [Segment(first=first, end=end) for first, end in pairwise(best)]


def _by_chance(num_cuts: int) -> float:
    """Return what so many cuts gain by chance."""
    return _FIRST_GAIN + _FURTHER_GAIN * (num_cuts - 1) if num_cuts else 0.0


def _places(num_points: int) -> list[int]:
    """Return where a segment may begin, and the end of the last one."""
    inner = range(FEWEST_SIZES, num_points - FEWEST_SIZES + 1)
    step = max(1, math.ceil(len(inner) / _MOST_PLACES))
    return [0, *inner[::step], num_points]


def _errors(size_E: FloatArray, time_E: FloatArray, places_C: Sequence[int]) -> FloatArray:
    """Return the sum of relative errors of the line from each place to each other; infinite for too few points."""
    error_CC = np.full((len(places_C), len(places_C)), np.inf)
    most = _MOST_DEVIATIONS * max(_LEAST_ERROR, _deviation(time_E))
    for row, first in enumerate(places_C):
        for column, end in enumerate(places_C[row + 1 :], start=row + 1):
            if end - first >= FEWEST_SIZES:
                error_CC[row, column] = _line_error(size_E[first:end], time_E[first:end], most)
    return error_CC


def _deviation(time_E: FloatArray) -> float:
    """Return the standard deviation of errors by their median: of a logarithm from the mean of its neighbours'."""
    log_E = np.log(time_E)
    difference_E = np.abs(log_E[1:-1] - (log_E[:-2] + log_E[2:]) / 2)
    return float(np.median(difference_E)) / 0.6745 / math.sqrt(1.5)


def _line_error(size_E: FloatArray, time_E: FloatArray, most: float) -> float:
    """Return the sum of relative errors, `most` at most, of the line through points; one that falls is constant."""
    one_E, slope_E = 1 / time_E, size_E / time_E
    a, b, c = one_E @ one_E, one_E @ slope_E, slope_E @ slope_E
    determinant = a * c - b * b
    p, q = one_E.sum(), slope_E.sum()
    alpha, beta = ((c * p - b * q) / determinant, (a * q - b * p) / determinant) if determinant > 0 else (p / a, 0.0)
    if beta < 0:
        alpha, beta = p / a, 0.0
    return float(np.minimum(np.abs(1 - alpha * one_E - beta * slope_E), most).sum())


def _best_cuts(error_CC: FloatArray, places_C: Sequence[int]) -> list[tuple[list[int], float]]:
    """Return for each number of segments the cuts of the least error, ends included, and that error."""
    num_places = len(places_C)
    error_C, previous = error_CC[0], [np.zeros(num_places, int)]
    results = [([0, places_C[-1]], float(error_C[-1]))]
    for _ in range(MOST_SEGMENTS - 1):
        through_CC = error_C[:, None] + error_CC
        previous.append(through_CC.argmin(axis=0))
        error_C = through_CC.min(axis=0)
        if not math.isfinite(error_C[-1]):
            break
        cuts, place = [places_C[-1]], num_places - 1
        for came_from in previous[:0:-1]:
            place = int(came_from[place])
            cuts.append(places_C[place])
        results.append(([0, *cuts[::-1]], float(error_C[-1])))
    return results
