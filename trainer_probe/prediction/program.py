"""The program of a step: what a rank at each pipeline place does, in the trainer's order, without times.

The trainer's dry run is written down: segments of operations, requests, and waits for them. A pass is written down
once, as a block; its replays for other micro-batches refer to the block. Blocks, segments and requests that are alike
at several places are one.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

from fabrictune.foundation.layout import Groups
from fabrictune.foundation.traces import Operation
from fabrictune.trainer_probe.clocks import HostClock
from fabrictune.trainer_probe.ledger import Ledger, Request
from fabrictune.trainer_probe.planning.operation_costs import Work

Item = TypeVar("Item", bound=Hashable)


class EventKind(IntEnum):
    """Kind of an event; its value is the number of what it names."""

    WORK = 0  # a segment
    ISSUE = 1  # a request
    WAIT = 2  # the ordinal of a request among those of its block
    RUN = 3  # a block


Event = tuple[EventKind, int]
Block = tuple[Event, ...]


@dataclass(frozen=True, kw_only=True)
class ProgramRequest:
    """A request as far as its duration depends on it."""

    kind: Operation
    axis: str
    num_bytes: int  # nccl-tests' size
    members: tuple[int, ...]  # of the group, in ring order
    rank: int
    peer: int


@dataclass(frozen=True, kw_only=True)
class ProgramWork:
    """An operation, and the part of the step that it belongs to."""

    work: Work
    part: str
    num_chunks: int = 1  # of one product, cut by rows to overlap with a collective
    is_chunk_copy: bool = False  # whether it copies the rows of such a chunk


Segment = tuple[ProgramWork, ...]  # between two requests or waits


@dataclass(frozen=True, kw_only=True)
class StepProgram:
    """A step of all pipeline places; events name segments, requests and blocks by number."""

    segments: tuple[Segment, ...]
    requests: tuple[ProgramRequest, ...]
    blocks: tuple[Block, ...]
    steps: tuple[Block, ...]  # of a rank at each place
    is_blocking: bool  # whether hosts synchronise after messages of the pipeline


class Numbering(Generic[Item]):
    """Distinct items, numbered in the order in which they are first met."""

    def __init__(self) -> None:
        self._number: dict[Item, int] = {}

    def number(self, item: Item) -> int:
        """Return the number of an item."""
        return self._number.setdefault(item, len(self._number))

    def items(self) -> tuple[Item, ...]:
        """Return the items in order."""
        return tuple(self._number)


class ProgramWriter:
    """Writes the program of a step, one place after another."""

    def __init__(self) -> None:
        self.segments = Numbering[Segment]()
        self.requests = Numbering[ProgramRequest]()
        self.blocks = Numbering[Block]()
        self._steps: list[Block] = []

    def add_place(self, step: Block) -> None:
        """Add the step of the next place."""
        self._steps.append(step)

    def program(self, *, is_blocking: bool) -> StepProgram:
        """Return the program so far."""
        return StepProgram(
            segments=self.segments.items(),
            requests=self.requests.items(),
            blocks=self.blocks.items(),
            steps=tuple(self._steps),
            is_blocking=is_blocking,
        )


class ProgramLedger(Ledger[int]):
    """A ledger that writes down a rank's requests, waits and operations as events.

    `take_operations` returns the operations since it was called last.
    """

    def __init__(
        self, rank: int, groups: Groups, writer: ProgramWriter, take_operations: Callable[[], Segment]
    ) -> None:
        super().__init__(rank, groups, HostClock(lambda: 0))
        self._writer = writer
        self._events: list[Event] = []
        self._take_operations = take_operations
        self._num_issued = 0

    def issue(self, request: Request) -> int:
        """Write down a request; returns its ordinal in the block."""
        kind = ProgramRequest(
            kind=request.operation,
            axis=request.axis,
            num_bytes=request.num_bytes,
            members=self._groups[request.group],
            rank=self._rank,
            peer=request.peer,
        )
        self._write(EventKind.ISSUE, self._writer.requests.number(kind))
        self._num_issued += 1
        return self._num_issued - 1

    def wait(self, request: int, block: Callable[[], None]) -> None:
        """Write down a wait for a request of the block."""
        assert request < self._num_issued, "a block waits for its own requests"
        self._write(EventKind.WAIT, request)
        block()

    @contextmanager
    def recording(self) -> Iterator[list[Event]]:
        """Write the events of the block as one, which is run here and may be replayed; yields what runs it."""
        self._close_segment()
        outer, self._events = self._events, []
        outer_issued, self._num_issued = self._num_issued, 0
        run: list[Event] = []
        yield run
        self._close_segment()
        run.append((EventKind.RUN, self._writer.blocks.number(tuple(self._events))))
        self._events, self._num_issued = [*outer, *run], outer_issued

    def replay(self, recording: Sequence[Event], *, old: str, new: str) -> None:
        """Run a recorded block again."""
        self._close_segment()
        self._events += recording

    def events(self) -> Block:
        """Return everything written so far."""
        self._close_segment()
        return tuple(self._events)

    def _write(self, kind: EventKind, value: int) -> None:
        self._close_segment()
        self._events.append((kind, value))

    def _close_segment(self) -> None:
        if segment := self._take_operations():
            self._events.append((EventKind.WORK, self._writer.segments.number(segment)))
