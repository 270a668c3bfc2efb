"""Spans of simulated jobs in files, as their ranks would have written them."""

from pathlib import Path

import numpy as np

from benchmarks.studies.planted_stragglers.jobs import Disturbance, JobSize, simulate
from fabrictune.foundation.span_lines import Span, SpanHeader, pass_line, request_line, work_line
from fabrictune.foundation.span_writer import FOLDER, SpanWriter
from fabrictune.foundation.spans import SpanKind, Spans

SMALL = JobSize(dp=8, pp=2, num_batches=4, num_steps=6)
PASSES = (SpanKind.FORWARD, SpanKind.BACKWARD, SpanKind.WEIGHT_GRADIENT)


def slow_job(*, seed: int = 1) -> Spans:
    """Return a job of 16 ranks whose rank 11 is 10 % slow."""
    disturbance = Disturbance.none(SMALL)
    disturbance.work_SDP[:, 3, 1] = 1.1
    return simulate(SMALL, disturbance, seed)


def write_spans(spans: Spans, run: Path) -> None:
    """Write the spans of each rank to a run's folder."""
    write_files(spans, run / FOLDER)


def write_files(spans: Spans, folder: Path) -> None:
    """Write the files of each rank's spans to a folder."""
    for rank in np.unique(spans.rank_N).tolist():
        header = SpanHeader(
            rank=rank,
            layout=spans.layout,
            host=spans.host_R[rank],
            pid=100 + rank,
            clock_offset_ns=0,
            clock_error_ns=int(spans.clock_error_ns_R[rank]),
        )
        writer = SpanWriter(folder, header)
        own = spans.where(spans.rank_N == rank)
        for step in np.unique(own.step_N).tolist():
            of_step = own.where(own.step_N == step)
            writer.write(step, "".join(_line(of_step, row) for row in range(len(of_step))))
        writer.close()


def _line(spans: Spans, row: int) -> str:
    kind, step = int(spans.kind_N[row]), int(spans.step_N[row])
    times = int(spans.start_ns_N[row]), int(spans.end_ns_N[row])
    if kind in PASSES:
        return pass_line(kind, step, *times, int(spans.micro_batch_N[row]), int(spans.chunk_N[row]))
    if kind != SpanKind.REQUEST:
        return work_line(kind, step, *times)
    columns = ("operation_N", "group_N", "sequence_N", "peer_N", "bytes_N", "micro_batch_N", "chunk_N")
    values = (int(getattr(spans, name)[row]) for name in columns)
    return request_line(Span._make((kind, step, int(spans.issue_ns_N[row]), *times, *values, spans.tag_N[row])))
