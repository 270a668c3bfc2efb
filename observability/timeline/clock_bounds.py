"""Bounds on the offsets of clocks, from who must have come before whom.

A clock's *correction* is what is added to its times. A request that needs another does not end before that one is
issued, on one clock: `end + correction >= issue + correction'`. Such differences bound the corrections of all clocks
to that of the first, by shortest paths over them. In each window of time corrections are constant, and bounded alone.

Source: R. Bellman, "On a Routing Problem", 1958; difference constraints as in Cormen et al., "Introduction to
Algorithms", 24.4. Bounds on clocks by messages: J. Lundelius, N. Lynch, "An Upper and Lower Bound for Clock
Synchronization", 1984.

Shapes: Q requests, M meetings, E edges, K clocks: one for each window and host, the first of a window its reference.
"""

from dataclasses import dataclass

import numpy as np

from fabrictune.foundation.arrays import BoolArray, IntArray

UNBOUNDED = 2**61
GRAIN_NS = 1_000  # twice what an event of a GPU resolves


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Requests that meet, by the clocks they were timed with."""

    clock_Q: IntArray
    meeting_Q: IntArray
    is_needed_Q: BoolArray
    needs_Q: BoolArray
    issue_ns_Q: IntArray
    end_ns_Q: IntArray
    reference_K: IntArray  # the clock that each is compared with
    num_meetings: int


@dataclass(frozen=True, kw_only=True)
class ClockBounds:
    """The least and greatest correction of each clock; UNBOUNDED where nothing bounds it."""

    low_ns_K: IntArray
    high_ns_K: IntArray
    reference_K: IntArray

    @property
    def is_contradictory_K(self) -> BoolArray:
        """Whether no corrections of a clock's window satisfy all constraints."""
        bad = np.zeros(len(self.low_ns_K), bool)
        np.logical_or.at(bad, self.reference_K, self.low_ns_K > self.high_ns_K)
        return np.asarray(bad[self.reference_K], np.bool_)

    @property
    def is_bounded_K(self) -> BoolArray:
        """Whether a clock is bounded on both sides."""
        return np.asarray((self.low_ns_K > -UNBOUNDED) & (self.high_ns_K < UNBOUNDED), np.bool_)

    @property
    def middle_ns_K(self) -> IntArray:
        """Corrections that satisfy all constraints and are as far from both bounds; 0 where a clock is not bounded."""
        return np.where(self.is_bounded_K, (self.low_ns_K + self.high_ns_K) // 2, 0)


def bound_clocks(constraints: Constraints, error_ns_K: IntArray) -> ClockBounds:
    """Return the bounds of all clocks; `error_ns_K` is a bound on each that is known before, or UNBOUNDED."""
    return ClockBounds(
        low_ns_K=-_distances(constraints, error_ns_K, is_reversed=True),
        high_ns_K=_distances(constraints, error_ns_K, is_reversed=False),
        reference_K=constraints.reference_K,
    )


def _distances(constraints: Constraints, error_ns_K: IntArray, *, is_reversed: bool) -> IntArray:
    """Return the shortest distance from each clock's reference to it, or back; -UNBOUNDED where it has none.

    A path goes from a clock to a meeting at which a request of it ends, and on to the clocks of what that one needs.
    """
    into_Q, out_Q = constraints.needs_Q, constraints.is_needed_Q
    into_ns_Q, out_ns_Q = constraints.end_ns_Q + GRAIN_NS, -constraints.issue_ns_Q
    if is_reversed:
        into_Q, out_Q, into_ns_Q, out_ns_Q = out_Q, into_Q, out_ns_Q, into_ns_Q
    into, out = np.flatnonzero(into_Q), np.flatnonzero(out_Q)
    reference_K = constraints.reference_K
    distance_K = np.full(len(reference_K), UNBOUNDED)
    distance_K[reference_K] = 0
    num_clocks = int(np.bincount(reference_K).max(initial=0))  # of the largest window: no path has more hops
    for _ in range(num_clocks + 1):
        distance_M = np.full(constraints.num_meetings, UNBOUNDED)
        _shorten(distance_M, constraints.meeting_Q[into], distance_K[constraints.clock_Q[into]], into_ns_Q[into])
        after_K = distance_K.copy()
        _shorten(after_K, constraints.clock_Q[out], distance_M[constraints.meeting_Q[out]], out_ns_Q[out])
        _shorten(after_K, np.arange(len(after_K)), after_K[reference_K], error_ns_K)
        _shorten(after_K, reference_K, after_K.copy(), error_ns_K)
        is_shorter_K = after_K < distance_K
        distance_K = after_K
        if not is_shorter_K.any():
            return distance_K
    distance_K[is_shorter_K] = -UNBOUNDED
    return distance_K


def _shorten(distance_ns: IntArray, place_E: IntArray, from_ns_E: IntArray, length_ns_E: IntArray) -> None:
    """Shorten distances at places by edges from where distances are known."""
    is_edge_E = (from_ns_E < UNBOUNDED) & (length_ns_E < UNBOUNDED)
    np.minimum.at(distance_ns, place_E[is_edge_E], from_ns_E[is_edge_E] + length_ns_E[is_edge_E])
