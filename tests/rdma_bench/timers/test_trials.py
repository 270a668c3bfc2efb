"""Medians of trials: which trials count for which settings."""

import math

import pytest

from fabrictune.rdma_bench.timers.prediction import RetransmissionSpec
from fabrictune.rdma_bench.timers.trials import (
    FOR_GOOD,
    NONE,
    RETRIES_EXCEEDED,
    SUCCESS,
    TimerTrial,
    median_gives_up_ns,
    median_stall_ns,
)

SPEC = RetransmissionSpec(timeout_exponent=14, retries=7)
OTHER = RetransmissionSpec(timeout_exponent=15, retries=7)


def trial(spec: RetransmissionSpec, cut_ns: int, status: int, after_ns: int) -> TimerTrial:
    """Return a trial."""
    return TimerTrial(spec=spec, cut_ns=cut_ns, status=status, after_ns=after_ns)


def test_statuses_are_those_of_verbs() -> None:
    """IBV_WC_SUCCESS and IBV_WC_RETRY_EXC_ERR of rdma-core's verbs.h."""
    assert (SUCCESS, RETRIES_EXCEEDED) == (0, 12)


def test_records_have_minus_one_for_what_never_came() -> None:
    """A path that stayed away, a status before the limit, retransmissions that no driver counts."""
    assert (FOR_GOOD, NONE) == (-1, -1)
    assert trial(SPEC, FOR_GOOD, NONE, 5).num_retransmissions == -1


def test_giving_up_counts_trials_of_these_settings_without_a_return() -> None:
    """Other settings, a path that came back and another error do not count: 3 is in the middle of 1, 3 and 9."""
    trials = [trial(SPEC, FOR_GOOD, RETRIES_EXCEEDED, after_ns) for after_ns in (1, 9, 3)]
    trials += [
        trial(OTHER, FOR_GOOD, RETRIES_EXCEEDED, 100),
        trial(SPEC, 50, RETRIES_EXCEEDED, 100),
        trial(SPEC, FOR_GOOD, 5, 100),
        trial(SPEC, FOR_GOOD, SUCCESS, 100),
    ]
    assert median_gives_up_ns(trials, SPEC) == 3
    assert math.isnan(median_gives_up_ns(trials[3:], SPEC))


@pytest.mark.parametrize(("cut_ns", "counts"), [(1000, True), (951, True), (949, False), (FOR_GOOD, False)])
def test_a_stall_counts_cuts_of_about_that_length(cut_ns: int, counts: bool) -> None:
    """Within 5 %, and only where traffic went on."""
    trials = [trial(SPEC, cut_ns, SUCCESS, 7), trial(OTHER, 1000, SUCCESS, 8), trial(SPEC, 1000, RETRIES_EXCEEDED, 9)]
    assert (median_stall_ns(trials, SPEC, 1000) == 7) == counts
    assert math.isnan(median_stall_ns(trials, SPEC, 1000)) != counts
