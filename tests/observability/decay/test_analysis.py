"""Decay: a trend in the step, and the one part of it that grows."""

import numpy as np
import pytest

from benchmarks.studies.planted_stragglers.jobs import MS, Disturbance, JobSize, simulate
from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.spans import SpanKind
from fabrictune.observability.decay.analysis import Decay, decay_of
from fabrictune.observability.decay.comparison import MORE_STEPS, compare
from fabrictune.observability.decay.parts import GARBAGE, LOADING, SKEW, WORK, step_parts
from fabrictune.observability.decay.record import make_decay_record

SIZE = JobSize(dp=4, pp=2, num_batches=2, num_steps=60)
PROGRESS_S = np.arange(SIZE.num_steps) / SIZE.num_steps


def disturbed(cause: str) -> Disturbance:
    faults, random = Disturbance.none(SIZE), np.random.default_rng(3)
    if cause == GARBAGE:
        is_stalled = random.random(faults.collection_SDP.shape) < 0.2 * PROGRESS_S[:, None, None]
        faults.collection_SDP[is_stalled] = 25 * MS
    if cause == SKEW:
        faults.delay_SDP = 20 * MS * PROGRESS_S[:, None, None] * random.random(faults.delay_SDP.shape)
    if cause == LOADING:
        faults.loading_SDP = np.broadcast_to(12 * MS * PROGRESS_S[:, None, None], faults.loading_SDP.shape)
    if cause == WORK:
        faults.work_SDP[:, 3, 1] = 1 + 0.4 * PROGRESS_S
    return faults


def decay(cause: str) -> Decay:
    return decay_of(simulate(SIZE, disturbed(cause), seed=1))


def test_a_steady_job_has_no_decay() -> None:
    found = decay("")
    assert not found.is_trend
    assert make_decay_record(found, None, name="job", other="", num_dropped=0, started=0.0).findings == ()


@pytest.mark.parametrize("cause", [GARBAGE, SKEW, LOADING, WORK])
def test_what_was_planted_is_the_only_cause(cause: str) -> None:
    found = decay(cause)
    assert found.is_trend
    assert [part.part for part in found.causes] == [cause]


def test_ranks_whose_work_slows_are_named() -> None:
    """Rank 7 is replica 3 of stage 1, and ends 40 % slower, as a processor does that throttles."""
    found = decay(WORK)
    assert found.causes[0].ranks == (7,)
    (finding,) = make_decay_record(found, None, name="job", other="", num_dropped=0, started=0.0).findings
    grown, mfu = f"{found.growth_fraction:.1%}", f"{found.mfu_change_fraction:.1%}"
    part = found.causes[0]
    assert finding.actual == (
        f"{grown} longer at the end, MFU {mfu}: work on rank 7 grows by {part.growth_ns / 1e6:.3g} ms "
        f"({part.share:.0%} of the growth)"
    )


def test_too_few_steps_are_refused() -> None:
    spans = simulate(SIZE, disturbed(""), seed=1)
    with pytest.raises(TraceError, match="8 steps that all ranks have whole"):
        decay_of(spans.where(spans.step_N < 9))


def test_a_longer_time_to_a_loss_is_laid_to_steps_and_to_parts_of_them() -> None:
    """Loading takes more of each step, and the loss falls half as fast: both are told, and sum to the whole."""
    # means of ten: 5 - 0.05 (59 - 4.5) = 2.275 is the first run's last, which the second reaches at 4.5 + 27.25 steps
    own = step_parts(simulate(SIZE, disturbed(LOADING), seed=1))
    other = step_parts(simulate(SIZE, disturbed(""), seed=1))
    steps_S = np.arange(60.0)
    found = compare(own, other, 5 - 0.05 * steps_S, 5 - 0.1 * steps_S)
    assert (found.own_steps, found.other_steps) == (60, 33)
    assert found.differences[0].part == MORE_STEPS
    assert found.differences[1].part == LOADING
    total_ns = sum(difference.change_ns for difference in found.differences)
    assert total_ns == pytest.approx(found.own_ns - found.other_ns)


def test_runs_without_losses_are_compared_over_the_steps_that_both_have() -> None:
    parts = step_parts(simulate(SIZE, disturbed(""), seed=1))
    found = compare(parts, parts, np.zeros(0), np.zeros(0))
    assert (found.loss, found.own_steps, found.other_steps) == (None, 59, 59)
    assert all(difference.change_ns == 0 for difference in found.differences)


def test_a_job_without_requests_has_no_skew() -> None:
    """As one rank alone."""
    spans = simulate(SIZE, Disturbance.none(SIZE), 0)
    found = decay_of(spans.where(spans.kind_N != SpanKind.REQUEST))
    assert not found.parts.part_ns[SKEW].any()
