"""Settings for a wanted survival and a wanted detection."""

import math

from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES
from fabrictune.rdma_bench.timers.selection import choose_settings

SECOND_NS = 10**9
IBTA, CONNECTX_6 = KNOWN_PROFILES["ibta"], KNOWN_PROFILES["connectx-6"]


def test_all_that_satisfy_come_soonest_to_notice_first() -> None:
    """By the standard, for 1 s: T 16, R 4 sends last after 4 * 0.268 = 1.07 s and gives up after 1.34 s; T 15 ends at
    7 * 0.134 = 0.94 s, and larger T give up later.
    """
    assert not choose_settings(IBTA, survive_ns=SECOND_NS, notice_ns=1.3 * SECOND_NS).satisfying
    (best, *others) = choose_settings(IBTA, survive_ns=SECOND_NS, notice_ns=2.2 * SECOND_NS).satisfying
    assert (best.spec.timeout_exponent, best.spec.retries) == (16, 4)
    assert [one.gives_up_ns for one in others] == sorted(one.gives_up_ns for one in others)
    assert all(one.survives(SECOND_NS) and one.gives_up_ns <= 2.2 * SECOND_NS for one in others)


def test_where_none_satisfies_both_the_nearest_of_each_is_named() -> None:
    """A ConnectX-6 cannot survive 30 s and notice within 31 s: its last wait alone is longer than a second."""
    choice = choose_settings(CONNECTX_6, survive_ns=30 * SECOND_NS, notice_ns=31 * SECOND_NS)
    assert not choice.satisfying
    assert choice.soonest_to_notice is not None
    assert choice.soonest_to_notice.survives(30 * SECOND_NS)
    assert choice.longest_to_survive is not None
    assert choice.longest_to_survive.gives_up_ns <= 31 * SECOND_NS


def test_of_those_that_survive_the_soonest_to_notice_is_named() -> None:
    """By the standard that is T 16, R 4 for 1 s, although it gives up too late; for 31 years there is none."""
    soonest = choose_settings(IBTA, survive_ns=SECOND_NS, notice_ns=0).soonest_to_notice
    assert soonest is not None
    assert (soonest.spec.timeout_exponent, soonest.spec.retries) == (16, 4)
    assert choose_settings(IBTA, survive_ns=10**18, notice_ns=0).soonest_to_notice is None


def test_of_those_that_notice_in_time_the_longest_to_survive_is_named() -> None:
    """Within 0.54 s the standard's T 14, R 7 sends last after 7 * 67 = 470 ms, and T 15, R 3 after 3 * 134 = 403."""
    longest = choose_settings(IBTA, survive_ns=SECOND_NS, notice_ns=0.54 * SECOND_NS).longest_to_survive
    assert longest is not None
    assert (longest.spec.timeout_exponent, longest.spec.retries) == (14, 7)


def test_settings_below_the_floor_are_offered_once() -> None:
    """T 1 to 16 are one and the same to a ConnectX-6; 16 says what it is."""
    choice = choose_settings(CONNECTX_6, survive_ns=SECOND_NS, notice_ns=4 * SECOND_NS)
    assert min(one.spec.timeout_exponent for one in choice.satisfying) == 16


def test_without_a_bound_on_noticing_endless_retries_satisfy_too() -> None:
    """Soft RoCE with R 7 survives everything and notices nothing: the last of the list."""
    choice = choose_settings(KNOWN_PROFILES["soft-roce"], survive_ns=SECOND_NS, notice_ns=math.inf)
    assert choice.satisfying[-1].spec.retries == 7
    assert choice.satisfying[-1].gives_up_ns == math.inf


def test_of_settings_that_give_up_together_the_one_that_survives_longer_comes_first() -> None:
    """8 waits of T 14 and 4 of T 15 are 0.54 s; the last sending is after 7 of 8 there, and 3 of 4 here."""
    offers = choose_settings(IBTA, survive_ns=0.1 * SECOND_NS, notice_ns=SECOND_NS).satisfying
    settings = [(offer.spec.timeout_exponent, offer.spec.retries) for offer in offers]
    assert settings.index((14, 7)) + 1 == settings.index((15, 3))
