"""A proof that a pipeline's programs end: they are executed by rules under which no timing matters.

A message is transferred when it is at the head of a queue of its sender and of one of its receiver; neither may pass
its wait before that. A transport says which messages share a queue. gloo has one for each message. NCCL executes the
requests of a communicator one after another, in order of issue, and buffers nothing. Its waits return at once to the
host and make the GPU's work wait instead; a request begins when that work has come to its place in the program. So it
is here, where a rank is its work. A GPU with one launch queue begins nothing behind a request that cannot begin. The
n-th message sent to a rank must be the n-th that it posts from the sender, since NCCL knows no tags.

A condition that a step waits for stays true, and a message at both heads stays there until it is transferred. So if the
ranks end in one order of execution, they end in all, and if none can advance, they never can. For the same reason ranks
end where less blocks them: over a transport that buffers messages, or with more launch queues than one.

Left out: collectives. Their ranks have the same place in other pipelines and run the same program, so none waits in the
order of execution in which all pipelines advance alike. Room on a GPU for the kernels of all communicators.

Source: torch, `ProcessGroupNCCL::pointToPoint`; CUDA C++ Programming Guide, `CUDA_DEVICE_MAX_CONNECTIONS`.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.trainer_probe.parallel.program import Message, Program, Step, make_program
from fabrictune.trainer_probe.parallel.schedule import PipelineShape


@dataclass(frozen=True, kw_only=True)
class Transport:
    """What carries messages: which of them share a queue, and whether a GPU launches in order."""

    name: str
    queue_of: Callable[[Message], Hashable]  # the same at both ends
    launches_in_order: bool = False  # nothing passes a request whose queue is not empty


def one_way(message: Message) -> Hashable:
    """Return the communicator of a message as `Comm` chooses it: its group, and of that the pair of ranks."""
    return message.sender, message.receiver


TRANSPORTS = (  # each blocks whatever the one before it blocks
    Transport(name="gloo", queue_of=lambda message: message),
    Transport(name="NCCL", queue_of=one_way),
    Transport(name="NCCL with one launch queue", queue_of=one_way, launches_in_order=True),
)


@lru_cache(maxsize=8)
def proved_programs(shape: PipelineShape, *, is_decoupled: bool) -> tuple[Program, ...]:
    """Return the programs of all ranks of a pipeline, played over the transport that blocks most.

    Raises InputError where they deadlock.
    """
    programs = tuple(make_program(shape, rank, is_decoupled=is_decoupled) for rank in range(shape.pp))
    transport = TRANSPORTS[-1]
    if blocked := find_deadlock(programs, transport):
        raise InputError(
            Mistake(
                where=f"pipeline of pp {shape.pp}, virtual {shape.virtual}, num_batches {shape.num_batches}",
                found=f"deadlocks over {transport.name}: {blocked[0]}",
                allowed="a schedule that every rank can finish",
                next_step="choose other degrees, or another overlap",
            )
        )
    return programs


def find_deadlock(programs: Sequence[Program], transport: Transport) -> list[str]:
    """Return the step at which each rank of a deadlock is blocked; empty where all end.

    Raises ValueError where a rank posts other messages than it is sent.
    """
    messages = _Messages(transport)
    places = [0] * len(programs)
    has_advanced = True
    while has_advanced:
        has_advanced = False
        for rank, program in enumerate(programs):
            while places[rank] < len(program) and messages.advance(rank, program[places[rank]]):
                places[rank] += 1
                has_advanced = True
    messages.check_order()
    return [
        f"rank {rank}, step {place} of {len(program)}: {program[place].kind} {program[place].subject}"
        for rank, (place, program) in enumerate(zip(places, programs, strict=True))
        if place < len(program)
    ]


class _Messages:
    """Messages sent and posted so far, and the queues of those not yet transferred."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._sent: defaultdict[tuple[int, int], list[Message]] = defaultdict(list)  # by sender and receiver
        self._posted: defaultdict[tuple[int, int], list[Message]] = defaultdict(list)
        self._queues: defaultdict[tuple[int, Hashable], deque[Message]] = defaultdict(deque)  # by rank
        self._transferred: set[Message] = set()

    def advance(self, rank: int, step: Step) -> bool:
        """Execute a rank's step if nothing blocks it; returns whether it was executed."""
        message = step.subject
        if not isinstance(message, Message):
            return True
        if step.kind not in ("send", "post"):
            return message in self._transferred
        queue = self._queue(rank, message)
        if queue and self._transport.launches_in_order:
            return False
        queue.append(message)
        entered = self._sent if step.kind == "send" else self._posted
        entered[message.sender, message.receiver].append(message)
        self._transfer(message)
        return True

    def _queue(self, rank: int, message: Message) -> deque[Message]:
        return self._queues[rank, self._transport.queue_of(message)]

    def _transfer(self, message: Message) -> None:
        """Transfer a message, and those behind it, while each is at the head of both its queues."""
        candidates = [message]
        while candidates:
            message = candidates.pop()
            ends = [self._queue(rank, message) for rank in (message.sender, message.receiver)]
            if all(queue and queue[0] == message for queue in ends):
                self._transferred.add(message)
                for queue in ends:
                    queue.popleft()
                candidates += [queue[0] for queue in ends if queue]

    def check_order(self) -> None:
        for pair, sent in self._sent.items():
            for ours, theirs in zip(sent, self._posted[pair], strict=False):
                if ours != theirs:
                    raise ValueError(f"rank {pair[0]} sends {ours}, where rank {pair[1]} has posted {theirs}")
