"""What a folder or a file is shown as."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.records import RunRecord
from fabrictune.foundation.traces import CommTrace, Dependencies, Operation
from fabrictune.observability.timeline.sources import Selection, read_timeline

ALL = Selection()


def trace() -> CommTrace:
    """Two ranks all-reduce twice; the second rank is later each time, and works before."""
    return CommTrace(
        groups=((0, 1),),
        rank_N=np.array([0, 0, 1, 1]),
        operation_N=np.full(4, Operation.ALL_REDUCE),
        group_N=np.zeros(4, np.int64),
        peer_N=np.full(4, -1),
        bytes_N=np.full(4, 1024),
        compute_before_ps_N=np.array([5_000, 10_000, 9_000, 10_000]),
        step_N=np.array([0, 1, 0, 1]),
        axis_N=("dp",) * 4,
        policy_N=("",) * 4,
        tag_N=("gradients",) * 4,
        dependencies=Dependencies.from_lists([[], [0], [], [2]]),
        issue_ps_N=np.array([5_000, 25_000, 9_000, 25_000]),
        complete_ps_N=np.array([15_000, 36_000, 15_000, 36_000]),
        exposed_wait_ps_N=np.array([10_000, 11_000, 6_000, 11_000]),
    )


def test_a_measured_trace_shows_work_requests_and_waits(tmp_path: Path) -> None:
    """4 pieces of work, 4 waits, 4 requests, and for each all-reduce a mark and what is left of the other's."""
    trace().write(tmp_path / "step.parquet")
    timeline = read_timeline([tmp_path / "step.parquet"], ALL)
    rows = zip(
        timeline.slices.name_N, timeline.slices.start_ns_N.tolist(), timeline.slices.end_ns_N.tolist(), strict=True
    )
    shown = sorted(rows)
    assert [row for row in shown if row[0] == "work"] == [
        ("work", 0, 5),
        ("work", 0, 9),
        ("work", 15, 25),
        ("work", 15, 25),
    ]
    assert ("wait gradients", 9, 15) in shown
    assert ("last to arrive", 9, 9) in shown
    assert ("all are there", 9, 15) in shown
    assert len(timeline.arrows) == 2
    assert timeline.facts["hosts"] == "not in the trace: its ranks are taken to have one clock"


def test_steps_and_ranks_are_chosen(tmp_path: Path) -> None:
    """Step 1 of rank 0: its work, its wait, its request."""
    trace().write(tmp_path / "comm_trace.parquet")
    timeline = read_timeline([tmp_path], Selection(steps=(1, 1), ranks=(0,)))
    assert list(timeline.slices.name_N) == ["work", "wait gradients", "all-reduce gradients"]
    with pytest.raises(InputError, match="steps 0 to 1 of ranks 0 to 1"):
        read_timeline([tmp_path], Selection(steps=(7, 9)))


def test_a_trace_by_clocks_that_differ_is_refused(tmp_path: Path) -> None:
    """Rank 1's clock is 20 us ahead: the all-reduce of rank 0 ends before rank 1 issues its own."""
    ahead = trace()
    shift_ps = np.where(ahead.rank_N == 1, 20_000_000, 0)
    later = replace(ahead, issue_ps_N=ahead.issue_ps_N + shift_ps, complete_ps_N=ahead.complete_ps_N + shift_ps)
    later.write(tmp_path / "step.parquet")
    with pytest.raises(InputError, match="requests that end before others that they need are issued"):
        read_timeline([tmp_path / "step.parquet"], ALL)


def test_a_plan_and_an_empty_folder_are_refused_with_the_next_step(tmp_path: Path) -> None:
    """A planned trace has no times."""
    none = np.zeros(0, np.int64)
    planned = replace(trace(), issue_ps_N=none, complete_ps_N=none, exposed_wait_ps_N=none)
    planned.write(tmp_path / "planned.parquet")
    with pytest.raises(InputError, match="no request with a time"):
        read_timeline([tmp_path / "planned.parquet"], ALL)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="neither spans, nor a communication trace, nor a simulated run"):
        read_timeline([tmp_path / "empty"], ALL)
    with pytest.raises(InputError, match="one folder, or files of a trace"):
        read_timeline([tmp_path / "empty", tmp_path], ALL)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("train plan", "a plan, whose requests have no times"),
        ("validate predict", "a prediction, which has the parts of a step and no requests"),
    ],
)
def test_records_of_steps_to_come_say_how_they_get_times(kind: str, found: str, tmp_path: Path) -> None:
    RunRecord(kind=kind, run={"name": "job"}).write(tmp_path / "record")
    with pytest.raises(InputError, match=found) as caught:
        read_timeline([tmp_path / "record"], ALL)
    assert "simulate that with `fabrictune sim run`, and show its record" in caught.value.mistakes[0].next_step
