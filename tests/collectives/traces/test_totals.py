"""Totals of a trace and of the templates it could be written as."""

import numpy as np

from fabrictune.collectives.jobs import collective_step
from fabrictune.collectives.traces.totals import Totals
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.traces import CommTrace, Dependencies, Operation

LAYOUT = ParallelLayout(tp=2, dp=4)


def test_templates_count_for_all_their_instances() -> None:
    """One all-reduce in each of two groups of four: eight requests, written out or as one rank's."""
    whole = collective_step(LAYOUT, 100)
    template = CommTrace(
        groups=((0, 2, 4, 6),),
        rank_N=np.array([0]),
        operation_N=np.array([Operation.ALL_REDUCE]),
        group_N=np.array([0]),
        peer_N=np.array([-1]),
        bytes_N=np.array([100]),
        compute_before_ps_N=np.array([0]),
        step_N=np.array([0]),
        axis_N=("dp",),
        policy_N=("none",),
        tag_N=("gradients",),
        dependencies=Dependencies.none(1),
    )
    job = JobTrace.of_places(LAYOUT, [template])
    assert Totals.of(job) == Totals.of(whole)
    assert Totals.of(job) == Totals(
        num_ranks=8,
        num_groups=2,
        num_requests={Operation.ALL_REDUCE: 8},
        num_bytes={Operation.ALL_REDUCE: 800},
    )
