"""A torch backend for CPUs that executes requests in NCCL's order.

NCCL executes the requests of a communicator one after another, in order of issue, each when all its ranks have come to
it, and buffers nothing. torch makes a communicator at its first request, which holds the host until all its ranks have
come to theirs: one of all ranks of a group, and one for each pair of ranks that exchanges messages. gloo does neither,
so that a program that trains over gloo may hang on GPUs. With this backend it hangs on CPUs too: each communicator is a
gloo group of its own, whose requests one thread executes. Results are gloo's, bit for bit.

Ranks that have come to requests which do not belong together would wait on a GPU for ever. Here they compare before
they execute, and each raises DesynchronizedError with what all of them have come to.

Source: torch 2.13, `ProcessGroupNCCL.cpp` (`getKeySendRecv`, `pointToPoint`, `collective`).
Left out: operations that no trainer uses (reduce, scatter, gathering into one tensor); waits that leave the host free,
since on a CPU the host is what works.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from queue import SimpleQueue
from typing import Any

import torch
import torch.distributed as dist

from fabrictune.foundation.errors import Mistake, UnavailableError

ORDERED = "ordered"
_OPERATIONS = ("message", "all-reduce", "all-gather", "broadcast", "all-to-all", "gather", "barrier")


class DesynchronizedError(UnavailableError):
    """Ranks of a communicator that have come to requests which do not belong together: over NCCL they hang."""


def register_ordered_backend() -> None:
    """Let torch make process groups of the backend `ordered`."""
    if not hasattr(dist.Backend, ORDERED.upper()):
        dist.Backend.register_backend(ORDERED, OrderedProcessGroup, extended_api=True, devices=["cpu"])


@dataclass(frozen=True, kw_only=True)
class OrderedRequest:
    """What a rank has come to. Requests of several ranks belong together where they are equal."""

    operation: str
    num_bytes: int
    sender: int = -1  # rank of a message's sender or of a broadcast's root
    receiver: int = -1

    def __str__(self) -> str:
        if self.operation == "message":
            return f"message of {self.num_bytes} B from rank {self.sender} to rank {self.receiver}"
        return f"{self.operation} of {self.num_bytes} B" + (f" from rank {self.sender}" if self.sender >= 0 else "")

    def numbers(self) -> torch.Tensor:
        """Return the request as numbers that ranks exchange."""
        return torch.tensor([_OPERATIONS.index(self.operation), self.num_bytes, self.sender, self.receiver])

    @classmethod
    def of(cls, numbers: torch.Tensor) -> "OrderedRequest":
        """Return the request with these numbers."""
        operation, num_bytes, sender, receiver = numbers.tolist()
        return cls(operation=_OPERATIONS[operation], num_bytes=num_bytes, sender=sender, receiver=receiver)


Execute = Callable[[Any], Any]  # starts a request in gloo, whose work it returns


class OrderedWork(dist.Work):
    """A request in a communicator's queue."""

    def __init__(self, request: OrderedRequest, execute: Execute) -> None:
        super().__init__()
        self.request, self.execute = request, execute
        self._is_over = threading.Event()
        self._error: BaseException | None = None

    def finish(self, error: BaseException | None = None) -> None:
        """Let waits return, or raise the error."""
        self._error = error
        self._is_over.set()

    def is_completed(self) -> bool:
        """Return whether the request is over."""
        return self._is_over.is_set()

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Return when the request is complete; raises the error that ended it. gloo's time limit holds."""
        self._is_over.wait()
        if self._error is not None:
            raise self._error
        return True


class Communicator:
    """The queue of some ranks' requests, and the thread that executes them in order. Making it waits for all ranks."""

    def __init__(self, store: dist.Store, members: Sequence[int], rank: int, timeout: timedelta) -> None:
        self._members, self._rank = members, rank
        self._gloo: Any = dist.ProcessGroupGloo(store, members.index(rank), len(members), timeout)
        self._gloo.barrier(dist.BarrierOptions()).wait()  # type: ignore[attr-defined]  # torch's stub lacks it
        self._queue = SimpleQueue[OrderedWork | None]()
        threading.Thread(target=self._execute_in_order, daemon=True).start()

    def issue(self, request: OrderedRequest, execute: Execute) -> OrderedWork:
        """Put a request at the end of the queue."""
        work = OrderedWork(request, execute)
        self._queue.put(work)
        return work

    def close(self) -> None:
        """End the thread behind the last request."""
        self._queue.put(None)

    def _execute_in_order(self) -> None:
        error: BaseException | None = None  # of a request, and so of all behind it
        while work := self._queue.get():
            try:
                if error is None:
                    self._meet(work.request)
                    work.execute(self._gloo).wait()
            except Exception as raised:
                error = raised
            work.finish(error)

    def _meet(self, request: OrderedRequest) -> None:
        """Return when all ranks have come to a request; raises DesynchronizedError where these differ."""
        own = request.numbers()
        others = [torch.empty_like(own) for _ in self._members]
        self._gloo.allgather([others], [own]).wait()
        requests = [OrderedRequest.of(numbers) for numbers in others]
        if any(other != request for other in requests):
            places = "; ".join(f"rank {rank}: {other}" for rank, other in zip(self._members, requests, strict=True))
            raise DesynchronizedError(
                Mistake(
                    where=f"communicator of ranks {', '.join(map(str, self._members))}",
                    found=f"requests that do not belong together ({places})",
                    next_step="issue the requests of a communicator in the same order on all its ranks",
                )
            )


class OrderedProcessGroup(dist.ProcessGroup):
    """A process group over communicators that are made at first use, by the rules of torch's group over NCCL."""

    def __init__(self, options: Any, _: object = None) -> None:
        super().__init__(options.group_rank, options.group_size)  # type: ignore[call-arg]  # a Python group needs no store
        self._store, self._timeout = options.store, options.timeout
        self._members: Sequence[int] = options.global_ranks_in_group or range(options.group_size)
        self._communicators: dict[tuple[int, ...], Communicator] = {}

    def getBackendName(self) -> str:
        """Return the name by which torch knows the backend."""
        return ORDERED

    def shutdown(self) -> None:
        """End the threads of all communicators."""
        for communicator in self._communicators.values():
            communicator.close()
        self._communicators.clear()

    def send(self, tensors: list[torch.Tensor], peer: int, tag: int = 0) -> OrderedWork:
        """Send to a rank of the group, by its place."""
        pair = tuple(sorted((self.rank(), peer)))
        return self._message(tensors, self.rank(), peer, lambda gloo: gloo.send(tensors, pair.index(peer), tag))

    def recv(self, tensors: list[torch.Tensor], peer: int, tag: int = 0) -> OrderedWork:
        """Receive from a rank of the group, by its place."""
        pair = tuple(sorted((self.rank(), peer)))
        return self._message(tensors, peer, self.rank(), lambda gloo: gloo.recv(tensors, pair.index(peer), tag))

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> OrderedWork:  # type: ignore[override]
        """Sum, or reduce otherwise, in place."""
        return self._collective("all-reduce", tensors, lambda gloo: gloo.allreduce(tensors, opts))

    def allgather(  # type: ignore[override]
        self, outputs: list[list[torch.Tensor]], tensors: list[torch.Tensor], opts: Any = None
    ) -> OrderedWork:
        """Gather every rank's tensor on all."""
        return self._collective("all-gather", tensors, lambda gloo: gloo.allgather(outputs, tensors, opts))

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> OrderedWork:
        """Gather every rank's tensor on all, one behind the other in one tensor."""
        outputs = [list(output.view(self.size(), *tensor.shape).unbind())]
        return self._collective("all-gather", [tensor], lambda gloo: gloo.allgather(outputs, [tensor]))

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> OrderedWork:  # noqa: A002
        """Gather as above; the name before torch 2.13."""
        return self.all_gather_single(output, input, opts)

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> OrderedWork:  # type: ignore[override]
        """Copy the tensor of a root to all."""
        return self._collective("broadcast", tensors, lambda gloo: gloo.broadcast(tensors, opts), opts.rootRank)

    def alltoall_base(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_sizes: list[int],
        sizes: list[int],
        opts: Any = None,
    ) -> OrderedWork:
        """Exchange parts of a tensor."""
        return self._collective(
            "all-to-all", [tensor], lambda gloo: gloo.alltoall_base(output, tensor, output_sizes, sizes, opts)
        )

    def gather(self, outputs: list[list[torch.Tensor]], tensors: list[torch.Tensor], opts: Any) -> OrderedWork:  # type: ignore[override]
        """Gather every rank's tensor on a root."""
        return self._collective("gather", tensors, lambda gloo: gloo.gather(outputs, tensors, opts), opts.rootRank)

    def barrier(self, opts: Any = None) -> OrderedWork:
        """Complete when all ranks have come to it."""
        return self._collective("barrier", [], lambda gloo: gloo.barrier(opts))

    def _message(self, tensors: list[torch.Tensor], sender: int, receiver: int, execute: Execute) -> OrderedWork:
        request = OrderedRequest(
            operation="message",
            num_bytes=_num_bytes(tensors),
            sender=self._members[sender],
            receiver=self._members[receiver],
        )
        return self._communicator(tuple(sorted((sender, receiver)))).issue(request, execute)

    def _collective(
        self, operation: str, tensors: list[torch.Tensor], execute: Execute, root: int | None = None
    ) -> OrderedWork:
        sender = -1 if root is None else self._members[root]
        request = OrderedRequest(operation=operation, num_bytes=_num_bytes(tensors), sender=sender)
        return self._communicator(()).issue(request, execute)

    def _communicator(self, pair: tuple[int, ...]) -> Communicator:
        """Return the communicator of a pair of places, or of all; makes it at its first request."""
        if pair not in self._communicators:
            store = dist.PrefixStore(":".join(map(str, pair)) or "all", self._store)
            members = [self._members[place] for place in pair or range(self.size())]
            self._communicators[pair] = Communicator(store, members, self._members[self.rank()], self._timeout)
        return self._communicators[pair]


def _num_bytes(tensors: list[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
