"""A proof that a pipeline's programs end: they are executed by rules under which no timing matters.

A message is transferred when its sender has sent it and its receiver has posted it; neither may pass its wait before
that, and the n-th message sent to a rank must be the n-th that it posts from the sender. A condition that a step waits
for stays true. So if the ranks end in one order of execution, they end in all, and if none can advance, they never can.

A transport that buffers messages lets a sender go on earlier, which cannot block another rank.
Left out: transports that run the sends and receives of two ranks one after another in a single queue.
"""

from collections import defaultdict
from collections.abc import Sequence

from fabrictune.trainer_probe.parallel.program import Message, Program, Step


def find_deadlock(programs: Sequence[Program]) -> list[str]:
    """Return the step at which each rank of a deadlock is blocked; empty where all end.

    Raises ValueError where a rank posts other messages than it is sent.
    """
    messages = _Messages()
    places = [0] * len(programs)
    has_advanced = True
    while has_advanced:
        has_advanced = False
        for rank, program in enumerate(programs):
            while places[rank] < len(program) and messages.advance(program[places[rank]]):
                places[rank] += 1
                has_advanced = True
    messages.check_order()
    return [
        f"rank {rank}, step {place} of {len(program)}: {program[place].kind} {program[place].subject}"
        for rank, (place, program) in enumerate(zip(places, programs, strict=True))
        if place < len(program)
    ]


class _Messages:
    """Messages sent and posted so far, by sender and receiver."""

    def __init__(self) -> None:
        self._sent: defaultdict[tuple[int, int], list[Message]] = defaultdict(list)
        self._posted: defaultdict[tuple[int, int], list[Message]] = defaultdict(list)

    def advance(self, step: Step) -> bool:
        """Execute a step if nothing blocks it; returns whether it was executed."""
        message = step.subject
        if not isinstance(message, Message):
            return True
        pair = message.sender, message.receiver
        if step.kind == "send":
            self._sent[pair].append(message)
        elif step.kind == "post":
            self._posted[pair].append(message)
        else:
            return message in self._sent[pair] and message in self._posted[pair]
        return True

    def check_order(self) -> None:
        for pair, sent in self._sent.items():
            for ours, theirs in zip(sent, self._posted[pair], strict=False):
                if ours != theirs:
                    raise ValueError(f"rank {pair[0]} sends {ours}, where rank {pair[1]} has posted {theirs}")
