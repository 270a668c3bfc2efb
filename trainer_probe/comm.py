"""Comm: the only way a rank communicates with others.

Every communication of a step is named (operation, axis, tag, policy) and recorded in a ledger with its bytes and times,
so that it can be traced, replaced, and simulated. Requests return at once with a handle; the wait on it is exposed
communication. Groups are those of the layout's axes, made when the rank started (`collectives/startup`). Messages from
one rank to another share a communicator with no others, so that they wait only for one another. What the run itself
needs around its steps (communicators, a common origin of time, the collection of traces) goes through Comm too,
unrecorded.

Left out: other reductions than sums; the true end of a request that is waited for late (the wait's end is recorded).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from fabrictune.collectives.startup.groups import MESSAGE_AXES, axis_group_name, down_group_name
from fabrictune.collectives.startup.process_groups import Member, limit_requests
from fabrictune.foundation.layout import Axis, ParallelLayout
from fabrictune.foundation.traces import UNKNOWN, CommTrace, Operation
from fabrictune.trainer_probe.clocks import ClockOffset, HostClock, Moment, clock_offset
from fabrictune.trainer_probe.ledger import Entry, Ledger, Request
from fabrictune.trainer_probe.packing import pack, unpack

NUM_MEETINGS = 5  # of all ranks, by which clocks are compared

# torch 2.13 renames these and warns of the old names.
_ALL_GATHER = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_REDUCE_SCATTER = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


class Handle:
    """A request in flight."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self._wait: Callable[[], None] | None = wait

    def wait(self) -> None:
        """Return when the request is complete; a second call returns at once."""
        if self._wait is not None:
            wait, self._wait = self._wait, None
            wait()


class Comm:
    """The communication of one rank of a layout over its process groups, recorded in `ledger`.

    Without a ledger, one that measures. `step` is recorded with each request and set by the trainer. Recorded sizes are
    nccl-tests': the full buffer of the operation on one rank.
    """

    def __init__(self, layout: ParallelLayout, member: Member, ledger: Ledger[Any] | None = None) -> None:
        self.layout = layout
        self.rank = rank = member.rank
        self._member = member  # whose store is asked when ranks first meet
        self.step = 0
        self._groups = layout.axis_groups()
        self._group: dict[Axis, int] = {}
        self._process_group: dict[Axis, dist.ProcessGroup | None] = {}
        self._down_group: dict[Axis, dist.ProcessGroup | None] = {}  # of messages to earlier ranks
        first = 0
        for axis in layout.axes:
            groups = layout.groups(axis).tolist()
            number = next(number for number, ranks in enumerate(groups) if rank in ranks)
            self._group[axis] = first + number
            own = self._process_group[axis] = member.process_groups.get(axis_group_name(axis, number))
            found = [rank] if own is None else dist.get_process_group_ranks(own)
            assert found == groups[number], f"{axis}: process groups of another layout"
            has_down = own is not None and axis in MESSAGE_AXES
            self._down_group[axis] = member.process_groups[down_group_name(axis, number)] if has_down else own
            first += len(groups)
        self.clock = ClockOffset(offset_ns=0, error_ns=0)  # of this rank's, as `restart_ledger` has found it
        self._ledger: Ledger[Any] = Ledger(rank, self._groups, HostClock()) if ledger is None else ledger

    def members(self, axis: Axis) -> tuple[int, ...]:
        """Return the ranks of this rank's group along an axis, in ring order."""
        return self._groups[self._group[axis]]

    def connect(self, pairs: Mapping[Axis, Iterable[tuple[int, int]]], device: torch.device) -> None:
        """Make the communicators of all axes, and those of messages from one place of an axis to another.

        Every rank calls this with the same `pairs` of a sender and a receiver, before other requests. NCCL makes a
        communicator at its first request, which keeps each rank until the others have come to theirs: in a pipeline's
        own order ranks can then wait for one another, in the one order of this call they cannot.
        """
        element = torch.zeros(1, device=device)
        for group in filter(None, self._process_group.values()):
            assert group.bound_device_id is None, "made at once, a group has one communicator for all its pairs"
        self._meet(element)
        for axis, pairs_of_axis in pairs.items():
            for sender, receiver in sorted(pairs_of_axis, key=_by_disjoint_pairs):  # none along an axis without groups
                members = self.members(axis)
                carrier = (self._down_group if receiver < sender else self._process_group)[axis]
                if self.rank == members[sender]:
                    dist.send(element, members[receiver], group=carrier)
                elif self.rank == members[receiver]:
                    dist.recv(element, members[sender], group=carrier)

    def limit_requests(self, timeout_s: float) -> None:
        """Let later requests fail that are not complete after `timeout_s`."""
        groups = {*self._process_group.values(), *self._down_group.values()}
        limit_requests((group for group in groups if group is not None), timeout_s)

    def trace(self) -> CommTrace:
        """Return this rank's requests so far."""
        return self._ledger.trace()

    def exposed_wait_ns(self) -> Mapping[str, int]:
        """Return by axis how long this rank has waited for requests so far, dropped ones included."""
        return self._ledger.exposed_wait_ns()

    @property
    def origin_ns(self) -> int:
        """The ledger's origin of time, by the machine's clock."""
        return self._ledger.origin_ns

    def clock_reading(self) -> Any:
        """Return a reading of the clock of this rank's work, for `since_origin_ns`."""
        return self._ledger.clock.read()

    def since_origin_ns(self, reading: Any) -> int:
        """Return a reading in ns since the ledger's origin of time, once its moment has come."""
        return self._ledger.clock.ns(reading) - self._ledger.origin_ns

    def take_requests(self) -> Sequence[Entry[Any]]:
        """Return the requests since the last call or `forget_requests`."""
        return self._ledger.take_new()

    def forget_requests(self) -> None:
        """Drop earlier requests, none of which may be in flight, so that the ledger of a long run stays short."""
        self._ledger.forget()

    def restart_ledger(self) -> None:
        """Synchronize all ranks, drop earlier requests, and set the origin of time to one moment of rank 0 for all."""
        meetings = [self._timed_meeting() for _ in range(NUM_MEETINGS)]
        own = Moment.now(self._ledger.now_ns())
        first = torch.tensor([own.numbers(), *((*meeting, 0, 0) for meeting in meetings)], dtype=torch.int64)
        for axis, group in self._process_group.items():
            if group is not None:  # from rank 0 along one axis after another: each group's first member has it by then
                dist.broadcast(first, self.members(axis)[0], group=group)
        origin, *firsts = first.tolist()
        self.clock = clock_offset(own, Moment.of(origin), meetings, [(came, left) for came, left, *_ in firsts])
        origin_ns = origin[0] + self.clock.offset_ns
        self._ledger.restart(min(origin_ns, self._ledger.now_ns()))  # not in the future, if a time of day is ahead

    def _timed_meeting(self) -> tuple[int, int]:
        """Return when this rank comes to a meeting of all ranks, and when it leaves."""
        came_ns = self._ledger.now_ns()
        self._meet(torch.zeros(1))
        return came_ns, self._ledger.now_ns()

    def _meet(self, element: torch.Tensor) -> None:
        """Return when all ranks have called this; along one axis after another, over connections that a step uses."""
        for group in filter(None, self._process_group.values()):
            dist.all_reduce(element, group=group)

    def gather_bytes(self, content: bytes) -> list[bytes] | None:
        """Return every rank's content, in order of ranks, on rank 0, and None on the others; every rank calls this."""
        contents = {self.rank: content}
        for axis in self.layout.rank_axes:  # along one after another: each group's first has them by then
            members, group = self.members(axis), self._process_group[axis]
            if group is not None:
                contents = {rank: own for part in _gather(pack(contents), group) for rank, own in unpack(part).items()}
            if self.rank != members[0]:
                return None
        return [contents[rank] for rank in range(self.layout.world_size)]

    def exchange_bytes(self, content: bytes) -> list[bytes]:
        """Return every rank's content, in order of ranks; every rank calls this."""
        contents = self.gather_bytes(content)
        packed = b"" if contents is None else pack(dict(enumerate(contents)))
        size = torch.tensor([len(packed)])
        self._spread(size)
        whole = torch.frombuffer(bytearray(packed or int(size)), dtype=torch.uint8)
        self._spread(whole)
        found = unpack(whole.numpy().tobytes())
        return [found[rank] for rank in range(self.layout.world_size)]

    def share(self, tensor: torch.Tensor, *, root: int, axis: Axis) -> None:
        """Overwrite the tensors of the group with that of rank `root`, unrecorded; for what is read before the run."""
        group = self._process_group[axis]
        if group is not None:
            dist.broadcast(tensor, root, group=group)

    def _spread(self, tensor: torch.Tensor) -> None:
        """Overwrite a tensor in host memory with that of rank 0: along one axis after another, as in restart_ledger."""
        for axis in self.layout.rank_axes:
            self.share(tensor, root=self.members(axis)[0], axis=axis)

    def all_reduce(self, tensor: torch.Tensor, *, axis: Axis, tag: str, policy: str = "none") -> Handle:
        """Sum the tensors of the group, in place."""
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
        """Sum the group's tensors and write this member's part, by its place in the group, to `output`.

        On a CPU an all-to-all and a local sum: gloo's own reduce-scatter is an all-reduce, which moves twice the bytes.
        The meta device stands for a GPU.
        """
        start, finish = _scattered_sum(output, tensor, size=len(self.members(axis)))
        return self._request(Operation.REDUCE_SCATTER, tensor, start, axis=axis, tag=tag, policy=policy, finish=finish)

    def all_gather(
        self, output: torch.Tensor, tensor: torch.Tensor, *, axis: Axis, tag: str, policy: str = "none"
    ) -> Handle:
        """Concatenate the group's tensors in `output`; both are contiguous."""
        if len(self.members(axis)) == 1:
            output.view(tensor.shape).copy_(tensor)
        return self._request(
            Operation.ALL_GATHER,
            output,
            lambda group: _ALL_GATHER(output.view(-1), tensor.view(-1), group=group, async_op=True),
            axis=axis,
            tag=tag,
            policy=policy,
        )

    def all_to_all(
        self, output: torch.Tensor, tensor: torch.Tensor, *, axis: Axis, tag: str, policy: str = "none"
    ) -> Handle:
        """Send each member its part of `tensor`, equal parts in order; `output` takes the parts of all members."""
        if len(self.members(axis)) == 1:
            output.copy_(tensor)
        return self._request(
            Operation.ALL_TO_ALL,
            tensor,
            lambda group: dist.all_to_all_single(output, tensor, group=group, async_op=True),
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
        """Send to a rank of the group, which must receive; messages to one peer arrive in order."""
        return self._request(
            Operation.SEND,
            tensor,
            lambda group: dist.isend(tensor, peer, group=group),
            axis=axis,
            tag=tag,
            policy=policy,
            peer=peer,
            is_down=peer < self.rank,
        )

    def receive(self, tensor: torch.Tensor, *, peer: int, axis: Axis, tag: str, policy: str = "none") -> Handle:
        """Receive a tensor from a rank of the group, in place."""
        return self._request(
            Operation.RECEIVE,
            tensor,
            lambda group: dist.irecv(tensor, peer, group=group),
            axis=axis,
            tag=tag,
            policy=policy,
            peer=peer,
            is_down=self.rank < peer,
        )

    def barrier(self, *, axis: Axis, tag: str, policy: str = "none") -> Handle:
        """Complete when every member has made the request."""
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
        is_down: bool = False,
        finish: Callable[[], object] | None = None,
    ) -> Handle:
        """Record a request, start it, and return its handle."""
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
        group = (self._down_group if is_down else self._process_group)[axis]
        work = start(group) if group is not None else None

        def block() -> None:
            if work is not None:
                work.wait()
            if finish is not None:
                finish()

        return Handle(lambda: self._ledger.wait(request, block))


def _by_disjoint_pairs(pair: tuple[int, int]) -> tuple[bool, int, tuple[int, int]]:
    """Order pairs of neighbours so that those next to one another have no rank in common, and do not wait."""
    return pair[0] > pair[1], min(pair) % 2, pair


def _gather(content: bytes, group: dist.ProcessGroup) -> list[bytes]:
    """Return the content of each member of a group on the first of them, padded with zeros; nothing on the others."""
    own = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(group.size())]
    dist.all_gather(sizes, torch.tensor([len(own)]), group=group)
    padded = torch.zeros(int(max(sizes)), dtype=torch.uint8)
    padded[: len(own)] = own
    parts = [torch.empty_like(padded) for _ in sizes] if group.rank() == 0 else None
    dist.gather(padded, parts, group=group, group_dst=0)
    return [part.numpy().tobytes() for part in parts or ()]


def _scattered_sum(
    output: torch.Tensor, tensor: torch.Tensor, *, size: int
) -> tuple[Callable[[dist.ProcessGroup], dist.Work | None], Callable[[], object] | None]:
    """Return the functions that start a reduce-scatter over `size` ranks, and that finish it locally, if any."""
    if (tensor.is_cuda or tensor.is_meta) and size > 1:
        return lambda group: _REDUCE_SCATTER(output, tensor, group=group, async_op=True), None
    parts = torch.empty_like(tensor)
    if size == 1:
        parts.copy_(tensor)
    return (
        lambda group: dist.all_to_all_single(parts, tensor, group=group, async_op=True),
        lambda: torch.sum(parts.view(size, *output.shape), 0, out=output),
    )
