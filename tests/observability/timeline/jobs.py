"""Spans of a made-up job: two ranks a host, an all-reduce and messages to the next host in each step."""

import numpy as np

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.spans import SpanKind, Spans
from fabrictune.foundation.traces import UNKNOWN, Operation

STEP_NS = 1_000_000
TRANSFER_NS = 20_000


def job(
    *,
    num_hosts: int = 4,
    num_steps: int = 3,
    ahead_ns: dict[int, float] | None = None,
    drift: dict[int, float] | None = None,
    error_ns: int = UNKNOWN,
    seed: int = 0,
) -> Spans:
    """Return the spans of a job whose hosts' clocks are ahead by `ahead_ns`, and gain `drift` of the time that goes."""
    ahead_ns, drift = ahead_ns or {}, drift or {}
    random = np.random.default_rng(seed)
    num_ranks = 2 * num_hosts
    rows: list[tuple[int, ...]] = []
    for step in range(num_steps):
        for rank in range(num_ranks):
            begin = step * STEP_NS
            rows.append((rank, step, SpanKind.FORWARD, *(UNKNOWN,) * 5, begin, begin, begin + 300_000))
        arrive = [step * STEP_NS + 300_000 + int(random.integers(0, 100_000)) for _ in range(num_ranks)]
        for rank in range(num_ranks):
            end = max(arrive) + TRANSFER_NS + int(random.integers(0, 5_000))
            rows.append(
                (rank, step, SpanKind.REQUEST, Operation.ALL_REDUCE, 0, step, -1, 4096, arrive[rank], arrive[rank], end)
            )
        for rank in range(num_ranks):
            to = (rank + 2) % num_ranks
            sent = step * STEP_NS + 600_000 + int(random.integers(0, 50_000))
            took = TRANSFER_NS + int(random.integers(0, 5_000))
            rows.append((rank, step, SpanKind.REQUEST, Operation.SEND, 1, step, to, 64, sent, sent + took, sent + took))
            posted = step * STEP_NS + 590_000
            rows.append((to, step, SpanKind.REQUEST, Operation.RECEIVE, 1, step, rank, 64, posted, posted, sent + took))
    table = np.array(sorted(rows, key=lambda row: (row[0], row[8])), np.int64)
    for column in (8, 9, 10):
        for host in range(num_hosts):
            own = table[:, 0] // 2 == host
            error = ahead_ns.get(host, 0) + drift.get(host, 0) * table[own, column]
            table[own, column] += np.asarray(error).astype(np.int64)
    is_request = table[:, 2] == SpanKind.REQUEST
    everyone = tuple(range(num_ranks))
    return Spans(
        layout=ParallelLayout(dp=num_ranks),
        groups=(everyone, everyone),
        host_R=tuple(f"node{rank // 2}" for rank in range(num_ranks)),
        clock_error_ns_R=np.array([0, 0, *[error_ns] * (num_ranks - 2)]),
        num_dropped_R=np.zeros(num_ranks, np.int64),
        rank_N=table[:, 0],
        step_N=table[:, 1],
        kind_N=table[:, 2],
        operation_N=table[:, 3],
        tag_N=tuple("gradients" if row else "" for row in is_request),
        axis_N=tuple({-1: "", 0: "dp", 1: "pp"}[group] for group in table[:, 4].tolist()),
        group_N=table[:, 4],
        sequence_N=table[:, 5],
        peer_N=table[:, 6],
        micro_batch_N=np.where(is_request, UNKNOWN, 0),
        chunk_N=np.full(len(table), UNKNOWN),
        bytes_N=table[:, 7],
        issue_ns_N=table[:, 8],
        start_ns_N=table[:, 9],
        end_ns_N=table[:, 10],
    )
