"""A job's journal while it is written: events as they arrive, each with the moment at which it was seen.

Read by the product's own reader, from a connection of our own. Event times count from the job's start on monotonic
clocks; `started_s` puts them on the harness's monotonic clock, which no jump of the time of day moves.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from fabrictune.foundation.errors import FabrictuneError
from fabrictune.trainer_probe.operation.events import Event
from fabrictune.trainer_probe.operation.journal import Journal, open_journal

POLL_S = 0.01


class Follower:
    """The events of a journal so far."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._journal: Journal | None = None
        self.events: list[Event] = []
        self.started_s = float("inf")  # of the job, on this process's monotonic clock

    def poll(self) -> Sequence[Event]:
        """Return the events that are new since the last call."""
        try:
            self._journal = self._journal or open_journal(str(self._place), is_read_only=True)
            new = list(self._journal.read(self.events[-1].number if self.events else 0))
        except FabrictuneError:  # not made yet, or its writer has it for itself
            self.close()
            return ()
        now_s = time.monotonic()
        for event in new:
            self.started_s = min(self.started_s, now_s - event.elapsed_s)
        self.events += new
        return new

    def close(self) -> None:
        """End the use of the journal until the next poll."""
        if self._journal is not None:
            self._journal.close()
        self._journal = None

    def last(self, kind: str) -> Event | None:
        """Return the last event of a kind so far."""
        return next((event for event in reversed(self.events) if event.kind == kind), None)
