"""Spans of simulated jobs in files, as their ranks would have written them."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from fabrictune.foundation.span_lines import SpanHeader, pass_line, request_text, tag_text, work_line
from fabrictune.foundation.span_writer import SpanWriter
from fabrictune.foundation.spans import SpanKind, Spans

PASSES = (SpanKind.FORWARD, SpanKind.BACKWARD, SpanKind.WEIGHT_GRADIENT)
Line = tuple[int, int, str]  # rank, step, text


def write_files(spans: Spans, folder: Path) -> None:
    """Write the files of each rank's spans, which lie together by rank and step, to a folder."""
    for rank, lines in groupby(_lines(spans), key=lambda line: line[0]):
        header = SpanHeader(
            rank=rank,
            layout=spans.layout,
            host=spans.host_R[rank],
            pid=100 + rank,
            clock_offset_ns=0,
            clock_error_ns=int(spans.clock_error_ns_R[rank]),
        )
        writer = SpanWriter(folder, header)
        steps: dict[int, list[str]] = {}
        for _, step, text in lines:
            steps.setdefault(step, []).append(text)
        for step in sorted(steps):
            writer.write(step, "".join(steps[step]))
        writer.close()


def _lines(spans: Spans) -> Iterator[Line]:
    of_pass = zip(spans.micro_batch_N.tolist(), spans.chunk_N.tolist(), strict=True)
    of_request = zip(
        spans.operation_N.tolist(),
        spans.group_N.tolist(),
        spans.sequence_N.tolist(),
        spans.peer_N.tolist(),
        spans.bytes_N.tolist(),
        spans.tag_N,
        strict=True,
    )
    times = zip(spans.issue_ns_N.tolist(), spans.start_ns_N.tolist(), spans.end_ns_N.tolist(), strict=True)
    places = zip(spans.rank_N.tolist(), spans.step_N.tolist(), spans.kind_N.tolist(), strict=True)
    for (rank, step, kind), (issue, start, end), (batch, chunk), (operation, group, sequence, peer, size, tag) in zip(
        places, times, of_pass, of_request, strict=True
    ):
        if kind in PASSES:
            yield rank, step, pass_line(kind, step, start, end, batch, chunk)
        elif kind == SpanKind.REQUEST:
            rest = f"{operation},{group},{sequence},{peer},{size},{tag_text(batch, chunk, tag)}"
            yield rank, step, request_text(step, issue, start, end, rest)
        else:
            yield rank, step, work_line(kind, step, start, end)
