"""Planted clock errors are corrected to within what is claimed, or refused."""

from dataclasses import replace

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.observability.timeline.activity import Activity, activity_of_spans
from fabrictune.observability.timeline.clock_bounds import GRAIN_NS
from fabrictune.observability.timeline.clocks import align
from tests.observability.timeline.jobs import STEP_NS, TRANSFER_NS, job

PRECISION_NS = 100_000


def issues(activity: Activity) -> np.ndarray:
    """Return when requests were issued, which the same seed gives for the same job."""
    return activity.requests.issue_ns_Q


@pytest.mark.parametrize("seed", range(5))
def test_planted_offsets_are_corrected_to_within_the_claimed_error(seed: int) -> None:
    """Milliseconds off, of which nothing was known: what is left is some transfers' time, and the claim covers it."""
    random = np.random.default_rng(seed)
    ahead = {host: float(random.integers(-5_000_000, 5_000_000)) for host in range(1, 4)}
    aligned, clocks = align(activity_of_spans(job(ahead_ns=ahead, seed=seed)), precision_ns=PRECISION_NS, where="run")
    true = activity_of_spans(job(seed=seed))
    left_ns = np.abs(issues(aligned) - issues(true))
    assert (left_ns <= clocks.error_ns_H[clocks.host_R[aligned.requests.rank_Q]]).all()
    assert clocks.error_ns_H.max() <= 3 * (TRANSFER_NS + 5_000 + GRAIN_NS)  # from a host to its last, by three messages
    assert clocks.num_corrected == 3
    assert not clocks.drift


def test_a_drifting_clock_is_corrected_step_by_step() -> None:
    """2 us lost in each step of 1 ms: 80 us in 40 steps, more than a transfer, so no single correction fits all."""
    drifting = {2: -2e-3}
    aligned, clocks = align(
        activity_of_spans(job(num_steps=40, drift=drifting)), precision_ns=PRECISION_NS, where="run"
    )
    left_ns = np.abs(issues(aligned) - issues(activity_of_spans(job(num_steps=40))))
    assert clocks.drift
    assert left_ns.max() <= clocks.error_ns_H.max() + 2e-3 * STEP_NS
    assert left_ns.max() < 30_000 < 2e-3 * 40 * STEP_NS


def test_clocks_of_one_host_are_left_as_they_are() -> None:
    """There is nothing to align."""
    spans = job(num_hosts=1)
    aligned, clocks = align(activity_of_spans(spans), where="run")
    assert (aligned.requests.issue_ns_Q == spans.issue_ns_N[spans.kind_N == 4]).all()
    assert clocks.error_ns_H.tolist() == [0]


def test_good_clocks_stay_within_what_was_known() -> None:
    """Compared to within 2 us at the start: no correction is more."""
    _, clocks = align(activity_of_spans(job(error_ns=2_000)), where="run")
    assert np.abs(clocks.correction_ns_H).max() <= 2_000
    assert clocks.error_ns_H.max() <= 2_000
    assert clocks.disproved == ()


def test_a_bound_that_the_requests_contradict_is_not_believed() -> None:
    """Within 2 us, it was said; the clock is 3 ms ahead."""
    spans = job(ahead_ns={2: 3e6}, error_ns=2_000)
    _, clocks = align(activity_of_spans(spans), precision_ns=PRECISION_NS, where="run")
    assert clocks.disproved == ("node2",)
    assert abs(clocks.correction_ns_H[2] + 3_000_000) <= clocks.error_ns_H[2]


def test_a_precision_that_the_clocks_do_not_have_is_refused() -> None:
    """What is known is a transfer's time."""
    with pytest.raises(InputError) as error:
        align(activity_of_spans(job(ahead_ns={1: 5e6})), precision_ns=1_000, where="run/spans")
    text = str(error.value)
    assert text.startswith("run/spans: step ")
    assert "is known to within 47.1 us of that of node0" in text
    assert "and the precision asked for is 1 us" in text
    assert "next: --precision 48us" in text


def test_without_a_precision_a_transfer_must_be_longer_than_the_error() -> None:
    """The error given is 200 us, transfers take 20 us, and messages in one direction alone bound nothing better."""
    spans = job(error_ns=200_000)
    one_way = spans.where((spans.group_N != 0) & ~((spans.group_N == 1) & (spans.rank_N > 3)))
    with pytest.raises(InputError, match="the shortest transfer between hosts takes"):
        align(activity_of_spans(one_way), where="run")
    align(activity_of_spans(one_way), precision_ns=200_000, where="run")


def test_clocks_that_nothing_bounds_are_refused() -> None:
    """Work alone, of hosts that were never compared."""
    spans = job()
    with pytest.raises(InputError, match="nothing says what the clock of node1 is off that of node0"):
        align(activity_of_spans(spans.where(spans.kind_N != 4)), precision_ns=10**9, where="run")


def test_spans_that_no_clocks_explain_are_refused() -> None:
    """An all-reduce that ends before a rank of the same host issues it."""
    spans = job()
    end_ns_N = spans.end_ns_N.copy()
    end_ns_N[(spans.group_N == 0) & (spans.rank_N == 0)] -= 600_000
    with pytest.raises(InputError, match="requests that end before others that they need are issued"):
        align(activity_of_spans(replace(spans, end_ns_N=end_ns_N)), where="run")
