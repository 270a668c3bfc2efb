"""Bounds of clocks, with the differences worked out by hand."""

import numpy as np

from fabrictune.observability.timeline.clock_bounds import GRAIN_NS, UNBOUNDED, Constraints, bound_clocks


def messages(*rows: tuple[int, int, int, int], num_clocks: int = 2) -> Constraints:
    """Return messages as (sender's clock, receiver's clock, sent, received), in microseconds."""
    sender, receiver, sent_us, received_us = np.array(rows).T
    number = np.arange(len(rows))
    is_send = np.repeat([True, False], len(rows))
    times_ns = np.concatenate([sent_us, received_us]) * 1000
    return Constraints(
        clock_Q=np.concatenate([sender, receiver]),
        meeting_Q=np.concatenate([number, number]),
        is_needed_Q=is_send,
        needs_Q=~is_send,
        issue_ns_Q=times_ns,
        end_ns_Q=times_ns,
        reference_K=np.zeros(num_clocks, np.int64),
        num_meetings=len(rows),
    )


UNKNOWN_ERRORS = np.array([0, UNBOUNDED])


def test_messages_both_ways_bound_a_clock_by_their_durations() -> None:
    """Clock 1 is 100 us ahead; messages of 10 and 30 us: its correction is in [-110, -70] - a grain on both sides."""
    bounds = bound_clocks(messages((0, 1, 0, 110), (1, 0, 200, 130)), UNKNOWN_ERRORS)
    assert bounds.low_ns_K.tolist() == [0, -110_000 - GRAIN_NS]
    assert bounds.high_ns_K.tolist() == [0, -70_000 + GRAIN_NS]
    assert bounds.middle_ns_K.tolist() == [0, -90_000]


def test_messages_one_way_bound_a_clock_on_one_side() -> None:
    """Nobody knows how long they took."""
    bounds = bound_clocks(messages((0, 1, 0, 110)), UNKNOWN_ERRORS)
    assert not bounds.is_bounded_K[1]
    assert bounds.middle_ns_K.tolist() == [0, 0]


def test_what_was_known_before_bounds_a_clock_too() -> None:
    """10 us by messages above, 3 us by the start-up."""
    bounds = bound_clocks(messages((0, 1, 0, 10)), np.array([0, 3000]))
    assert (bounds.low_ns_K[1], bounds.high_ns_K[1]) == (-3000, 3000)


def test_a_clock_is_bounded_through_another() -> None:
    """0 and 2 never meet: 5 + 7 us one way, 5 + 7 us back."""
    both_ways = messages((0, 1, 0, 5), (1, 0, 0, 5), (1, 2, 0, 7), (2, 1, 0, 7), num_clocks=3)
    bounds = bound_clocks(both_ways, np.array([0, UNBOUNDED, UNBOUNDED]))
    assert bounds.high_ns_K.tolist() == [0, 5_000 + GRAIN_NS, 12_000 + 2 * GRAIN_NS]


def test_messages_that_no_correction_satisfies_are_a_contradiction() -> None:
    """Both arrive 20 us before they are sent: clock 1 is ahead and behind. So are two that the first does not meet."""
    assert bound_clocks(messages((0, 1, 20, 0), (1, 0, 20, 0)), UNKNOWN_ERRORS).is_contradictory_K.all()
    apart = messages((1, 2, 20, 0), (2, 1, 20, 0), (0, 1, 0, 900), (1, 0, 0, 900), num_clocks=3)
    assert bound_clocks(apart, np.array([0, UNBOUNDED, UNBOUNDED])).is_contradictory_K.all()


def test_a_bound_that_the_messages_disprove_is_a_contradiction() -> None:
    """Within 3 us, it was said; the messages say 90 us."""
    assert bound_clocks(messages((0, 1, 0, 110), (1, 0, 200, 130)), np.array([0, 3000])).is_contradictory_K.all()
