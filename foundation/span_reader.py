"""Reading a job's spans, also while they are written: a folder of files in, `Spans` out.

Of each rank a share of `max_spans` is read: the newest spans first, then as many of the sampled steps before them as
there is room for, at an even distance. What is left out, by the writer or here, is counted in `num_dropped_R`. A last
line without an end is one that is being written, and is left out too.
"""

import json
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from fabrictune.foundation.errors import InputError, Mistake, TraceError
from fabrictune.foundation.foreign_files import open_foreign, shown
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.span_lines import MAX_LINE_BYTES, Span, SpanHeader, parse_span
from fabrictune.foundation.span_writer import FOLDER, NAME, OLD, SAMPLED, SUFFIX, span_file, spans_beside
from fabrictune.foundation.spans import Spans
from fabrictune.foundation.traces import UNKNOWN

MAX_SPANS = 4_000_000
MAX_FILE_BYTES = 32 * 2**20  # a writer's files have at most 8 MiB
MIN_SPANS_OF_RANK = 1000
_NUMBERS = tuple(name for name in Span._fields if name != "tag")
_COLUMNS = {
    "kind": "kind_N",
    "step": "step_N",
    "issue_ns": "issue_ns_N",
    "start_ns": "start_ns_N",
    "end_ns": "end_ns_N",
    "operation": "operation_N",
    "group": "group_N",
    "sequence": "sequence_N",
    "peer": "peer_N",
    "num_bytes": "bytes_N",
    "micro_batch": "micro_batch_N",
    "chunk": "chunk_N",
}


def find_spans(run: Path) -> Mapping[int, Path]:
    """Return the folder of each rank's spans in a run's folder, or beside its record; raises TraceError for none.

    Of an operated job those of the newest generation, from all its nodes' folders.
    """
    for folder in (run, run / FOLDER, spans_beside(run)):
        if ranks := _ranks_in(folder):
            return dict.fromkeys(ranks, folder)
    generations = [*run.glob(f"{FOLDER}/generation-*"), *run.glob(f"nodes/*/{FOLDER}/generation-*")]
    found = [(folder, ranks) for folder in generations if (ranks := _ranks_in(folder))]
    if not found:
        next_step = "give the folder that `fabrictune train run --out` or `train operate` wrote"
        raise TraceError(Mistake(where=str(run), found="no spans (rank-00000.jsonl)", next_step=next_step))
    newest = max((len(folder.name), folder.name) for folder, _ in found)
    return {rank: folder for folder, ranks in found if (len(folder.name), folder.name) == newest for rank in ranks}


def is_span_folder(folder: Path) -> bool:
    """Return whether a folder holds the files of ranks' spans themselves, as `NAME-spans` beside a record does."""
    return bool(_ranks_in(folder))


def read_spans(run: Path, *, max_spans: int = MAX_SPANS) -> Spans:
    """Return the spans of a run's folder; raises TraceError, with all mistakes of the files."""
    folders = find_spans(run)
    share = max(MIN_SPANS_OF_RANK, max_spans // len(folders))
    parts: list[_RankSpans] = []
    mistakes: list[Mistake] = []
    for rank, folder in sorted(folders.items()):
        try:
            parts.append(_read_rank(folder, rank, share))
        except InputError as error:
            mistakes += error.mistakes
    layouts = {part.header.layout for part in parts}
    if len(layouts) > 1:
        found = f"ranks of other layouts: {'; '.join(sorted(layout.describe() for layout in layouts)[:3])}"
        mistakes.append(Mistake(where=str(run), found=found, allowed="the files of one job"))
    if mistakes:
        raise TraceError(*mistakes)
    return _joined(parts)


@dataclass(frozen=True, kw_only=True)
class _RankSpans:
    header: SpanHeader
    columns: "dict[str, array[int]]"
    tags: list[str]
    num_dropped: int


def _ranks_in(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    matches = (NAME.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(match[1]) for match in matches if match is not None and match[2] == SUFFIX)


def _read_rank(folder: Path, rank: int, share: int) -> _RankSpans:
    spans: deque[Span] = deque(maxlen=share)
    header, num_recent = None, 0
    for part in _recent_parts(folder, rank):
        header = part.header
        for span in part:
            spans.append(span)
            num_recent += 1
    assert header is not None, "the newest segment is there, or reading it has failed"
    first_step = min((span.step for span in spans), default=2**62)
    if len(spans) < num_recent:  # the oldest step is not whole
        first_step += 1
    older = _sampled(folder, rank, first_step, share - len(spans))
    num_dropped = max(0, header.num_dropped + num_recent - len(spans) - len(older))
    columns = {name: array("q") for name in _NUMBERS}
    tags: list[str] = []
    for span in (*older, *spans):
        *numbers, tag = span
        for name, number in zip(_NUMBERS, numbers, strict=True):
            columns[name].append(number)
        tags.append(tag)
    return _RankSpans(header=header, columns=columns, tags=tags, num_dropped=num_dropped)


def _recent_parts(folder: Path, rank: int) -> "Iterator[_Part]":
    """Yield the segments of a rank, older first; one that takes the other's place meanwhile is read once."""
    newest, old = span_file(folder, rank), span_file(folder, rank, OLD)
    with open_foreign(newest, max_bytes=MAX_FILE_BYTES, error=TraceError) as file:
        part = _Part(newest, file, rank)
        if old.exists():
            with open_foreign(old, max_bytes=MAX_FILE_BYTES, error=TraceError) as before:
                earlier = _Part(old, before, rank)
                if earlier.header.segment < part.header.segment:
                    yield earlier
        yield part


def _sampled(folder: Path, rank: int, first_step: int, room: int) -> list[Span]:
    """Return the sampled spans before a step, of steps at a distance at which they have room."""
    path = span_file(folder, rank, SAMPLED)
    if room <= 0 or not path.exists():
        return []
    with open_foreign(path, max_bytes=MAX_FILE_BYTES, error=TraceError) as file:
        part = _Part(path, file, rank)
        stride, kept = part.header.stride, list[Span]()
        for span in part:
            if span.step >= first_step:  # steps are in order, and from here on whole in the newest spans
                break
            if span.step % stride == 0:
                kept.append(span)
                while len(kept) > room and stride < 2**62:
                    stride *= 2
                    kept = [earlier for earlier in kept if earlier.step % stride == 0]
        return kept if len(kept) <= room else []


class _Part:
    """One file: its header, then its spans."""

    def __init__(self, path: Path, file: BinaryIO, rank: int) -> None:
        self._path, self._file = path, file
        try:
            self.header = SpanHeader.parse(file.readline(MAX_LINE_BYTES))
            if self.header.rank != rank:
                raise ValueError(f"the header of rank {self.header.rank}")
        except ValueError as error:
            raise TraceError(Mistake(where=f"{path}:1", found=str(error))) from None
        layout = self.header.layout
        self._num_groups = sum(layout.world_size // layout.degree(axis) for axis in layout.axes)
        self._tags: dict[str, str] = {}

    def __iter__(self) -> Iterator[Span]:
        for number, line in enumerate(iter(lambda: self._file.readline(MAX_LINE_BYTES), b""), 2):
            if len(line) < MAX_LINE_BYTES and not line.endswith(b"\n"):
                return  # its writer has not ended it
            try:
                span = parse_span(json.loads(line), self._num_groups)
            except (ValueError, RecursionError) as error:
                found = f"not a span ({error}): {shown(line)}"
                raise TraceError(Mistake(where=f"{self._path}:{number}", found=found)) from None
            yield span._replace(tag=self._tags.setdefault(span.tag, span.tag)) if span.tag else span


def _joined(parts: Sequence[_RankSpans]) -> Spans:
    layout = parts[0].header.layout
    groups, axes = layout.axis_groups(), _axes_of_groups(layout)
    num_ranks = layout.world_size
    hosts = [""] * num_ranks
    error_ns_R, num_dropped_R = np.full(num_ranks, UNKNOWN), np.zeros(num_ranks, np.int64)
    for part in parts:
        rank = part.header.rank
        hosts[rank] = part.header.host
        error_ns_R[rank], num_dropped_R[rank] = part.header.clock_error_ns, part.num_dropped
    columns = {
        column: np.concatenate([np.frombuffer(part.columns[name], np.int64) for part in parts])
        for name, column in _COLUMNS.items()
    }
    rank_N = np.repeat([part.header.rank for part in parts], [len(part.tags) for part in parts])
    order_N = np.lexsort((columns["issue_ns_N"], rank_N))
    tags = [tag for part in parts for tag in part.tags]
    columns = {name: column[order_N] for name, column in columns.items()}
    return Spans(
        layout=layout,
        groups=groups,
        host_R=tuple(hosts),
        clock_error_ns_R=error_ns_R,
        num_dropped_R=num_dropped_R,
        rank_N=rank_N[order_N],
        tag_N=tuple(map(tags.__getitem__, order_N.tolist())),
        axis_N=tuple(map(axes.__getitem__, columns["group_N"].tolist())),  # UNKNOWN is the last, ""
        **columns,
    )


def _axes_of_groups(layout: ParallelLayout) -> list[str]:
    """Return the axis of each group, and "" at the end."""
    return [*(axis for axis in layout.axes for _ in range(layout.world_size // layout.degree(axis))), ""]
