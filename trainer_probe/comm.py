"""Comm: the one door through which a rank talks to others.

Every communication is named (operation, axis, tag, policy) and entered in the ledger with its bytes and times, so that
it can be traced, replaced, and run in a simulator. Requests return at once with a handle; waiting on it is what a
ledger calls exposed. Groups are those of the layout's axes, made when the rank started (`collectives/startup`).

Left out: other reductions than sums; the true end of a request that is waited for late (its wait's end stands instead).
"""

import time
from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist

from fabrictune.collectives.startup.groups import axis_group_name
from fabrictune.collectives.startup.process_groups import Member
from fabrictune.foundation.layout import AXES, Axis, ParallelLayout
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.trainer_probe.clocks import Moment
from fabrictune.trainer_probe.ledger import Ledger, Request


class Handle:
    """A request under way."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self._wait: Callable[[], None] | None = wait

    def wait(self) -> None:
        """Return when the request is complete; a second call returns at once."""
        if self._wait is not None:
            wait, self._wait = self._wait, None
            wait()


class Comm:
    """The communication of one rank of a layout over its process groups.

    `step` is the number entered for requests; whoever drives the steps sets it. Sizes entered are nccl-tests': the full
    buffer of the operation on one rank.
    """

    def __init__(
        self, layout: ParallelLayout, member: Member, clock_ns: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self.layout = layout
        self.rank = rank = member.rank
        self.step = 0
        self._clock_ns = clock_ns
        groups: list[tuple[int, ...]] = []
        self._group: dict[Axis, int] = {}
        self._process_group: dict[Axis, dist.ProcessGroup | None] = {}
        for axis in AXES:
            for number, members in enumerate(layout.groups(axis).tolist()):
                if rank in members:
                    self._group[axis] = len(groups)
                    self._process_group[axis] = member.process_groups.get(axis_group_name(axis, number))
                groups.append(tuple(members))
        self._groups = tuple(groups)
        self._ledger = Ledger(rank, self._groups, clock_ns)

    def members(self, axis: Axis) -> tuple[int, ...]:
        """Return the ranks of this rank's group along an axis, in ring order."""
        return self._groups[self._group[axis]]

    def ledger(self) -> CommTrace:
        """Return this rank's requests so far."""
        return self._ledger.trace()

    def exposed_wait_ns(self) -> Mapping[str, int]:
        """Return by axis how long this rank has waited for requests so far, forgotten ones among them."""
        return dict(self._ledger.exposed_wait_ns)

    def forget_requests(self) -> None:
        """Forget earlier requests, none of which may be under way, so that the ledger of a long run stays short."""
        self._ledger.forget()

    def restart_ledger(self) -> None:
        """Meet all ranks of the layout, then forget earlier requests and let time begin, at rank 0's moment for all."""
        if self.layout.world_size > 1:
            dist.barrier()
        own = Moment.now(self._clock_ns)
        first = torch.tensor(own.numbers(), dtype=torch.int64)
        if self.layout.world_size > 1:
            dist.broadcast(first, 0)
        clock_ns, time_of_day_ns, boot_high, boot_low = first.tolist()
        begin_ns = Moment.of((clock_ns, time_of_day_ns, boot_high, boot_low)).on_clock_of(own)
        self._ledger.restart(min(begin_ns, self._clock_ns()))  # a time of day that is ahead begins now

    def all_reduce(self, tensor: torch.Tensor, *, axis: Axis, tag: str, policy: str = "none") -> Handle:
        """Add the tensors of the group up, in place."""
        return self._request(
            Operation.ALL_REDUCE,
            tensor,
            lambda group: dist.all_reduce(tensor, group=group, async_op=True),
            axis=axis,
            tag=tag,
            policy=policy,
        )

    def reduce_scatter(
        self, output: torch.Tensor, tensor: torch.Tensor, *, axis: Axis, tag: str, policy: str = "none"
    ) -> Handle:
        """Add up the group's tensors, leaving each member its part, by place in the group, in `output`.

        On a CPU an all-to-all and a local sum: gloo's own reduce-scatter is an all-reduce, which moves twice the bytes.
        """
        start, finish = _scattered_sum(output, tensor, size=len(self.members(axis)))
        return self._request(Operation.REDUCE_SCATTER, tensor, start, axis=axis, tag=tag, policy=policy, finish=finish)

    def all_gather(
        self, output: torch.Tensor, tensor: torch.Tensor, *, axis: Axis, tag: str, policy: str = "none"
    ) -> Handle:
        """Put the group's tensors one after another into `output`."""
        parts = list(output.view(-1, *tensor.shape).unbind(0))
        if len(parts) == 1:
            parts[0].copy_(tensor)
        return self._request(
            Operation.ALL_GATHER,
            output,
            lambda group: dist.all_gather(parts, tensor, group=group, async_op=True),
            axis=axis,
            tag=tag,
            policy=policy,
        )

    def broadcast(self, tensor: torch.Tensor, *, root: int, axis: Axis, tag: str, policy: str = "none") -> Handle:
        """Overwrite the tensors of the group with that of rank `root`."""
        return self._request(
            Operation.BROADCAST,
            tensor,
            lambda group: dist.broadcast(tensor, root, group=group, async_op=True),
            axis=axis,
            tag=tag,
            policy=policy,
            peer=root,
        )

    def send(self, tensor: torch.Tensor, *, peer: int, axis: Axis, tag: str, policy: str = "none") -> Handle:
        """Send to a rank of the group, which must receive; sends to one peer arrive in order."""
        return self._request(
            Operation.SEND,
            tensor,
            lambda group: dist.isend(tensor, peer, group=group),
            axis=axis,
            tag=tag,
            policy=policy,
            peer=peer,
        )

    def receive(self, tensor: torch.Tensor, *, peer: int, axis: Axis, tag: str, policy: str = "none") -> Handle:
        """Receive into a tensor what a rank of the group sends."""
        return self._request(
            Operation.RECEIVE,
            tensor,
            lambda group: dist.irecv(tensor, peer, group=group),
            axis=axis,
            tag=tag,
            policy=policy,
            peer=peer,
        )

    def barrier(self, *, axis: Axis, tag: str, policy: str = "none") -> Handle:
        """Complete when every member has asked."""
        return self._request(
            Operation.BARRIER,
            torch.empty(0),
            lambda group: dist.barrier(group=group, async_op=True),
            axis=axis,
            tag=tag,
            policy=policy,
        )

    def _request(
        self,
        operation: Operation,
        tensor: torch.Tensor,
        start: Callable[[dist.ProcessGroup], dist.Work | None],
        *,
        axis: Axis,
        tag: str,
        policy: str,
        peer: int = UNKNOWN,
        finish: Callable[[], object] | None = None,
    ) -> Handle:
        """Enter a request, start it, and return the handle whose wait ends it."""
        request = self._ledger.issue(
            Request(
                operation=operation,
                group=self._group[axis],
                num_bytes=tensor.numel() * tensor.element_size(),
                step=self.step,
                axis=axis,
                policy=policy,
                tag=tag,
                peer=peer,
            )
        )
        group = self._process_group[axis]
        work = start(group) if group is not None else None

        def block() -> None:
            if work is not None:
                work.wait()
            if finish is not None:
                finish()

        return Handle(lambda: self._ledger.wait(request, block))


def _scattered_sum(
    output: torch.Tensor, tensor: torch.Tensor, *, size: int
) -> tuple[Callable[[dist.ProcessGroup], dist.Work | None], Callable[[], object] | None]:
    """Return how a reduce-scatter over `size` ranks is started, and what is left to do once it has ended."""
    if tensor.is_cuda and size > 1:
        return lambda group: dist.reduce_scatter_tensor(output, tensor, group=group, async_op=True), None
    parts = torch.empty_like(tensor)
    if size == 1:
        parts.copy_(tensor)
    return (
        lambda group: dist.all_to_all_single(parts, tensor, group=group, async_op=True),
        lambda: torch.sum(parts.view(size, *output.shape), 0, out=output),
    )
