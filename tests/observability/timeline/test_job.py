"""Timelines of jobs: tracks, what waited for what, and what is not known."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from fabrictune.foundation.spans import Spans
from fabrictune.foundation.traces import Operation
from fabrictune.observability.timeline.activity import activity_of_spans
from fabrictune.observability.timeline.clocks import align
from fabrictune.observability.timeline.job import NOT_WHOLE, UNCERTAIN, StepSeries, job_timeline
from fabrictune.observability.timeline.perfetto import write_perfetto
from fabrictune.observability.timeline.timeline import Timeline
from tests.observability.timeline.jobs import job
from tests.observability.timeline.trace_processor import TraceProcessor

STARTS = """
    select flow.slice_out as o, flow.slice_in as i, a.name as out_name, b.name as in_name, a.ts as out_ts, b.ts as in_ts
    from flow join slice a on flow.slice_out = a.id join slice b on flow.slice_in = b.id
"""


def drawn(spans: Spans, *, precision_ns: int = 100_000) -> Timeline:
    """Return the timeline of spans."""
    aligned, clocks = align(activity_of_spans(spans), precision_ns=precision_ns, where="run")
    return job_timeline(aligned, clocks, facts={}, series=[StepSeries(name="MFU", unit="%", value_of_step={1: 40.0})])


def test_every_waiting_rank_is_led_to_by_the_last_to_arrive(processor: TraceProcessor, tmp_path: Path) -> None:
    """8 ranks, 3 steps: 7 arrows an all-reduce, 8 a round of messages, and none leads back in time."""
    write_perfetto(drawn(job(error_ns=0)), tmp_path / "job.pftrace")
    trace = processor.load(tmp_path / "job.pftrace")
    assert trace.query(f"select out_name, in_name, count(*) from ({STARTS}) group by 1, 2 order by 1") == [
        ("last to arrive", "all are there", 21),
        ("sent", "all are there", 24),
    ]
    assert trace.query(f"select count(*) from ({STARTS}) where in_ts < out_ts") == [(0,)]
    assert trace.query("select name, value from stats where severity != 'info' and value != 0") == []


def test_the_last_to_arrive_is_the_rank_that_issued_last(processor: TraceProcessor, tmp_path: Path) -> None:
    """Worked out from the spans themselves."""
    spans = job(error_ns=0, num_steps=1)
    is_reduce_N = spans.operation_N == Operation.ALL_REDUCE
    last = int(spans.rank_N[is_reduce_N][np.argmax(spans.issue_ns_N[is_reduce_N])])
    write_perfetto(drawn(spans), tmp_path / "job.pftrace")
    trace = processor.load(tmp_path / "job.pftrace")
    assert trace.query(
        "select thread.name, thread_track.name from slice join thread_track on track_id = thread_track.id "
        "join thread using (utid) where slice.name = 'last to arrive'"
    ) == [(f"rank {last}", "dp")]


def test_ranks_have_their_host_their_work_and_a_track_for_each_axis(processor: TraceProcessor, tmp_path: Path) -> None:
    """Rank 3 is of node1; dp and pp requests never share a track."""
    write_perfetto(drawn(job(error_ns=0)), tmp_path / "job.pftrace")
    trace = processor.load(tmp_path / "job.pftrace")
    tracks = trace.query(
        "select process.name, thread_track.name, group_concat(distinct slice.name order by slice.name) from slice "
        "join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid) "
        "where thread.name = 'rank 3' and depth = 0 group by 1, 2 order by 2"
    )
    assert tracks == [
        ("node1", None, "forward 0,wait gradients"),
        ("node1", "dp", "all-reduce gradients"),
        ("node1", "pp", "receive gradients"),
        ("node1", "pp 2", "send gradients"),
    ]
    assert trace.query("select ts >= 1000000, value from counter") == [(1, 40.0)]


def test_an_order_that_the_clocks_leave_open_is_not_drawn() -> None:
    """Clocks within 60 us of one another: who of two hosts came last by 30 us is not known, and counted."""
    timeline = drawn(job(error_ns=60_000), precision_ns=100_000)
    assert timeline.facts[UNCERTAIN] == 3
    assert drawn(job(error_ns=0)).facts[UNCERTAIN] == 0


def test_a_collective_whose_members_are_not_all_here_has_no_last() -> None:
    """Four of eight ranks are shown: of 3 all-reduces half the members, of 24 messages those across the border."""
    activity = activity_of_spans(job(error_ns=0)).of_ranks(range(4))
    aligned, clocks = align(activity, precision_ns=100_000, where="run")
    timeline = job_timeline(aligned, clocks, facts={})
    assert timeline.facts[NOT_WHOLE] == 3 + 12
    assert len(timeline.arrows) == 6


def test_a_request_that_never_ended_is_shown_where_it_was_issued(processor: TraceProcessor, tmp_path: Path) -> None:
    """A hang's last request, and the wait for it that has no end."""
    spans = job(error_ns=0, num_steps=1)
    is_hung_N = (spans.operation_N == Operation.ALL_REDUCE) & (spans.rank_N == 5)
    hung = replace(spans, end_ns_N=np.where(is_hung_N, -1, spans.end_ns_N))
    timeline = drawn(hung)
    assert timeline.facts["requests without an end, drawn where they were issued"] == 1
    write_perfetto(timeline, tmp_path / "job.pftrace")
    trace = processor.load(tmp_path / "job.pftrace")
    assert trace.query("select dur, count(*) from slice where name = 'all-reduce gradients' group by 1 order by 1")[
        0
    ] == (0, 1)


def test_facts_say_how_far_clocks_were_off() -> None:
    """Of each host that was corrected, and beside its name."""
    timeline = drawn(job(ahead_ns={1: 3e6}))
    assert "corrected by -2991273" in str(timeline.facts["clock of node1, ns"])
    assert timeline.facts["clocks corrected"] == 3
    assert timeline.processes[1].labels[0].startswith("clock within ")
