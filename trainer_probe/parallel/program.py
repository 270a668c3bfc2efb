"""A rank's program of one step: its passes, with the sends and receives between them.

Decoupled, one message from each rank that sends to this one is posted ahead, the next when that is taken, and a send is
waited for when the next to the same rank needs its place. So a communicator never has a second request behind one under
way, which a GPU with one launch queue would let nothing else pass. Coupled, a rank is blocked after each pass until its
send is done; it posts receives together with the send, those of two passes, since with those of one pass two ranks of
two chunks deadlock.
Messages from one rank to another arrive in the order in which they are sent, whatever their kind, so receives are
posted in the sender's order, which every rank knows from the schedule.

Source: MegaScale (NSDI'24), section 3.2, "overlapping in pipeline parallelism".
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from fabrictune.trainer_probe.parallel.schedule import Pass, PassKind, PipelineShape
from fabrictune.trainer_probe.parallel.schedules.table import passes_of_rank

_WAYS: Mapping[PassKind, int] = {"forward": 1, "backward": -1, "weights": 0}  # stages from a pass to its next
POSTED_AHEAD = 2  # passes whose inputs are posted with a coupled send: one forward, one backward

Kind = Literal["run", "post", "await_receive", "send", "await_send"]


@dataclass(frozen=True, kw_only=True)
class Message:
    """Input of a pass from another rank: activations of a forward pass, their gradient of a backward pass."""

    sender: int
    receiver: int
    taken_by: Pass

    def __str__(self) -> str:
        return f"{self.taken_by} from rank {self.sender} to rank {self.receiver}"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a rank: it runs a pass, or begins or ends its part in a message."""

    kind: Kind
    subject: Pass | Message


Program = tuple[Step, ...]


def make_program(shape: PipelineShape, rank: int, *, is_decoupled: bool) -> Program:
    """Return the program of the pipeline's rank `rank`."""
    writer = _Writer(shape, rank)
    steps = writer.decoupled() if is_decoupled else writer.coupled()
    return tuple(steps)


def input_of(shape: PipelineShape, taken_by: Pass) -> Message | None:
    """Return the input of a pass from another rank, None where it is the batch, the loss, or this rank's own."""
    way = _WAYS[taken_by.kind]
    source = taken_by.stage - way
    if not way or not 0 <= source < shape.num_stages or shape.pp == 1:
        return None
    return Message(sender=source % shape.pp, receiver=taken_by.stage % shape.pp, taken_by=taken_by)


def output_of(shape: PipelineShape, given_by: Pass) -> Message | None:
    """Return the output of a pass to another rank, None where it is the loss or nothing."""
    way = _WAYS[given_by.kind]
    target = given_by.stage + way
    if not way or not 0 <= target < shape.num_stages:
        return None
    return input_of(shape, Pass(kind=given_by.kind, stage=target, batch=given_by.batch))


def pairs_of(programs: Iterable[Program]) -> frozenset[tuple[int, int]]:
    """Return the places of the pipeline between which messages go, sender and receiver."""
    subjects = (step.subject for program in programs for step in program)
    return frozenset((subject.sender, subject.receiver) for subject in subjects if isinstance(subject, Message))


class _Writer:
    """Writes the program of one rank."""

    def __init__(self, shape: PipelineShape, rank: int) -> None:
        self._shape = shape
        self._passes = passes_of_rank(shape, rank)
        senders = {message.sender for message in map(self._input, self._passes) if message}
        self._to_post = {sender: list(_messages_between(shape, sender, rank)) for sender in sorted(senders)}

    def decoupled(self) -> Iterator[Step]:
        for sender in self._to_post:
            yield from self._post_next(sender)
        in_flight: dict[int, Message] = {}  # by receiver
        for now in self._passes:
            if wanted := self._input(now):
                yield Step(kind="await_receive", subject=wanted)
                yield from self._post_next(wanted.sender)
            yield Step(kind="run", subject=now)
            if output := output_of(self._shape, now):
                yield from _steps("await_send", in_flight.get(output.receiver))
                yield Step(kind="send", subject=output)
                in_flight[output.receiver] = output
        for message in in_flight.values():
            yield Step(kind="await_send", subject=message)

    def coupled(self) -> Iterator[Step]:
        for number, now in enumerate(self._passes):
            yield from self._post(self._input(now))
            yield from _steps("await_receive", self._input(now))
            yield Step(kind="run", subject=now)
            output = output_of(self._shape, now)
            yield from _steps("send", output)
            receiving = (later for later in self._passes[number + 1 :] if later.kind != "weights")
            for ahead in islice(receiving, POSTED_AHEAD):
                yield from self._post(self._input(ahead))
            yield from _steps("await_send", output)

    def _input(self, taken_by: Pass) -> Message | None:
        return input_of(self._shape, taken_by)

    def _post_next(self, sender: int) -> Iterator[Step]:
        if waiting := self._to_post[sender]:
            yield Step(kind="post", subject=waiting.pop(0))

    def _post(self, wanted: Message | None) -> Iterator[Step]:
        """Post the sender's messages up to `wanted`, unless that is posted."""
        waiting = self._to_post[wanted.sender] if wanted else []
        while wanted in waiting:
            yield Step(kind="post", subject=waiting.pop(0))


def _messages_between(shape: PipelineShape, sender: int, receiver: int) -> Iterator[Message]:
    """Return the messages of one rank to another, in order."""
    for given_by in passes_of_rank(shape, sender):
        message = output_of(shape, given_by)
        if message and message.receiver == receiver:
            yield message


def _steps(kind: Kind, message: Message | None) -> Iterator[Step]:
    if message:
        yield Step(kind=kind, subject=message)
