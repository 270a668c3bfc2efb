"""How long a planned step takes where no two requests share a link.

Ranks at one pipeline place do the same at the same time, so one rank a place is enough: a collective over tensor or
data ranks is complete when its rank has asked and its bytes have crossed, a receive when the neighbour's message has
come. Nothing waits for a link, so no network makes the step shorter; with requests that take no time, what is left is
the pipeline's own waiting.

Left out: latencies; requests of one rank that cross its NIC at the same time.

Shapes: N requests of the templates, P pipeline places.
"""

from collections import defaultdict, deque
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from collectives.bounds import BITS_PER_BYTE, PS_PER_S
from foundation.job_traces import JobTrace
from foundation.layout import AXES, Axis
from foundation.traces import CommTrace, IntColumn, Operation
from trainer_probe.planning.hardware import HardwareSpec
from trainer_probe.planning.volumes import sent_bytes


@dataclass(frozen=True, kw_only=True)
class Play:
    """When things are done in a step, one rank a pipeline place."""

    ready_ps_N: IntColumn
    done_ps_N: IntColumn

    @property
    def step_ps(self) -> int:
        """When the last request of the last rank is complete."""
        return int(self.done_ps_N.max(initial=0))


def play(job: JobTrace, duration_ps_N: IntColumn) -> Play:
    """Return when each request is made and complete if it takes so long from then on.

    A message's time counts from its send; its receive takes none.
    """
    rows = job.templates
    sender_N = _senders(rows)
    waits: list[list[int]] = [rows.dependencies.of(row).tolist() for row in range(len(rows))]
    followers: defaultdict[int, list[int]] = defaultdict(list)
    missing = np.zeros(len(rows), np.int64)
    for row, own in enumerate(waits):
        for other in (*own, *([int(sender_N[row])] if sender_N[row] >= 0 else [])):
            followers[other].append(row)
            missing[row] += 1
    ready, done = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    free = deque(np.flatnonzero(missing == 0).tolist())
    while free:
        row = free.popleft()
        ready[row] = max((done[other] for other in waits[row]), default=0) + rows.compute_before_ps_N[row]
        is_receive = sender_N[row] >= 0
        done[row] = max(ready[row], done[sender_N[row]]) if is_receive else ready[row] + duration_ps_N[row]
        for follower in followers[row]:
            missing[follower] -= 1
            if not missing[follower]:
                free.append(follower)
    assert not missing.any(), "a pipeline's program comes to its end"
    return Play(ready_ps_N=ready, done_ps_N=done)


def durations(job: JobTrace, hardware: HardwareSpec, axes: Collection[Axis] = AXES) -> IntColumn:
    """Return how long each request takes at best, N; those along other axes than these take no time."""
    rows = job.templates
    found = np.zeros(len(rows), np.int64)
    for row in np.flatnonzero(rows.bytes_N).tolist():
        if rows.axis_N[row] in axes:
            found[row] = _duration_ps(rows, row, hardware)
    return found


def _duration_ps(rows: CommTrace, row: int, hardware: HardwareSpec) -> int:
    """Return what one request takes on the slowest link it must cross."""
    operation, group = Operation(rows.operation_N[row]), rows.groups[rows.group_N[row]]
    members = (int(rows.rank_N[row]), int(rows.peer_N[row])) if operation == Operation.SEND else group
    num_bits = sent_bytes(operation, len(members), int(rows.bytes_N[row])) * BITS_PER_BYTE
    is_inside = len({rank // hardware.gpus_per_host for rank in members}) == 1
    return round(num_bits / (hardware.nvlink_rate_bps if is_inside else hardware.nic_rate_bps) * PS_PER_S)


def _senders(rows: CommTrace) -> IntColumn:
    """Return the row of the send that each receive meets, N; -1 for other rows. The k-th meets the k-th."""
    found = np.full(len(rows), -1)
    sent: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
    ends = list(zip(rows.operation_N.tolist(), rows.rank_N.tolist(), rows.peer_N.tolist(), strict=True))
    for row, (operation, rank, peer) in enumerate(ends):
        if operation == Operation.SEND:
            sent[rank, peer].append(row)
    for row, (operation, rank, peer) in enumerate(ends):
        if operation == Operation.RECEIVE:
            found[row] = sent[peer, rank].popleft()
    return found
