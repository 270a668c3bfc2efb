"""Limits of steps, from those that have been measured."""

import os
import signal
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fabrictune.foundation.arrays import FloatArray
from fabrictune.foundation.errors import UnavailableError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.trainer_probe.launcher.processes import CONTINUE, STOPPED, launch
from fabrictune.trainer_probe.training.section_timeouts import SectionTimeouts
from tests.patience import patience

if TYPE_CHECKING:
    from fabrictune.collectives.startup.process_groups import Member

LAYOUT = ParallelLayout(dp=3)
STARTUP_TIMEOUT_S = patience(2)


def test_a_limit_follows_from_the_longest_recent_step() -> None:
    """Half an hour before any is known; then ten times the longest, and a minute at least."""
    timeouts = SectionTimeouts()
    assert timeouts.step_s([]) == 1800
    assert timeouts.step_s([0.5, 2.0]) == 60
    assert timeouts.step_s([6.3, 40.0, 6.3]) == 400


def sum_late(member: "Member") -> dict[str, FloatArray]:
    """Sum over all ranks, of which the last comes later than start-up may take."""
    import torch

    from fabrictune.trainer_probe.comm import Comm

    if member.rank == 2:
        time.sleep(STARTUP_TIMEOUT_S + 1)
    total = torch.ones(1)
    Comm(LAYOUT, member).all_reduce(total, axis="dp", tag="late").wait()
    return {"total": total.numpy()}


def test_a_rank_may_be_later_than_start_up_may_take() -> None:
    """In its first step, which compiles; the limit of start-up was that of every later request."""
    pytest.importorskip("torch")
    ranks = launch(LAYOUT, sum_late, startup_timeout_s=STARTUP_TIMEOUT_S, request_timeout_s=patience(60))
    assert [found["total"].tolist() for found in ranks] == [[3.0]] * 3


def stop_in_a_step(member: "Member") -> dict[str, FloatArray]:
    """Stop rank 1 between two sums, of which the second has a limit of its own."""
    import torch

    from fabrictune.trainer_probe.comm import Comm

    comm = Comm(LAYOUT, member)
    comm.all_reduce(torch.ones(1), axis="dp", tag="step0").wait()
    comm.limit_requests(2.0)
    if member.rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    comm.all_reduce(torch.ones(1), axis="dp", tag="step1").wait()
    return {"is_there": np.ones(1)}


def test_a_stopped_rank_is_named_before_those_that_wait_for_it() -> None:
    """Two victims run out of time after two seconds; the error begins with the rank that they wait for."""
    pytest.importorskip("torch")
    with pytest.raises(UnavailableError) as error:
        launch(LAYOUT, stop_in_a_step)
    first, victim, *_ = error.value.mistakes
    assert (first.where, first.found, first.next_step) == ("rank 1", STOPPED, CONTINUE)
    assert victim.where in ("rank 0", "rank 2")
