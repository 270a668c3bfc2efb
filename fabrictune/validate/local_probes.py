"""Probes of this machine: what the parts of a collective on the loopback cost, measured by two ranks at once.

| probe | what is timed |
| --- | --- |
| `exchange` | a message each way, sent and received by gloo's workers: an all-to-all in which nobody keeps a part |
| `sum` | the sum of the halves of a buffer, of which one has just arrived |
| `copy` | a copy in memory that both processes have used before |
| `fresh_copy` | a copy into new memory, whose pages come as they are written |
| `all_gather`, `reduce_scatter` | the collective of 16 B: what a call costs whatever its size |

Every probe follows a barrier and 2 ms of forward and backward, as a collective follows work: gloo's threads are
asleep, the caches hold other data, and on a busy machine the scheduler lets others run first. Like a collective, a
probe lasts from the last to begin to the last to end.

Shapes: K rounds, P probes.
"""

import mmap
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fabrictune.collectives.startup.groups import axis_group_name

if TYPE_CHECKING:
    import torch

    from fabrictune.collectives.startup.process_groups import Member
    from fabrictune.trainer_probe.comm import Comm

BYTES_PER_ELEMENT = 8  # double precision
CALLS = ("all_gather", "reduce_scatter")
CALL_BYTES = 16  # an element of each rank
FRESH_BYTES = 4 * 2**20
WORK_S = 0.002  # about as long as the training works between two collectives
WORK_WIDTH = 64  # of its matrices


class Probes:
    """One rank's side of all probes, and when each began and ended for it."""

    def __init__(self, member: "Member", comm: "Comm", sizes: list[int]) -> None:
        self._member, self._comm = member, comm
        self.probe_P: list[str] = []
        self.bytes_P: list[int] = []
        self._runs: list[Callable[[], object]] = []
        self._weight_WW = _ones(BYTES_PER_ELEMENT * WORK_WIDTH**2).view(WORK_WIDTH, WORK_WIDTH).requires_grad_()
        for size in sizes:
            pair, kept = _ones(2 * size), _ones(size)
            self._add("exchange", size, partial(self._exchange, pair[len(kept) :], kept))
            self._add("sum", 2 * size, partial(_add_up, pair, kept))
            self._add("copy", size, partial(kept.copy_, pair[: len(kept)]))
        source = _ones(FRESH_BYTES)
        self._add("copy", FRESH_BYTES, partial(_ones(FRESH_BYTES).copy_, source))
        self._add("fresh_copy", FRESH_BYTES, partial(_copy_to_new, source.numpy().view(np.uint8)))
        pair, kept = _ones(CALL_BYTES), _ones(CALL_BYTES // 2)
        for call in CALLS:
            self._add(call, CALL_BYTES, partial(self._call, call, pair, kept))
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.began_ns_KP: list[list[int]] = []
        self.ended_ns_KP: list[list[int]] = []

    def run(self) -> None:
        """Make a round of all probes."""
        began_ns, ended_ns = [], []
        for run in self._runs:
            self._comm.barrier(axis="dp", tag="probe").wait()
            self.work()
            began_ns.append(time.perf_counter_ns())
            run()
            ended_ns.append(time.perf_counter_ns())
        self.began_ns_KP.append(began_ns)
        self.ended_ns_KP.append(ended_ns)

    def work(self) -> None:
        """Do what a rank does between collectives, for as long."""
        end = time.perf_counter() + WORK_S
        while time.perf_counter() < end:
            (self._weight_WW @ self._weight_WW).tanh().sum().backward()  # type: ignore[no-untyped-call]

    def _add(self, probe: str, num_bytes: int, run: Callable[[], object]) -> None:
        self.probe_P.append(probe)
        self.bytes_P.append(num_bytes)
        self._runs.append(run)

    def _exchange(self, received: "torch.Tensor", sent: "torch.Tensor") -> None:
        """Send all of a buffer to the other rank, by gloo itself: Comm's all-to-all keeps a part."""
        import torch.distributed as dist

        parts = [len(sent) if rank != self._comm.rank else 0 for rank in self._comm.members("dp")]
        group = self._member.process_groups[axis_group_name("dp", 0)]
        dist.all_to_all_single(received, sent, parts, parts, group=group, async_op=True).wait()

    def _call(self, call: str, pair: "torch.Tensor", part: "torch.Tensor") -> None:
        if call == "all_gather":
            self._comm.all_gather(pair, part, axis="dp", tag="probe").wait()
        else:
            self._comm.reduce_scatter(part, pair, axis="dp", tag="probe").wait()


def _ones(num_bytes: int) -> "torch.Tensor":
    import torch

    return torch.ones(num_bytes // BYTES_PER_ELEMENT, dtype=torch.float64)


def _add_up(pair: "torch.Tensor", total: "torch.Tensor") -> None:
    import torch

    torch.sum(pair.view(2, -1), 0, out=total)


def _copy_to_new(source: NDArray[np.uint8]) -> None:
    with mmap.mmap(-1, len(source)) as memory:
        np.frombuffer(memory, np.uint8)[:] = source
