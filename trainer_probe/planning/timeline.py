"""Timeline of a planned step in which no two requests share a link.

Ranks at one pipeline place do the same at the same time, so one rank per place is enough: a collective over tensor or
data ranks is complete when its rank has made it and its bytes are transferred, a receive when the neighbour's message
has arrived. In a ring a message arrives when this rank's own does, since all send at the same time. Nothing waits for
a link, so no network makes the step shorter; with requests that take no time, the pipeline's own bubble remains.

Left out: latencies; requests of one rank that cross its NIC at the same time.

Shapes: N requests of the templates, P pipeline places.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import pairwise

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.job_traces import JobTrace
from fabrictune.foundation.traces import CommTrace, Operation
from fabrictune.foundation.units import BITS_PER_BYTE, PS_PER_S
from fabrictune.trainer_probe.planning.hardware import HardwareSpec
from fabrictune.trainer_probe.planning.volumes import sent_bytes


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """When the requests of a step are made and complete, one rank per pipeline place."""

    ready_ps_N: IntArray
    done_ps_N: IntArray

    @property
    def step_ps(self) -> int:
        """Completion of the last request of all ranks."""
        return int(self.done_ps_N.max(initial=0))


class StepGraph:
    """The dependencies of a job's step, from which timelines for any durations follow."""

    def __init__(self, job: JobTrace) -> None:
        rows = job.templates
        self._sender = _senders(job)
        self._work_ps = rows.compute_before_ps_N.tolist()
        offsets, waits = rows.dependencies.offset_N1.tolist(), rows.dependencies.row_D.tolist()
        self._waits = [waits[first:last] for first, last in pairwise(offsets)]
        before = {row: [*own, *self._sender.get(row, ())] for row, own in enumerate(self._waits)}
        self._order = tuple(TopologicalSorter(before).static_order())

    def timeline(self, duration_ps_N: IntArray) -> Timeline:
        """Return the timeline of a step whose requests take these durations.

        A message's duration counts from its send; its receive takes none.
        """
        duration = duration_ps_N.tolist()
        ready, done = [0] * len(duration), [0] * len(duration)
        for row in self._order:
            ready[row] = max((done[other] for other in self._waits[row]), default=0) + self._work_ps[row]
            done[row] = max([ready[row] + duration[row], *(done[sender] for sender in self._sender.get(row, ()))])
        return Timeline(ready_ps_N=np.array(ready, np.int64), done_ps_N=np.array(done, np.int64))


def durations(job: JobTrace, hardware: HardwareSpec) -> IntArray:
    """Return the shortest duration of each request, N."""
    rows = job.templates
    duration_ps_N = np.zeros(len(rows), np.int64)
    for row in np.flatnonzero(rows.bytes_N).tolist():
        duration_ps_N[row] = _duration_ps(rows, row, hardware)
    return duration_ps_N


def _duration_ps(rows: CommTrace, row: int, hardware: HardwareSpec) -> int:
    """Return the duration of a request on the slowest link it must cross; a ring's message waits for all the others.

    Of an all-to-all each other rank gets an equal part: one of the same host over NVLink, all others by the NIC.
    """
    operation, members = Operation(rows.operation_N[row]), rows.groups[rows.group_N[row]]
    if operation == Operation.SEND and rows.axis_N[row] == "pp":
        members = (int(rows.rank_N[row]), int(rows.peer_N[row]))
    num_bits = sent_bytes(operation, len(members), int(rows.bytes_N[row])) * BITS_PER_BYTE
    own_host = int(rows.rank_N[row]) // hardware.gpus_per_host
    num_outside = sum(rank // hardware.gpus_per_host != own_host for rank in members)
    if operation == Operation.ALL_TO_ALL and len(members) > 1:
        outside = num_outside / (len(members) - 1)
        slowest_s: float = num_bits * max((1 - outside) / hardware.nvlink_rate_bps, outside / hardware.nic_rate_bps)
        return round(slowest_s * PS_PER_S)
    return round(num_bits / (hardware.nic_rate_bps if num_outside else hardware.nvlink_rate_bps) * PS_PER_S)


def _senders(job: JobTrace) -> dict[int, tuple[int]]:
    """Return the row of the send that matches each receive: the k-th to a rank matches its k-th from there.

    Along other axes than pp, the sender has the template's own rows: its send goes as far round the group.
    """
    rows = job.templates
    sent: defaultdict[tuple[str, int, int], deque[int]] = defaultdict(deque)
    ends = list(zip(rows.operation_N.tolist(), rows.rank_N.tolist(), rows.peer_N.tolist(), rows.axis_N, strict=True))
    for row, (operation, rank, peer, axis) in enumerate(ends):
        if operation == Operation.SEND:
            sent[axis, rank, peer].append(row)
    senders: dict[int, tuple[int]] = {}
    for row, (operation, rank, peer, axis) in enumerate(ends):
        if operation == Operation.RECEIVE:
            way = (peer, rank) if axis == "pp" else (rank, _opposite(rows.groups[rows.group_N[row]], rank, peer))
            senders[row] = (sent[(axis, *way)].popleft(),)
    return senders


def _opposite(members: Sequence[int], rank: int, peer: int) -> int:
    """Return the member that is as far behind a rank, round the group, as a peer is before it."""
    place, place_of_peer = members.index(rank), members.index(peer)
    return members[(2 * place - place_of_peer) % len(members)]
