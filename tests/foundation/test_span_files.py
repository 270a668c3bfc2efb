"""Files of spans: what was written comes back, in bounded space, also while it is written."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.span_lines import Span, SpanHeader, pass_line, request_line, work_line
from fabrictune.foundation.span_reader import find_spans, read_spans
from fabrictune.foundation.span_writer import FOLDER, SAMPLED, SpanLimits, SpanWriter, span_file
from fabrictune.foundation.spans import SpanKind
from fabrictune.foundation.traces import UNKNOWN, Operation

LAYOUT = ParallelLayout(dp=2)


def header(rank: int = 0) -> SpanHeader:
    return SpanHeader(rank=rank, layout=LAYOUT, host=f"node{rank}", pid=7, clock_offset_ns=-5, clock_error_ns=40)


def write(folder: Path, steps: Sequence[int], *, rank: int = 0, limits: SpanLimits | None = None) -> None:
    writer = SpanWriter(folder / FOLDER, header(rank), limits)
    for step in steps:
        writer.write(step, work_line(SpanKind.STEP, step, 1000 * step, 1000 * step + 900))
    writer.close()


def test_spans_come_back_as_they_were_written(tmp_path: Path) -> None:
    """A pass, a request that has been waited for, and one that has not."""
    request = Span(SpanKind.REQUEST, 3, 40, 50, 90, Operation.REDUCE_SCATTER, 2, 8, UNKNOWN, 4096, 1, 0, "stage0.grad")
    unended = request._replace(start_ns=UNKNOWN, end_ns=UNKNOWN, sequence=9, issue_ns=60)
    for rank in (0, 1):
        writer = SpanWriter(tmp_path, header(rank))
        lines = pass_line(SpanKind.FORWARD, 3, 10, 30, 1, 0) + request_line(request) + request_line(unended)
        writer.write(3, lines)
        writer.close()
    spans = read_spans(tmp_path)
    assert len(spans) == 6
    assert spans.rank_N.tolist() == [0, 0, 0, 1, 1, 1]
    assert spans.host_R == ("node0", "node1")
    assert spans.clock_error_ns_R.tolist() == [40, 40]
    assert spans.kind_N[:3].tolist() == [SpanKind.FORWARD, SpanKind.REQUEST, SpanKind.REQUEST]
    assert spans.end_ns_N[:3].tolist() == [30, 90, UNKNOWN]
    assert spans.start_ns_N[:3].tolist() == [10, 50, UNKNOWN]
    assert spans.sequence_N[:3].tolist() == [UNKNOWN, 8, 9]
    assert spans.micro_batch_N[:3].tolist() == [1, 1, 1]
    assert spans.tag_N[:3] == ("", "stage0.grad", "stage0.grad")
    assert spans.axis_N[:3] == ("", "dp", "dp")
    assert spans.groups[2] == (0, 1)
    assert len(spans.where(spans.rank_N == 1)) == 3


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, [0, 1])
    with span_file(tmp_path / FOLDER, 0).open("ab") as file:
        file.write(b"[0,2,2000")
    assert read_spans(tmp_path).step_N.tolist() == [0, 1]


def test_a_week_of_spans_stays_within_its_bounds_and_is_covered_evenly(tmp_path: Path) -> None:
    """60,480 steps of 10 s: both parts stay within their bytes, and every tenth of the week is there."""
    limits = SpanLimits(recent_bytes=100_000, sampled_bytes=50_000)
    week = 7 * 24 * 360
    write(tmp_path, range(week), limits=limits)
    sizes = [path.stat().st_size for path in (tmp_path / FOLDER).iterdir()]
    assert len(sizes) == 3
    assert sum(sizes) <= 150_000
    spans = read_spans(tmp_path)
    assert spans.step_N[-1] == week - 1
    assert len(spans) + spans.num_dropped_R[0] == week
    assert (np.histogram(spans.step_N, bins=10, range=(0, week))[0] > 50).all()


def test_a_reader_takes_a_share_of_each_rank_and_counts_the_rest(tmp_path: Path) -> None:
    write(tmp_path, range(5000))
    spans = read_spans(tmp_path, max_spans=1)
    assert spans.step_N.tolist() == list(range(4000, 5000))
    assert spans.num_dropped_R.tolist() == [4000, 0]


def test_a_segment_that_is_renamed_while_it_is_read_is_read_once(tmp_path: Path) -> None:
    """As if the old segment had been opened after its rename: both names are one file."""
    write(tmp_path, range(3))
    newest = span_file(tmp_path / FOLDER, 0)
    newest.with_suffix("").with_suffix(".old.jsonl").hardlink_to(newest)
    assert read_spans(tmp_path).step_N.tolist() == [0, 1, 2]


def test_the_newest_generation_of_an_operated_job_is_read(tmp_path: Path) -> None:
    for generation, steps in ((2, [1]), (10, [2])):
        writer = SpanWriter(tmp_path / FOLDER / f"generation-{generation}", header())
        writer.write(0, "".join(work_line(SpanKind.STEP, step, 0, 1) for step in steps))
        writer.close()
    assert {folder.name for folder in find_spans(tmp_path).values()} == {"generation-10"}
    assert read_spans(tmp_path).step_N.tolist() == [2]


def test_a_full_disk_ends_the_spans_and_not_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    writer = SpanWriter(tmp_path / "file" / "below", header())
    writer.write(0, work_line(SpanKind.STEP, 0, 0, 1))
    assert writer.failure is not None
    assert "Not a directory" in writer.failure


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"[0,1,2]\n", "not a span"),
        (b"[0,1,2,-3]\n", "a span of no kind, or that ends before it starts"),
        (b"[0,1,2,1e3]\n", "a span with what is no number"),
        (b"[0,1,2,99999999999999999999]\n", "a span with what is no number"),
        (b'[4,1,0,0,0,1,99,0,-1,1,0,0,"x"]\n', "a request of no group or operation of the job"),
        (b"[" * 900 + b"\n", "not a span"),
        (b"7" * 2000 + b"\n", "not a span"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes, found: str) -> None:
    write(tmp_path, [0])
    with span_file(tmp_path / FOLDER, 0).open("ab") as file:
        file.write(line)
    with pytest.raises(TraceError, match=r"rank-00000\.jsonl:3: not a span") as error:
        read_spans(tmp_path)
    assert found in str(error.value)


def test_a_foreign_header_is_refused(tmp_path: Path) -> None:
    write(tmp_path, [0])
    span_file(tmp_path / FOLDER, 0).write_text('{"format": "other"}\n')
    with pytest.raises(TraceError, match=r"rank-00000\.jsonl:1: not a file of spans"):
        read_spans(tmp_path)


def test_ranks_of_two_jobs_are_refused(tmp_path: Path) -> None:
    write(tmp_path, [0])
    other = SpanHeader(rank=1, layout=ParallelLayout(tp=2), host="", pid=1, clock_offset_ns=0, clock_error_ns=0)
    SpanWriter(tmp_path / FOLDER, other).close()
    with pytest.raises(TraceError, match="ranks of other layouts"):
        read_spans(tmp_path)


def test_a_folder_without_spans_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no spans \(rank-00000.jsonl\)"):
        read_spans(tmp_path)


def test_sampled_steps_are_thinned_by_halves(tmp_path: Path) -> None:
    write(tmp_path, range(400), limits=SpanLimits(recent_bytes=1000, sampled_bytes=3000))
    lines = span_file(tmp_path / FOLDER, 0, SAMPLED).read_bytes().splitlines()
    steps = [int(line.split(b",")[1]) for line in lines[1:]]
    assert steps == list(range(0, 400, 4))
