"""The reference engine's posted receives: netsim/engine/state/receive_queue.hpp."""

from collections import deque


class ReceiveQueue:
    """Receives that a queue pair's messages take in turn, and that are posted anew one after another."""

    def __init__(self, num_receives: int, replenish_ps: int) -> None:
        self.num_posted = num_receives  # from the message expected on
        self.replenish_ps = replenish_ps
        self.replenished_ps: deque[int] = deque()

    def has_receive(self, num_between: int, now_ps: int) -> bool:
        """Return whether there is one for the message that comes so many after the one expected."""
        posted = sum(time_ps <= now_ps for time_ps in self.replenished_ps)
        return num_between < self.num_posted + posted

    def end_message(self, now_ps: int) -> None:
        """A message has ended that took a receive."""
        self.num_posted -= 1
        begins_ps = max([now_ps, *list(self.replenished_ps)[-1:]])
        self.replenished_ps.append(begins_ps + self.replenish_ps)
