"""Perfetto files, as Perfetto's own trace processor reads them."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.texts import Texts
from fabrictune.observability.timeline.perfetto import write_perfetto
from fabrictune.observability.timeline.timeline import Arrows, Counters, Process, Slices, Timeline, Track
from tests.observability.timeline.trace_processor import TraceProcessor


def small() -> Timeline:
    """Two hosts with a rank each; the second receives what the first sends at the instant it is sent."""
    return Timeline(
        processes=(Process(name="node0"), Process(name="node1", labels=("clock within 3 us",))),
        tracks=(
            Track(process=0, name="rank 0", thread=0),
            Track(process=1, name="rank 1", thread=1),
            Track(process=1, name="dp", parent=1),
            Track(process=1, name="MFU", is_counter=True, unit="%"),
        ),
        slices=Slices(
            track_N=np.array([2, 2, 0, 0, 1]),
            name_N=Texts.of(("receive", "arriving", "step", "send", "step")),
            start_ns_N=np.array([10, 2**53 + 1, 0, 2**53 + 1, 0]),
            end_ns_N=np.array([2**53 + 5, 2**53 + 5, 2**53 + 3, 2**53 + 1, 2**53 + 3]),
            facts={"bytes": np.array([4096, -1, -1, 4096, -1])},
        ),
        arrows=Arrows(from_A=np.array([3]), to_A=np.array([1])),
        counters=Counters(track_C=np.array([3]), time_ns_C=np.array([7]), value_C=np.array([41.5])),
        facts={"source": "runs/tiny", "spans left out": 0, "clock error, at most, ns": 3000},
    )


@pytest.mark.parametrize("name", ["trace.pftrace", "trace.pftrace.gz"])
def test_perfetto_reads_times_to_the_nanosecond(processor: TraceProcessor, tmp_path: Path, name: str) -> None:
    """2^53 + 1 ns is no whole number of a double's microseconds."""
    write_perfetto(small(), tmp_path / name)
    trace = processor.load(tmp_path / name)
    assert trace.query("select name, ts, dur, depth from slice where name != 'about this timeline' order by id") == [
        ("step", 0, 2**53 + 3, 0),
        ("step", 0, 2**53 + 3, 0),
        ("receive", 10, 2**53 - 5, 0),
        ("send", 2**53 + 1, 0, 1),
        ("arriving", 2**53 + 1, 4, 1),
    ]
    assert trace.query("select name, value from stats where severity in ('error', 'data_loss') and value != 0") == []


def test_tracks_arrows_counters_and_facts_answer_sql(processor: TraceProcessor, tmp_path: Path) -> None:
    """Processes are hosts, threads ranks; an arrow of one instant goes from the send to what arrives."""
    facts = write_perfetto(small(), tmp_path / "trace.pftrace")
    assert facts == {"source": "runs/tiny", "spans left out": 0, "clock error, at most, ns": 3000}
    trace = processor.load(tmp_path / "trace.pftrace")
    assert trace.query(
        "select process.name, thread.name from thread join process using (upid) where tid in (1, 2) order by tid"
    ) == [("node0", "rank 0"), ("node1", "rank 1")]
    assert trace.query(
        "select a.name, b.name from flow join slice a on slice_out = a.id join slice b on slice_in = b.id"
    ) == [("send", "arriving")]
    assert trace.query("select t.name, t.unit, ts, value from counter join counter_track t on track_id = t.id") == [
        ("MFU", "%", 7, 41.5)
    ]
    assert trace.query(
        "select slice.name, int_value from args join slice using (arg_set_id) where key = 'debug.bytes' order by 1"
    ) == [("receive", 4096), ("send", 4096)]
    assert trace.query(
        "select key, string_value, int_value from args join slice using (arg_set_id) "
        "where slice.name = 'about this timeline' and key glob 'debug.*' order by key"
    ) == [
        ("debug.clock error, at most, ns", None, 3000),
        ("debug.source", "runs/tiny", None),
        ("debug.spans left out", None, 0),
    ]


def test_times_before_zero_are_moved_and_the_file_says_so(processor: TraceProcessor, tmp_path: Path) -> None:
    """The earliest start is -40 ns; a file has none below zero."""
    from dataclasses import replace

    early = replace(small(), slices=replace(small().slices, start_ns_N=small().slices.start_ns_N - 40))
    assert write_perfetto(early, tmp_path / "trace.pftrace")["shift_ns"] == 40
    trace = processor.load(tmp_path / "trace.pftrace")
    assert trace.query("select min(ts) from slice where name = 'step'") == [(0,)]


def test_names_that_a_reader_would_obey_are_shown_as_escapes(processor: TraceProcessor, tmp_path: Path) -> None:
    """A host called by a right-to-left override turns nothing round."""
    from dataclasses import replace

    hostile = replace(small(), processes=(Process(name="\u202egnp.exe\n"), Process(name="<script>")))
    write_perfetto(hostile, tmp_path / "trace.pftrace")
    trace = processor.load(tmp_path / "trace.pftrace")
    names = trace.query("select name from process where pid > 1000 order by pid")
    assert names == [("\\u202egnp.exe ",), ("<script>",)]


def test_the_same_timeline_gives_the_same_bytes(tmp_path: Path) -> None:
    """Also compressed: no time of writing, no name of a file."""
    for name in ("a.gz", "b.gz"):
        write_perfetto(small(), tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
