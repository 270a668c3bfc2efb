"""Evidence of a job of our own from the spans of its ranks: how long its requests and steps take, and where each ended.

A step is in a rank's file once the next one has ended. Files that still grow are of a job that goes on, and say nothing
of who waits for whom; of others the last request of each group says how far its rank has come.

Left out: the steps that were not written yet, which a page of a rank knows.
"""

import time
from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fabrictune.foundation.errors import FabrictuneError
from fabrictune.foundation.span_reader import find_spans, read_spans
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.foundation.traces import Operation
from fabrictune.observability.hangs.evidence import MAX_TIMINGS, Evidence, Group, Progress, Request, Timing, Who
from fabrictune.observability.stragglers.requests import join_requests
from fabrictune.observability.stragglers.work import common_steps

SOURCE = "spans"
MAX_SPANS = 400_000  # of all ranks, the newest
MIN_QUIET_S = 10.0  # since a file has grown, beside three steps


def find_own_spans(run: Path) -> Path | None:
    """Return the folder of a run whose spans can be read, None where there are none."""
    if not run.is_dir():
        return None
    try:
        find_spans(run)
    except FabrictuneError:
        return None
    return run


def read_own_spans(run: Path, *, now_s: float | None = None) -> Evidence:
    """Return what a run's spans say; raises TraceError. `now_s` is the time of the files' clock."""
    folders = find_spans(run)
    spans = read_spans(run, max_spans=MAX_SPANS)
    steps_us = _steps_us(spans)
    newest_s = max(path.stat().st_mtime for folder in set(folders.values()) for path in folder.glob("rank-*.jsonl"))
    quiet_s = (time.time() if now_s is None else now_s) - newest_s
    goes_on = quiet_s < MIN_QUIET_S + 3e-6 * max(steps_us, default=0.0)
    note = "spans still grow: they say how long requests take, and not who waits for whom"
    return Evidence(
        source=SOURCE,
        groups=tuple(_groups(spans)),
        progress=() if goes_on else tuple(_progress(spans, run)),
        timings=tuple(_timings(spans)),
        steps_us=steps_us,
        tells_all=False,
        num_files=len(folders),
        notes=(note,) if goes_on else (),
    )


def _steps_us(spans: Spans) -> tuple[float, ...]:
    """Return the time of each step that all ranks have, by its slowest rank."""
    common = common_steps(spans)
    is_step = common.kind_N == SpanKind.STEP
    longest: defaultdict[int, int] = defaultdict(int)
    times_ns = (common.end_ns_N - common.start_ns_N)[is_step]
    for step, time_ns in zip(common.step_N[is_step].tolist(), times_ns.tolist(), strict=True):
        longest[step] = max(longest[step], time_ns)
    return tuple(time_ns / 1e3 for time_ns in longest.values())


def _groups(spans: Spans) -> Iterator[Group]:
    size = spans.layout.world_size
    yield Group(name="job", size=size, members={rank: Who(rank=rank) for rank in range(size)}, is_job=True)
    axis_of = dict(zip(spans.group_N.tolist(), spans.axis_N, strict=True))
    for group, members in enumerate(spans.groups):
        if group in axis_of:
            whos = {place: Who(rank=rank) for place, rank in enumerate(members)}
            yield Group(name=str(group), label=axis_of[group], size=len(members), members=whos)


def _progress(spans: Spans, run: Path) -> Iterator[Progress]:
    """Yield the last request of each rank and group that is no message."""
    is_message = np.isin(spans.operation_N, (Operation.SEND, Operation.RECEIVE))
    rows = np.flatnonzero((spans.kind_N == SpanKind.REQUEST) & ~is_message)
    last: dict[tuple[int, int], int] = {}
    for row in rows.tolist():
        key = int(spans.rank_N[row]), int(spans.group_N[row])
        if key not in last or spans.sequence_N[last[key]] < spans.sequence_N[row]:
            last[key] = row
    for (rank, group), row in last.items():
        number = int(spans.sequence_N[row])
        yield Progress(
            who=Who(rank=rank, host=spans.host_R[rank]),
            group=str(group),
            where=f"{run}, rank {rank}, step {int(spans.step_N[row])}",
            completed=number,
            requests={number: _request(spans, row)},
        )


def _timings(spans: Spans) -> Iterator[Timing]:
    """Yield the newest requests of each sort and group, from the last member's issue to the first one's end."""
    joined = join_requests(spans)
    kept: defaultdict[tuple[int, int, int], deque[Timing]] = defaultdict(lambda: deque(maxlen=MAX_TIMINGS))
    transfers_ns = joined.transfer_ns_J.tolist()
    for request in np.flatnonzero(joined.is_exposed_J & (joined.operation_J != Operation.SEND)).tolist():
        row = int(joined.row_M[joined.first_J[request]])
        sort = int(joined.group_J[request]), int(joined.operation_J[request]), int(joined.bytes_J[request])
        if transfers_ns[request] > 0:
            kept[sort].append(
                Timing(
                    who=Who(rank=int(spans.rank_N[row])),
                    group=str(sort[0]),
                    number=int(spans.sequence_N[row]),
                    request=_request(spans, row),
                    elapsed_us=transfers_ns[request] / 1e3,
                )
            )
    for timings in kept.values():
        yield from timings


def _request(spans: Spans, row: int) -> Request:
    num_bytes = int(spans.bytes_N[row])
    kind = Operation(int(spans.operation_N[row])).name.lower()
    return Request(kind=kind, size=num_bytes, tag=spans.tag_N[row], num_bytes=num_bytes)
