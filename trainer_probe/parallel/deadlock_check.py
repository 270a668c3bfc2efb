"""A proof that a pipeline's programs end: they are played by rules under which no timing can matter.

A message is carried when its sender has sent it and its receiver has posted it; neither may pass its wait before that,
and the n-th message sent to a rank must be the n-th that it posts from the sender. What a step waits for, once there,
stays there. So if the ranks come to an end in one order of play, they do in all, and if none can move, they never can.

A carrier that buffers messages lets a sender go on earlier, which cannot hinder anyone.
Left out: carriers that run the sends and receives of two ranks one after another in a single queue.
"""

from collections import defaultdict
from collections.abc import Sequence

from fabrictune.trainer_probe.parallel.program import Message, Program, Step


def find_standstill(programs: Sequence[Program]) -> list[str]:
    """Return where each rank that cannot end stands; nothing where all end.

    Raises ValueError where a rank posts other messages than it is sent.
    """
    play = _Play()
    places = [0] * len(programs)
    has_moved = True
    while has_moved:
        has_moved = False
        for rank, program in enumerate(programs):
            while places[rank] < len(program) and play.advance(program[places[rank]]):
                places[rank] += 1
                has_moved = True
    play.check_order()
    return [
        f"rank {rank}, step {place} of {len(program)}: {program[place].kind} {program[place].subject}"
        for rank, (place, program) in enumerate(zip(places, programs, strict=True))
        if place < len(program)
    ]


class _Play:
    """What has been sent and posted so far, by sender and receiver."""

    def __init__(self) -> None:
        self._sent: defaultdict[tuple[int, int], list[Message]] = defaultdict(list)
        self._posted: defaultdict[tuple[int, int], list[Message]] = defaultdict(list)

    def advance(self, step: Step) -> bool:
        """Take a step if nothing is missing for it."""
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
